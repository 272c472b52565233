"""A program into text of either dialect, such that reading the text gives the program again.

What a dialect has no words for is refused as `Inexpressible`, all of it at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hdlog.dialects import Dialect
from hdlog.errors import Inexpressible
from hdlog.program.functions import INTEGER_TYPES
from hdlog.program.model import (
    GRAPH,
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    BodyItem,
    Call,
    Declaration,
    Directive,
    Expression,
    Filter,
    Negation,
    Program,
    Rule,
    TypeDeclaration,
)
from hdlog.program.ntriples import quote
from hdlog.program.terms import (
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Constant,
    Iri,
    Literal,
    Skolem,
    Term,
    Variable,
    double,
)
from hdlog.program.types import attribute_types, expression_type, variable_types
from hdlog.text.souffle import COMPARISONS, FUNCTORS

# Binding strength of operators, the same in both dialects where both have them.
OPERATORS = {
    "or": ("||", 1),
    "and": ("&&", 2),
    "eq": ("=", 3),
    "ne": ("!=", 3),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "gt": (">", 3),
    "ge": (">=", 3),
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "div": ("/", 5),
}
SOUFFLE_OPERATORS = {
    "bor": "bor",
    "bxor": "bxor",
    "band": "band",
    "bshl": "bshl",
    "bshr": "bshr",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "idiv": "/",
    "mod": "%",
    "pow": "^",
}
SOUFFLE_FUNCTORS = {
    "concat": "cat",
    "bytelen": "strlen",
    "bytesubstr": "substr",
    "souffle_string": "to_string",
    "souffle_number": "to_number",
    "souffle_unsigned": "to_unsigned",
    "min": "min",
    "max": "max",
    XSD_INTEGER: "ftoi",
    XSD_DOUBLE: "to_float",
}
RDFOX_WORDS = frozenset(
    [
        "prefix",
        "base",
        "not",
        "exists",
        "in",
        "filter",
        "bind",
        "as",
        "aggregate",
        "on",
        "distinct",
        "true",
        "false",
        "a",
    ]
)
SOUFFLE_WORDS = frozenset(
    [
        "brie",
        "btree",
        "btree_delete",
        "inline",
        "no_inline",
        "magic",
        "no_magic",
        "overridable",
        "eqrel",
        "match",
        "contains",
        "count",
        "min",
        "max",
        "sum",
        "mean",
        "land",
        "lor",
        "lxor",
        "bshru",
        "bshl",
        "bshr",
        "bor",
        "bxor",
        "band",
        "bnot",
        "nil",
        "true",
        "false",
        "as",
        "input",
        "output",
        "printsize",
        "ord",
        "range",
        "autoinc",
    ]
) | frozenset(FUNCTORS)
_NAME = re.compile(r"[^\W\d]\w*")
_IDENTIFIER = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*", re.ASCII)
_LOCAL = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_VARIABLE = re.compile(r"\w+")
_IRI = re.compile(r"[^<>\"{}|^`\\\x00-\x20]*")
_BARE_NUMBERS = {
    XSD_INTEGER: re.compile(r"-?[0-9]+", re.ASCII),
    XSD_DECIMAL: re.compile(r"-?[0-9]*\.[0-9]+", re.ASCII),
    XSD_DOUBLE: re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+", re.ASCII),
}


def write(program: Program, dialect: Dialect = "rdfox") -> str:
    """Text that `parse` reads back as an equal program; `Inexpressible` where there is none."""
    writer = RdfoxWriter(program) if dialect == "rdfox" else SouffleWriter(program)
    text = writer.text()
    if writer.refused:
        reasons = "\n".join(f"  {reason}" for reason in dict.fromkeys(writer.refused))
        raise Inexpressible(f"this program cannot be written in the dialect {dialect}:\n{reasons}")
    return text


class RdfoxWriter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.refused: list[str] = []

    def refuse(self, reason: str) -> str:
        self.refused.append(reason)
        return "?"

    def text(self) -> str:
        if self.program.types:
            self.refuse("type declarations")
        lines = [f"PREFIX {prefix}: <{iri}>" for prefix, iri in self.program.prefixes]
        lines += map(self.declaration, self.program.declarations)
        lines += map(self.directive, self.program.directives)
        lines += map(self.rule, self.program.rules)
        return "".join(line + "\n" for line in lines)

    def declaration(self, declaration: Declaration) -> str:
        attributes = ", ".join(f"{a.name}: {a.type}" for a in declaration.attributes)
        for word in (w for a in declaration.attributes for w in (a.name, a.type)):
            if (
                not _IDENTIFIER.fullmatch(word)
                or "?" in word
                or word[0] == "_"
                or word.lower() in RDFOX_WORDS
            ):
                self.refuse(f"the name {word} in a declaration")
        return f"@decl {self.name(declaration.name)}({attributes}) ."

    def directive(self, directive: Directive) -> str:
        for key, _ in directive.parameters:
            if not _NAME.fullmatch(key) or key.lower() in RDFOX_WORDS:
                self.refuse(f"the parameter {key}")
        parameters = ", ".join(f"{k}={quote(v)}" for k, v in directive.parameters)
        return f"@{directive.kind} {self.name(directive.name)}{f'({parameters})' if parameters else ''} ."

    def rule(self, rule: Rule) -> str:
        heads = ", ".join(map(self.atom, rule.heads))
        heads = f"@{rule.method} {heads}" if rule.method else heads
        if not rule.body:
            return f"{heads} ."
        return f"{heads} :- {self.body(rule.body)} ."

    def body(self, body: tuple[BodyItem, ...]) -> str:
        return ", ".join(map(self.item, body))

    def item(self, item: BodyItem) -> str:
        match item:
            case Atom():
                return self.atom(item)
            case Filter(condition):
                return f"FILTER({self.expression(condition)})"
            case Bind(expression, variable):
                return f"BIND({self.expression(expression)} AS {self.variable(variable)})"
            case Negation(body, local):
                if local:
                    names = ", ".join(map(self.variable, local))
                    return f"NOT EXISTS {names} IN ({self.body(body)})"
                if len(body) == 1 and isinstance(body[0], Atom):
                    return f"NOT {self.atom(body[0])}"
                return f"NOT ({self.body(body)})"
            case Aggregate():
                return self.aggregate(item)

    def aggregate(self, item: Aggregate) -> str:
        if item.correlated:
            return self.refuse("an aggregate that takes its group from the rest of the rule")
        group = f" ON {', '.join(map(self.variable, item.group))}" if item.group else ""
        calls = "".join(map(self.aggregate_call, item.calls))
        return f"AGGREGATE({self.body(item.body)}{group}{calls})"

    def aggregate_call(self, call: AggregateCall) -> str:
        argument = "*" if call.argument is None else self.expression(call.argument)
        distinct = "DISTINCT " if call.distinct else ""
        return f" BIND {call.function.upper()}({distinct}{argument}) AS {self.variable(call.result)}"

    def atom(self, atom: Atom) -> str:
        if atom.predicate.has_graph:
            plain = Atom(atom.name.removesuffix(GRAPH), atom.terms[:-1])
            return f"{self.atom(plain)} {self.term(atom.terms[-1])}"
        terms = ", ".join(map(self.term, atom.terms))
        if atom.is_triple:
            return f"[{terms}]"
        return f"{self.name(atom.name)}[{terms}]"

    def name(self, name: str) -> str:
        if _NAME.fullmatch(name) and name.lower() not in RDFOX_WORDS and name[0] != "_":
            return name
        return self.iri(name)

    def iri(self, iri: str) -> str:
        for prefix, start in self.program.prefixes:
            if iri.startswith(start) and _LOCAL.fullmatch(iri[len(start) :]):
                return f"{prefix}:{iri[len(start) :]}"
        if not _IRI.fullmatch(iri):
            return self.refuse(f"the IRI {iri!r}")
        return f"<{iri}>"

    def variable(self, variable: Variable) -> str:
        if not _VARIABLE.fullmatch(variable.name):
            return self.refuse(f"the variable name {variable.name}")
        return "_" if variable.is_wildcard else f"?{variable.name}"

    def term(self, term: Term) -> str:
        match term:
            case Variable():
                return self.variable(term)
            case Iri(value):
                return self.iri(value)
            case BlankNode(label):
                return f"_:{label}"
            case Literal():
                return self.literal(term)
            case Skolem():
                return self.refuse("a Skolem individual as a constant")

    def literal(self, term: Literal) -> str:
        if term.language:
            return f"{quote(term.lexical)}@{term.language}"
        if term.datatype == XSD_STRING:
            return quote(term.lexical)
        if term.datatype == XSD_BOOLEAN and term.lexical in ("true", "false"):
            return term.lexical
        bare = _BARE_NUMBERS.get(term.datatype)
        if bare and bare.fullmatch(term.lexical):
            if term.datatype != XSD_DOUBLE or double(float(term.lexical)) == term:
                return term.lexical
        return f"{quote(term.lexical)}^^{self.iri(term.datatype)}"

    def expression(self, value: Expression, strength: int = 0) -> str:
        """`value` as text that binds more strongly than `strength`, in brackets if need be."""
        if not isinstance(value, Call):
            if isinstance(value, Variable) and value.is_wildcard:
                return self.refuse("_ in an expression")
            return self.term(value)
        if value.function in OPERATORS:
            operator, own = OPERATORS[value.function]
            left, right = value.arguments
            # Comparisons do not chain; the other operators associate to the left.
            first = self.expression(left, own if own == 3 else own - 1)
            text = f"{first} {operator} {self.expression(right, own)}"
            return f"({text})" if own <= strength else text
        if value.function in ("neg", "not"):
            return f"{'-' if value.function == 'neg' else '!'}{self.expression(value.arguments[0], 6)}"
        if value.function == "in":
            options = ", ".join(self.expression(a) for a in value.arguments[1:])
            text = f"{self.expression(value.arguments[0], 3)} IN ({options})"
            return f"({text})" if strength >= 3 else text
        arguments = ", ".join(self.expression(a) for a in value.arguments)
        name = self.iri(value.function) if ":" in value.function else value.function.upper()
        return f"{name}({arguments})"


class SouffleWriter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.refused: list[str] = []
        self.attributes = attribute_types(program)
        self.types: Mapping[str, str] = {}

    def refuse(self, reason: str) -> str:
        self.refused.append(reason)
        return "?"

    def text(self) -> str:
        lines = [self.type(t) for t in self.program.types]
        lines += map(self.declaration, self.program.declarations)
        lines += map(self.directive, self.program.directives)
        lines += map(self.rule, self.program.rules)
        text = "".join(line + "\n" for line in lines)
        if not self.refused and re.search(r"^\s*#", text, re.MULTILINE):
            self.refuse("a line that the preprocessor would take")
        return text

    def word(self, name: str) -> str:
        if _IDENTIFIER.fullmatch(name) and name not in SOUFFLE_WORDS and name != "_":
            return name
        return self.refuse(f"the name {name}")

    def type(self, declaration: TypeDeclaration) -> str:
        sign = "<:" if declaration.subtype else "="
        return f".type {self.word(declaration.name)} {sign} {' | '.join(map(self.word, declaration.members))}"

    def declaration(self, declaration: Declaration) -> str:
        attributes = ", ".join(f"{self.word(a.name)}: {self.word(a.type)}" for a in declaration.attributes)
        if any(a.type == "any" for a in declaration.attributes):
            self.refuse("attributes of any type")
        return f".decl {self.word(declaration.name)}({attributes})"

    def directive(self, directive: Directive) -> str:
        parameters = ", ".join(f"{self.word(k)}={quote(v)}" for k, v in directive.parameters)
        if directive.name not in self.program.declared:
            self.refuse(f"predicate {directive.name}, which has no declaration")
        return f".{directive.kind} {self.word(directive.name)}{f'({parameters})' if parameters else ''}"

    def rule(self, rule: Rule) -> str:
        self.types = variable_types(rule, self.attributes)
        heads = ", ".join(map(self.atom, rule.heads))
        if not rule.body:
            return f"{heads}."
        method = f"//@{rule.method}\n" if rule.method else ""
        return f"{method}{heads} :- {self.body(rule.body)}."

    def body(self, body: tuple[BodyItem, ...]) -> str:
        return ", ".join(map(self.item, body))

    def item(self, item: BodyItem) -> str:
        match item:
            case Atom():
                return self.atom(item)
            case Filter(condition):
                return self.test(condition)
            case Bind(expression, variable):
                return f"{self.variable(variable)} = {self.expression(expression)}"
            case Negation(body, local):
                if local or len(body) != 1 or not isinstance(body[0], Atom):
                    return self.refuse("a negation of more than one atom")
                return f"!{self.atom(body[0])}"
            case Aggregate():
                return self.aggregate(item)

    def test(self, condition: Expression) -> str:
        if isinstance(condition, Call):
            if condition.function in COMPARISONS.values():
                left, right = map(self.expression, condition.arguments)
                sign = next(s for s, name in COMPARISONS.items() if name == condition.function)
                return f"{left} {sign} {right}"
            if condition.function == "not":
                inner = condition.arguments[0]
                if isinstance(inner, Call) and inner.function in ("contains", "match"):
                    return f"!{self.test(inner)}"
            if condition.function in ("contains", "match"):
                left, right = map(self.expression, condition.arguments)
                if condition.function == "contains":
                    left, right = right, left
                return f"{condition.function}({left}, {right})"
        return self.refuse("a filter that is not a comparison, match or contains")

    def aggregate(self, item: Aggregate) -> str:
        if not item.correlated or len(item.calls) != 1 or item.calls[0].distinct:
            return self.refuse("an aggregate in RDFox's way")
        (call,) = item.calls
        if call.function == "avg":
            return self.refuse("the aggregate avg")
        if (call.argument is None) != (call.function == "count"):
            return self.refuse("a count of an expression")
        target = "" if call.argument is None else f" {self.bracket(call.argument)}"
        return f"{self.variable(call.result)} = {call.function}{target} : {{ {self.body(item.body)} }}"

    def bracket(self, expression: Expression) -> str:
        text = self.expression(expression)
        return text if isinstance(expression, Variable) else f"({text})"

    def atom(self, atom: Atom) -> str:
        if atom.predicate.has_graph:
            return self.refuse("an atom in a named graph")
        if atom.is_triple:
            return self.refuse("variables in place of predicates")
        if atom.name not in self.program.declared:
            self.refuse(f"predicate {atom.name}, which has no declaration")
        return f"{self.word(atom.name)}({', '.join(map(self.term, atom.terms))})"

    def variable(self, variable: Variable) -> str:
        return "_" if variable.is_wildcard else self.word(variable.name)

    def term(self, term: Term) -> str:
        return self.variable(term) if isinstance(term, Variable) else self.constant(term)

    def constant(self, term: Constant) -> str:
        if isinstance(term, Literal):
            if term.datatype == XSD_STRING:
                return quote(term.lexical)
            if term.datatype in INTEGER_TYPES and term == Literal(str(_integer(term)), XSD_INTEGER):
                return term.lexical
            if term.datatype == XSD_DOUBLE and re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", term.lexical):
                if double(float(term.lexical)) == term:
                    digits, mark, exponent = term.lexical.partition("e")
                    return digits + ("" if "." in digits else ".0") + mark + exponent
        return self.refuse(f"the constant {term}")

    def expression(self, value: Expression) -> str:
        if not isinstance(value, Call):
            return self.term(value)
        if value.function in ("div", "idiv"):
            floats = any(expression_type(a, self.types) == "float" for a in value.arguments)
            if floats is not (value.function == "div"):
                return self.refuse(f"the function {value.function} on these types")
        if value.function in SOUFFLE_OPERATORS:
            left, right = map(self.operand, value.arguments)
            return f"{left} {SOUFFLE_OPERATORS[value.function]} {right}"
        if value.function in ("neg", "bnot"):
            return f"{'-' if value.function == 'neg' else 'bnot '}{self.operand(value.arguments[0])}"
        if value.function in SOUFFLE_FUNCTORS:
            return f"{SOUFFLE_FUNCTORS[value.function]}({', '.join(map(self.expression, value.arguments))})"
        return self.refuse(f"the function {value.function}")

    def operand(self, value: Expression) -> str:
        text = self.expression(value)
        negative = isinstance(value, Literal) and text.startswith("-")
        return f"({text})" if isinstance(value, Call) or negative else text


def _integer(term: Literal) -> int | None:
    return int(term.lexical) if re.fullmatch(r"-?[0-9]{1,19}", term.lexical, re.ASCII) else None
