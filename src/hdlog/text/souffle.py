"""Soufflé text into a program.

The parser leaves clauses raw: disjunctions, negations of constraints, functors and aggregates
inside arguments. `_Clause` flattens one into rules of the program: one rule per disjunct, each
functor in an argument as a `Bind` of a fresh variable, each aggregate as a body item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, cast

from lark import Token, v_args

from hdlog.errors import Problem, Source, Span
from hdlog.program.functions import FUNCTIONS, NoValue, number
from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Atom,
    Attribute,
    Bind,
    BodyItem,
    Call,
    Declaration,
    Directive,
    DirectiveKind,
    EvaluationMethod,
    Expression,
    Filter,
    Negation,
    Program,
    Rule,
    TypeDeclaration,
    expression_variables,
    negate,
)
from hdlog.program.terms import XSD_DOUBLE, XSD_INTEGER, Literal, Term, Variable, double
from hdlog.program.types import attribute_types, expression_type, resolve, variable_types
from hdlog.text.chunks import Grammar, Reader, Refusal, span_of
from hdlog.text.rdfox import unescape, wrong_count

COMPARISONS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
COMPLEMENTS = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
FUNCTORS = {
    "cat": "concat",
    "strlen": "bytelen",
    "substr": "bytesubstr",
    "to_string": "souffle_string",
    "to_number": "souffle_number",
    "to_unsigned": "souffle_unsigned",
    "ftoi": XSD_INTEGER,
    "ftou": "souffle_unsigned",
    "itou": "souffle_unsigned",
    "utoi": XSD_INTEGER,
    "to_float": XSD_DOUBLE,
    "itof": XSD_DOUBLE,
    "utof": XSD_DOUBLE,
    "min": "min",
    "max": "max",
}
AS = "as"
"""The function of a cast, until types are known."""
MAX_DISJUNCTS = 1000
_WRITE_OUT = "write the relations and rules of the component out"
_FIELDS = "use one attribute for each field"
UNSUPPORTED = {
    ".comp": ("components", _WRITE_OUT),
    ".init": ("components", _WRITE_OUT),
    ".override": ("components", _WRITE_OUT),
    ".functor": ("user-defined functors", "use the built-in functors, or compute the values before"),
    ".lattice": ("lattices", "use a min or max aggregate over a relation of candidates"),
    ".limitsize": (".limitsize directives", "limit a run with the options of hdlog instead"),
    ".once": (".once directives", "remove the line"),
    ".include": (".include directives", "use #include, which needs a C preprocessor"),
    "QUALIFIED": ("components (names with a dot)", _WRITE_OUT),
    "LSQB": ("records", _FIELDS),
    "NIL": ("records (nil)", _FIELDS),
    "ADT": ("algebraic data types", "use one relation for each variant"),
    "DOLLAR": ("counters ($)", "number the facts before, or use a count aggregate"),
    "USER_FUNCTOR": ("user-defined functors", "use the built-in functors, or compute the values before"),
    "UNSUPPORTED_FUNCTOR": ("the functors ord, range and autoinc", ""),
    "LOGICAL": ("the operators land, lor, lxor, lnot and bshru", ""),
    "BUILT_IN_CONSTANT": ("the names __LINE__, __FILE__ and their kin", ""),
    "ADDRESS": ("IP addresses", "write it as a string"),
    "CHOICE": ("choice domains", "use a min or max aggregate to choose one fact"),
}
_NAMES = {
    "keywords": "",
    "DOT": "'.'",
    "ARROW": "':-'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "IDENT": "a name",
    "INTEGER": "a number",
    "UNSIGNED": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "SEMICOLON": "';'",
    "RBRACE": "'}'",
    "LBRACE": "'{'",
    "COLON": "':'",
    "LE": "'<='",
    "EQ": "'='",
    "EQUAL": "'='",
    "WILDCARD": "'_'",
    "__ANON_0": "'<:'",
}
_BELLS = re.compile(r"\\.", re.DOTALL)
_BELL_CODES = {r"\a": r"\u0007", r"\v": r"\u000b"}
"""Escapes that only Soufflé has."""


@dataclass(frozen=True, slots=True)
class RawAtom:
    name: Token
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RawTest:
    """A comparison or string test; `holds` is False under a negation that has no complement."""

    function: str
    left: Any
    right: Any
    span: Span
    holds: bool = True


@dataclass(frozen=True, slots=True)
class RawNot:
    operand: Any


@dataclass(frozen=True, slots=True)
class RawAnd:
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RawOr:
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RawAggregate:
    function: AggregateFunction
    target: Any
    body: Any
    span: Span


@cache
def grammar() -> Grammar[SouffleReader]:
    return Grammar("souffle", SouffleReader, _NAMES)


def parse(source: Source) -> tuple[Program, list[Problem]]:
    """The statements that could be read, and a problem for each that could not."""
    accepted, refusals = [], []
    for chunk in chunks(grammar().tokens(source)):
        refused = refusal(source, chunk)
        if refused:
            refusals.append(refused)
        else:
            accepted.append(chunk)
    program, problems = grammar().read(source, accepted)
    return program, refusals + problems


def chunks(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Cut after each dot and before each directive.

    What belongs to a directive that is refused is left out: the body of a component, or else the
    rest of the line.
    """
    chunk: list[Token] = []
    refused, depth = 0, 0  # the line of a refused directive, and the depth of braces after .comp
    component = False
    for token in tokens:
        if component:
            depth += (token == "{") - (token == "}")
            component = not (depth == 0 and token == "}")
            continue
        if token.line == refused:
            continue
        if chunk and token[0] == "." and len(token) > 1:
            yield chunk
            chunk = []
        chunk.append(token)
        if token.type == "UNSUPPORTED_DIRECTIVE":
            component, refused = token == ".comp", token.line or 0
        # A string that is not closed swallows the rest of its line, and so the dot.
        if token.type in ("DOT", "UNSUPPORTED_DIRECTIVE", "UNCLOSED_STRING"):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def refusal(source: Source, chunk: list[Token]) -> Problem | None:
    """The first construct of a statement that is Soufflé, but not supported here."""
    for index, token in enumerate(chunk):
        key = str(token) if token.type == "UNSUPPORTED_DIRECTIVE" else token.type
        if key in UNSUPPORTED:
            what, hint = UNSUPPORTED[key]
            return report_unsupported(what, token, source, hint)
        if token == "{" and chunk[0] == ".type":
            what, hint = UNSUPPORTED["ADT"]
            return report_unsupported(what, chunk[1], source, hint)
        if token.type == "LE" and chunk[index - 1].type == "RPAR":
            if not any(t.type == "ARROW" for t in chunk[:index]):
                hint = "use a min or max aggregate in a rule of its own"
                return report_unsupported("subsumption rules", token, source, hint)
    return None


def report_unsupported(what: str, token: Token, source: Source, hint: str) -> Problem:
    return Problem("unsupported", f"{what} are not supported", span_of(source, token), hint)


def _call(name: str) -> Callable[..., Any]:
    def build(self: SouffleReader, *arguments: Any) -> Any:
        return Call(name, arguments, _span(arguments[0]))

    return build


def _span(value: Any) -> Span | None:
    return cast(Span | None, getattr(value, "span", None))


@v_args(inline=True)
class SouffleReader(Reader):
    """Turns each reduction of the grammar into a declaration, a directive or a raw clause."""

    def start(self, source: Source) -> None:
        self.source = source
        self.problems = []
        self.declarations: list[Declaration] = []
        self.types: list[TypeDeclaration] = []
        self.directives: list[Directive] = []
        self.clauses: list[tuple[tuple[RawAtom, ...], Any, EvaluationMethod | None]] = []

    def program(self) -> Program:
        frame = Program((), tuple(self.declarations), tuple(self.types), tuple(self.directives))
        rules: list[Rule] = []
        attributes, known = attribute_types(frame), resolve(frame.types)
        for heads, body, method in self.clauses:
            try:
                rules += (
                    _apply_types(r, attributes, known) for r in clause_rules(self.source, heads, body, method)
                )
            except Refusal as refusal:
                self.problems.append(refusal.problem)
        return replace(frame, rules=tuple(rules))

    def span(self, token: Token) -> Span:
        return span_of(self.source, token)

    # Directives.

    def names(self, *names: Token) -> tuple[Token, ...]:
        return names

    def declaration(self, names: tuple[Token, ...], *parts: Any) -> None:
        attributes = tuple(p for p in parts if isinstance(p, Attribute))
        for name in names:
            self.declarations.append(Declaration(str(name), attributes, self.span(name)))
            for kind in (p for p in parts if isinstance(p, str)):
                self.directives.append(Directive(cast(DirectiveKind, kind), str(name), (), self.span(name)))

    def attribute(self, name: Token, type_: Token) -> Attribute:
        return Attribute(str(name), str(type_))

    def qualifier(self, token: Token) -> None:
        if token == "eqrel":
            hint = "add the rules r(x,x) :- r(x,_).  r(y,x) :- r(x,y).  r(x,z) :- r(x,y), r(y,z)."
            self.problems.append(report_unsupported("eqrel relations", token, self.source, hint))

    def input_qualifier(self) -> str:
        return "input"

    def output_qualifier(self) -> str:
        return "output"

    def printsize_qualifier(self) -> str:
        return "printsize"

    def union(self, *members: Token) -> tuple[str, ...]:
        return tuple(map(str, members))

    def union_type(self, name: Token, members: tuple[str, ...]) -> None:
        self.types.append(TypeDeclaration(str(name), members, False, self.span(name)))

    def subtype(self, name: Token, parent: Token) -> None:
        self.types.append(TypeDeclaration(str(name), (str(parent),), True, self.span(name)))

    def symbol_type(self, name: Token) -> None:
        self.types.append(TypeDeclaration(str(name), ("symbol",), True, self.span(name)))

    def number_type(self, name: Token) -> None:
        self.types.append(TypeDeclaration(str(name), ("number",), True, self.span(name)))

    def io(self, kind: Token, *items: tuple[Token, tuple[tuple[str, str], ...]]) -> None:
        for name, parameters in items:
            word = cast(DirectiveKind, str(kind[1:]))
            self.directives.append(Directive(word, str(name), parameters, self.span(name)))

    def io_item(
        self, name: Token, *parameters: tuple[str, str] | None
    ) -> tuple[Token, tuple[tuple[str, str], ...]]:
        return name, tuple(p for p in parameters if p)

    def parameter(self, name: Token, value: Token) -> tuple[str, str]:
        return str(name), self.text(value) if value.type == "STRING" else str(value)

    def pragma(self, token: Token, *_: Token) -> None:
        """Options for Soufflé itself."""

    def plan(self, *_: Any) -> None:
        """A join order for Soufflé; hdlog plans by itself."""

    # Clauses.

    def heads(self, *atoms: RawAtom) -> tuple[RawAtom, ...]:
        return atoms

    def fact(self, heads: tuple[RawAtom, ...], _: Token) -> None:
        self.clauses.append((heads, RawAnd(()), None))

    def rule(self, method: Token | None, heads: tuple[RawAtom, ...], _: Token, body: Any, __: Token) -> None:
        chosen = cast(EvaluationMethod, method.partition("@")[2].strip()) if method else None
        self.clauses.append((heads, body, chosen))

    def disjunction(self, *operands: Any) -> Any:
        return operands[0] if len(operands) == 1 else RawOr(operands)

    def conjunction(self, *operands: Any) -> Any:
        return RawAnd(operands)

    def negation(self, operand: Any) -> RawNot:
        return RawNot(operand)

    def comparison(self, left: Any, token: Token, right: Any) -> RawTest:
        return RawTest(COMPARISONS[str(token)], left, right, _span(left) or self.span(token))

    def string_test(self, token: Token, left: Any, right: Any) -> RawTest:
        if token == "contains":
            left, right = right, left
        return RawTest(str(token), left, right, self.span(token))

    def true(self, _: Token) -> RawAnd:
        return RawAnd(())

    def false(self, _: Token) -> RawOr:
        return RawOr(())

    def atom(self, name: Token, _: Token, *arguments: Any) -> RawAtom:
        return RawAtom(name, tuple(a for a in arguments if a is not None))

    # Expressions.

    bor = _call("bor")
    bxor = _call("bxor")
    band = _call("band")
    bshl = _call("bshl")
    bshr = _call("bshr")
    add = _call("add")
    sub = _call("sub")
    mul = _call("mul")
    div = _call("div")
    mod = _call("mod")
    pow = _call("pow")
    bnot = _call("bnot")

    def neg(self, operand: Any) -> Any:
        negative = negate(operand, _span(operand))
        if isinstance(negative, Literal) and negative.datatype == XSD_INTEGER:
            return replace(negative, lexical=str(int(negative.lexical)))
        return negative

    def variable(self, token: Token) -> Variable:
        return Variable(str(token), self.span(token))

    def wildcard(self, token: Token) -> Variable:
        return Variable("_", self.span(token))

    def integer(self, token: Token) -> Literal:
        if len(token) > 70:
            raise Refusal(Problem("number", "this number does not fit into 64 bits", self.span(token)))
        digits = "".join(token.rstrip("u").split())
        base = 0 if digits.lstrip("-")[1:2] in ("x", "b") else 10
        literal = Literal(str(int(digits, base)), XSD_INTEGER, span=self.span(token))
        try:
            number(literal)
        except NoValue:
            message = f"{token} does not fit into 64 bits"
            raise Refusal(Problem("number", message, self.span(token))) from None
        return literal

    def float(self, token: Token) -> Literal:
        return replace(double(float(token)), span=self.span(token))

    def text(self, token: Token) -> str:
        def fail(message: str) -> Refusal:
            return Refusal(Problem("escape", message, self.span(token)))

        return unescape(_BELLS.sub(lambda m: _BELL_CODES.get(m[0], m[0]), token[1:-1]), fail)

    def string(self, token: Token) -> Literal:
        return Literal(self.text(token), span=self.span(token))

    def call(self, token: Token, _: Token, *arguments: Any) -> Any:
        function = FUNCTIONS[FUNCTORS[str(token)]]
        present = tuple(a for a in arguments if a is not None)
        if not function.accepts(len(present)):
            message = wrong_count(str(token), function.least, function.most, len(present))
            raise Refusal(Problem("function", message, self.span(token)))
        return Call(function.name, present, self.span(token))

    def cast(self, expression: Any, type_: Token) -> Any:
        return Call(AS, (expression, Literal(str(type_), span=self.span(type_))), self.span(type_))

    def count(self, token: Token, body: Any) -> RawAggregate:
        return RawAggregate("count", None, body, self.span(token))

    def aggregate(self, token: Token, target: Any, body: Any) -> RawAggregate:
        return RawAggregate(cast(AggregateFunction, str(token)), target, body, self.span(token))


def clause_rules(
    source: Source, heads: tuple[RawAtom, ...], body: Any, method: EvaluationMethod | None
) -> Iterator[Rule]:
    """The rules one clause stands for: one for each disjunct of its body."""
    for conjunction in disjuncts(body, True, span_of(source, heads[0].name)):
        clause = _Clause(source, _names((heads, conjunction)))
        yield replace(clause.rule(heads, conjunction), method=method)


def disjuncts(body: Any, positive: bool, span: Span | None) -> list[tuple[Any, ...]]:
    """Disjunctive normal form: alternatives, each a conjunction of atoms, negated atoms and tests."""
    match body:
        case RawNot(operand):
            return disjuncts(operand, not positive, span)
        case RawAnd(operands) | RawOr(operands):
            parts = [disjuncts(o, positive, span) for o in operands]
            if isinstance(body, RawOr) is positive:
                alternatives = [c for part in parts for c in part]
            else:
                size = 1
                for part in parts:
                    size *= len(part)
                    if size > MAX_DISJUNCTS:
                        message = f"the disjunctions of this rule make more than {MAX_DISJUNCTS} rules"
                        hint = "give a part of the body a relation of its own"
                        raise Refusal(Problem("disjunction", message, span, hint))
                alternatives = [sum(combination, ()) for combination in product(*parts)]
            return alternatives
        case RawTest() if not positive:
            if body.function in COMPLEMENTS:
                return [(replace(body, function=COMPLEMENTS[body.function]),)]
            return [(replace(body, holds=not body.holds),)]
        case RawAtom() if not positive:
            return [(RawNot(body),)]
    return [(body,)]


def _names(part: Any) -> set[str]:
    """The names of all variables in a raw part of a clause."""
    match part:
        case Variable():
            return {part.name}
        case tuple():
            return set().union(*map(_names, part))
        case RawAtom():
            return _names(part.arguments)
        case RawTest():
            return _names((part.left, part.right))
        case RawNot():
            return _names(part.operand)
        case RawAnd() | RawOr():
            return _names(part.operands)
        case RawAggregate():
            return _names((part.target, part.body))
        case Call():
            return _names(part.arguments)
    return set()


def _outside(part: Any) -> set[str]:
    """The names of the variables that occur outside of aggregates."""
    match part:
        case RawAggregate():
            return set()
        case tuple():
            return set().union(*map(_outside, part))
        case RawAtom():
            return _outside(part.arguments)
        case RawTest():
            return _outside((part.left, part.right))
        case RawNot():
            return _outside(part.operand)
        case Call():
            return _outside(part.arguments)
    return _names(part)


def _rename_variables(part: Any, names: Mapping[str, Variable]) -> Any:
    """A raw part of a clause with other variables for some names."""
    if not names:
        return part
    match part:
        case Variable():
            return names.get(part.name, part)
        case tuple():
            return tuple(_rename_variables(p, names) for p in part)
        case RawAtom() | Call():
            return replace(part, arguments=_rename_variables(part.arguments, names))
        case RawTest():
            return replace(
                part, left=_rename_variables(part.left, names), right=_rename_variables(part.right, names)
            )
        case RawNot():
            return replace(part, operand=_rename_variables(part.operand, names))
        case RawAnd() | RawOr():
            return replace(part, operands=_rename_variables(part.operands, names))
        case RawAggregate():
            return replace(
                part, target=_rename_variables(part.target, names), body=_rename_variables(part.body, names)
            )
    return part


class _Clause:
    """One conjunction on its way to a rule."""

    def __init__(self, source: Source, names: set[str]) -> None:
        self.source = source
        self.names = names  # in use anywhere in the clause
        self.given: set[str] = set()  # names with a value from an atom or an aggregate

    def make_fresh_variable(self) -> Variable:
        number = 1
        while f"e{number}" in self.names:
            number += 1
        self.names.add(f"e{number}")
        return Variable(f"e{number}")

    def rule(self, heads: tuple[RawAtom, ...], conjunction: tuple[Any, ...]) -> Rule:
        outside = _outside((heads, conjunction))
        items = self.items(conjunction, outside)
        atoms = tuple(self.atom(h, items, outside) for h in heads)
        return Rule(atoms, settle(items, set()), atoms[0].span)

    def items(self, conjunction: tuple[Any, ...], outside: set[str]) -> list[BodyItem]:
        items: list[BodyItem] = []
        self.given |= _names(
            tuple(
                a
                for raw in conjunction
                if isinstance(raw, RawAtom)
                for a in raw.arguments
                if isinstance(a, Variable)
            )
        )
        for literal in conjunction:
            match literal:
                case RawAtom():
                    items += self.body_atom(literal, outside)
                case RawNot(operand):
                    atom = self.atom(operand, items, outside)
                    items.append(Negation((atom,), (), atom.span))
                case RawTest():
                    self.test(literal, items, outside)
                case _:
                    raise AssertionError(f"not a literal: {literal}")
        return items

    def body_atom(self, raw: RawAtom, outside: set[str]) -> list[BodyItem]:
        """The atom with a fresh variable for each functor, and what that variable must be equal to."""
        items: list[BodyItem] = []
        terms: list[Term] = []
        for argument in raw.arguments:
            if isinstance(argument, Call | RawAggregate):
                terms.append(self.make_fresh_variable())
                value = self.expression(argument, items, outside)
                items.append(Filter(Call("eq", (terms[-1], value), _span(argument)), _span(argument)))
            else:
                terms.append(argument)
        return [Atom(str(raw.name), tuple(terms), span_of(self.source, raw.name)), *items]

    def atom(self, raw: RawAtom, items: list[BodyItem], outside: set[str]) -> Atom:
        terms = tuple(self.term(a, items, outside) for a in raw.arguments)
        return Atom(str(raw.name), terms, span_of(self.source, raw.name))

    def term(self, argument: Any, items: list[BodyItem], outside: set[str]) -> Term:
        if isinstance(argument, Call | RawAggregate):
            variable = self.make_fresh_variable()
            value = self.expression(argument, items, outside, variable)
            if value is not variable:
                items.append(Bind(value, variable, _span(argument)))
            return variable
        return cast(Term, argument)

    def test(self, raw: RawTest, items: list[BodyItem], outside: set[str]) -> None:
        left, right = raw.left, raw.right
        if isinstance(left, RawAggregate) and not isinstance(right, RawAggregate):
            left, right = (right, left) if raw.function == "eq" else (left, right)
        if raw.function == "eq" and isinstance(left, Variable) and isinstance(right, RawAggregate):
            if left.name not in self.given | {"_"}:
                self.given.add(left.name)
                self.expression(right, items, outside, left)
                return
        left = self.expression(left, items, outside)
        right = self.expression(right, items, outside)
        test = Call(raw.function, (left, right), raw.span)
        items.append(Filter(test if raw.holds else Call("not", (test,), raw.span), raw.span))

    def expression(
        self, raw: Any, items: list[BodyItem], outside: set[str], result: Variable | None = None
    ) -> Expression:
        """`raw` without aggregates: each becomes an item, and a variable in its place."""
        if isinstance(raw, RawAggregate):
            variable = result or self.make_fresh_variable()
            items.append(self.aggregate(raw, variable, outside))
            return variable
        if isinstance(raw, Call):
            arguments = tuple(self.expression(a, items, outside) for a in raw.arguments)
            return Call(raw.function, arguments, raw.span)
        return cast(Expression, raw)

    def aggregate(self, raw: RawAggregate, result: Variable, outside: set[str]) -> Aggregate:
        # The variables of the target belong to the aggregate, whatever their names are outside.
        own = {n: self.make_fresh_variable() for n in sorted(_names(raw.target) & outside - {"_"})}
        raw = replace(raw, target=_rename_variables(raw.target, own), body=_rename_variables(raw.body, own))
        alternatives = disjuncts(raw.body, True, raw.span)
        if len(alternatives) != 1:
            hint = "give the disjunction a relation of its own"
            raise Refusal(
                Problem("unsupported", "a disjunction inside an aggregate is not supported", raw.span, hint)
            )
        (conjunction,) = alternatives
        inner = _outside((conjunction, raw.target))
        if raw.target is not None and _has_aggregate(raw.target):
            raise Refusal(Problem("unsupported", "an aggregate of an aggregate is not supported", raw.span))
        before, self.given = self.given, self.given | outside
        body = settle(self.items(conjunction, outside | inner), outside)
        self.given = before
        used = _names((conjunction, raw.target)) & outside - {"_"}
        call = AggregateCall(raw.function, raw.target, result)
        return Aggregate(body, tuple(map(Variable, sorted(used))), (call,), True, raw.span)


def _has_aggregate(raw: Any) -> bool:
    if isinstance(raw, Call):
        return any(map(_has_aggregate, raw.arguments))
    return isinstance(raw, RawAggregate)


def settle(body: list[BodyItem], known: set[str]) -> tuple[BodyItem, ...]:
    """Decide for each `=` whether it gives a variable its value or compares two values.

    It gives a value when one side is a variable that nothing else gives one, and the other side
    is known; `known` are the names with a value from outside.
    """
    known = known | {v.name for item in body if isinstance(item, Atom) for v in item.variables()}
    for item in body:
        if isinstance(item, Aggregate):
            known |= {c.result.name for c in item.calls}
        elif isinstance(item, Bind):
            known.add(item.variable.name)
    settled = list(body)
    progress = True
    while progress:
        progress = False
        for index, item in enumerate(settled):
            if isinstance(item, Filter) and isinstance(item.condition, Call):
                if item.condition.function == "eq":
                    a, b = item.condition.arguments
                    bind = _as_bind(a, b, known, item.span) or _as_bind(b, a, known, item.span)
                    if bind is not None:
                        settled[index] = bind
                        known.add(bind.variable.name)
                        progress = True
    return tuple(settled)


def _as_bind(a: Expression, b: Expression, known: set[str], span: Span | None) -> Bind | None:
    if isinstance(a, Variable) and not a.is_wildcard and a.name not in known:
        if all(v.name in known for v in expression_variables(b)):
            return Bind(b, a, span)
    return None


def _cast(
    expression: Expression, wanted: Literal, types: Mapping[str, str], known: Mapping[str, str]
) -> Expression:
    """`as(expression, type)`: of the same kind of value, or a number that is written as a float."""
    target = known.get(wanted.lexical, "")
    if not target:
        raise Refusal(Problem("type", f"unknown type {wanted.lexical}", wanted.span))
    actual = expression_type(expression, types)
    if target == "float" and isinstance(expression, Literal):
        return cast(Expression, _as_float(expression))
    numbers = ("number", "unsigned")
    if actual and actual != target and not (actual in numbers and target in numbers):
        hint = {"float": "itof converts a number", "symbol": "to_string converts a number"}.get(
            target, "to_number converts a string, ftoi a float"
        )
        message = f"a cast from {actual} to {target} would take the bits of the one for the other"
        raise Refusal(Problem("type", message, wanted.span, hint))
    return expression


def _apply_types(rule: Rule, attributes: dict[str, tuple[str, ...]], known: Mapping[str, str]) -> Rule:
    """What operators mean for the types of their operands: `1` in a float column is 1.0, `/` is exact there, `+` of symbols
    puts them together, and a cast is no function."""
    types = variable_types(rule, attributes)
    floats = {
        t.name
        for a in (*rule.heads, *rule.atoms())
        for t, wanted in zip(a.terms, attributes.get(a.name, ()), strict=False)
        if isinstance(t, Variable) and wanted == "float"
    }

    def expression(value: Expression) -> Expression:
        if not isinstance(value, Call):
            return value
        arguments = tuple(map(expression, value.arguments))
        if value.function == AS:
            return _cast(arguments[0], cast(Literal, arguments[1]), types, known)
        call = replace(value, arguments=arguments)
        if call.function == "add" and any(expression_type(a, types) == "symbol" for a in arguments):
            return replace(call, function="concat")
        if any(expression_type(a, types) == "float" for a in arguments):
            return replace(call, arguments=tuple(map(_as_float, arguments)))
        return replace(call, function="idiv") if call.function == "div" else call

    def atom(value: Atom) -> Atom:
        wanted = attributes.get(value.name, ())
        terms = tuple(
            _as_float(t) if i < len(wanted) and wanted[i] == "float" else t for i, t in enumerate(value.terms)
        )
        return replace(value, terms=terms)

    def item(value: BodyItem) -> BodyItem:
        match value:
            case Atom():
                return atom(value)
            case Filter():
                return replace(value, condition=expression(value.condition))
            case Bind():
                if value.variable.name in floats and not any(expression_variables(value.expression)):
                    types[value.variable.name] = "float"
                    return replace(value, expression=expression(_all_floats(value.expression)))
                return replace(value, expression=expression(value.expression))
            case Negation():
                return replace(value, body=tuple(map(item, value.body)))
            case Aggregate():
                calls = tuple(
                    replace(c, argument=expression(c.argument)) if c.argument is not None else c
                    for c in value.calls
                )
                return replace(value, body=tuple(map(item, value.body)), calls=calls)

    return replace(rule, heads=tuple(map(atom, rule.heads)), body=tuple(map(item, rule.body)))


def _all_floats(value: Expression) -> Expression:
    """Numbers take the type of their place."""
    if isinstance(value, Call):
        return replace(value, arguments=tuple(map(_all_floats, value.arguments)))
    return cast(Expression, _as_float(value))


def _as_float(value: Any) -> Any:
    if isinstance(value, Literal) and value.datatype == XSD_INTEGER:
        return replace(double(float(value.lexical)), span=value.span)
    return value
