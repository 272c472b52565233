"""RDFox Datalog text into a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, cast
from urllib.parse import urljoin

from lark import Token, v_args

from hdlog.errors import Problem, Source, Span, did_you_mean
from hdlog.program.functions import FUNCTIONS
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
    in_graph,
    negate,
    triple_atom,
)
from hdlog.program.ntriples import ESCAPED, UNESCAPES
from hdlog.program.terms import (
    LANG_STRING,
    OWL,
    RDF,
    RDF_TYPE,
    RDFS,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Iri,
    Literal,
    Term,
    Variable,
    double,
)
from hdlog.text.chunks import Grammar, Reader, Refusal, span_of

STANDARD_PREFIXES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
NUMBER_TYPES = {"INTEGER": XSD_INTEGER, "DECIMAL": XSD_DECIMAL, "DOUBLE": XSD_DOUBLE}
AGGREGATES = ("count", "sum", "min", "max", "avg", "mean")
ALIASES = {"uri": "iri", "isuri": "isiri", "substring": "substr", "string_length": "strlen"}
REFUSED_FUNCTIONS = {
    "rand": "its value changes from call to call, so a materialisation would not be determined",
    "now": "its value changes from call to call, so a materialisation would not be determined",
    "uuid": "its value changes from call to call, so a materialisation would not be determined",
    "struuid": "its value changes from call to call, so a materialisation would not be determined",
    "bnode": 'it makes a new node on each call; use SKOLEM("name", ...) instead',
    "bound": "every variable of a rule is bound",
}

_NAMES = {
    "keywords": "FILTER BIND NOT AGGREGATE PREFIX",
    "DOT": "'.'",
    "COMMA": "','",
    "LSQB": "'['",
    "RSQB": "']'",
    "LPAR": "'('",
    "RPAR": "')'",
    "ARROW": "':-'",
    "IRIREF": "an IRI",
    "PNAME_LN": "an IRI",
    "PNAME_NS": "an IRI",
    "NAME": "a name",
    "VARIABLE": "a variable",
    "WILDCARD": "'_'",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "STRING": "a string",
    "LONG_STRING": "a string",
    "BOOLEAN": "true or false",
    "BLANK_NODE": "a blank node",
    "A": "'a'",
    "NOT": "NOT",
    "FILTER": "FILTER",
    "BIND": "BIND",
    "AGGREGATE": "AGGREGATE",
    "AS": "AS",
    "ON": "ON",
    "IN": "IN",
    "EXISTS": "EXISTS",
    "MINUS": "'-'",
    "PLUS": "'+'",
    "STAR": "'*'",
    "SLASH": "'/'",
    "BANG": "'!'",
    "EQUAL": "'='",
    "LT": "'<'",
}
ANSWER = "#answer"
"""The predicate of the answers to a query."""
_EVERYTHING = (Variable("*"),)
_HEADINGS = ("PREFIX", "AT_PREFIX", "BASE", "AT_BASE")


def _named_variables(body: tuple[BodyItem, ...]) -> Iterator[Variable]:
    """The variables that a body gives values to, in the order of the text."""
    for item in body:
        match item:
            case Atom():
                yield from (v for v in item.variables() if not v.is_wildcard)
            case Bind():
                yield item.variable
            case Aggregate():
                yield from (*item.group, *(call.result for call in item.calls))


@cache
def grammar() -> Grammar[RdfoxReader]:
    return Grammar("rdfox", RdfoxReader, _NAMES)


def parse(source: Source) -> tuple[Program, list[Problem]]:
    """The statements that could be read, and a problem for each that could not."""
    return grammar().read(source, chunks(grammar().tokens(source)))


def parse_query(source: Source, prefixes: Mapping[str, str]) -> tuple[list[Rule], list[Problem]]:
    """The queries of a text, each a rule for the answers, and what is wrong with it; a dot at its end may be missing."""
    cut = [_with_arrow(chunk) for chunk in chunks(_with_dot(grammar().tokens(source)))]

    def result(reader: RdfoxReader) -> list[Rule]:
        for rule in reader.rules:
            reader.complain(
                "query",
                "a query, not a rule, is asked for",
                rule.span,
                "write variables and <- before the body",
            )
        return reader.queries

    return grammar().read_as(source, cut, result, lambda reader: reader.prefixes.update(prefixes))


def parse_facts(source: Source, prefixes: Mapping[str, str]) -> tuple[list[Rule], list[Problem]]:
    """The facts of a text, likewise."""
    cut = chunks(_with_dot(grammar().tokens(source)))
    return grammar().read_as(
        source, cut, lambda reader: reader.rules, lambda reader: reader.prefixes.update(prefixes)
    )


def _with_dot(tokens: Iterable[Token]) -> list[Token]:
    listed = list(tokens)
    if listed and listed[-1].type != "DOT":
        listed.append(Token.new_borrow_pos("DOT", ".", listed[-1]))
    return listed


def _with_arrow(chunk: list[Token]) -> list[Token]:
    """A query with its <- as an arrow: elsewhere that is a comparison with a negative number. A body alone asks for all its variables."""
    for place, (token, following) in enumerate(pairwise(chunk)):
        if token.type == "LT" and following == "-":
            arrow = Token.new_borrow_pos("ARROW", "<-", token)
            return [*chunk[:place], arrow, *chunk[place + 2 :]]
        if token.type not in ("VARIABLE", "COMMA", "STAR"):
            break
    if chunk[0].type in _HEADINGS or any(token.type == "ARROW" for token in chunk):
        return chunk
    everything = [
        Token.new_borrow_pos(kind, text, chunk[0]) for kind, text in (("STAR", "*"), ("ARROW", "<-"))
    ]
    return [*everything, *chunk]


def chunks(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Cut after each dot, and after the IRI of a PREFIX or BASE, with its dot if it has one."""
    chunk: list[Token] = []
    for token in tokens:
        complete = len(chunk) > 1 and chunk[0].type in _HEADINGS and chunk[-1].type == "IRIREF"
        if chunk and (token.type in _HEADINGS or (complete and token.type != "DOT")):
            yield chunk
            chunk = []
        chunk.append(token)
        # A string that is not closed swallows the rest of its line, and so the dot.
        if token.type in ("DOT", "UNCLOSED_STRING"):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def unescape(text: str, fail: Callable[[str], Refusal]) -> str:
    """`text` with its backslash escapes replaced."""

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "uU" and len(code) > 1:
            point = int(code[1:], 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                raise fail(f"\\{code} is not a character")
            return chr(point)
        if code in UNESCAPES:
            return UNESCAPES[code]
        raise fail(f"\\{code} is not an escape")

    return ESCAPED.sub(replace, text) if "\\" in text else text


def _call(name: str) -> Callable[..., Expression]:
    def build(self: RdfoxReader, a: Expression, *others: Any) -> Expression:
        arguments = (a, *(o for o in others if not isinstance(o, Token)))
        return Call(name, arguments, self.here(a))

    return build


@v_args(inline=True)
class RdfoxReader(Reader):
    """Turns each reduction of the grammar into a value of the program."""

    def start(self, source: Source) -> None:
        self.source = source
        self.problems = []
        self.prefixes = dict(STANDARD_PREFIXES)
        self.used_prefixes: dict[str, str] = {}
        self.base_iri = ""
        self.rules: list[Rule] = []
        self.queries: list[Rule] = []
        self.declarations: list[Declaration] = []
        self.directives: list[Directive] = []

    def program(self) -> Program:
        for query in self.queries:
            self.complain(
                "query", "a program has rules, and this is a query", query.span, "hdlog query asks it"
            )
        return Program(
            tuple(self.rules),
            tuple(self.declarations),
            (),
            tuple(self.directives),
            tuple(self.used_prefixes.items()),
        )

    # Places and problems.

    def span(self, token: Token) -> Span:
        return span_of(self.source, token)

    def here(self, value: Any) -> Span | None:
        return cast(Span | None, getattr(value, "span", None))

    def fail(self, kind: str, message: str, span: Span | None, hint: str = "") -> Refusal:
        return Refusal(Problem(kind, message, span, hint))

    def complain(self, kind: str, message: str, span: Span | None, hint: str = "") -> None:
        self.problems.append(Problem(kind, message, span, hint))

    # Statements.

    def prefix(self, _: Token, name: Token, iri: Token) -> None:
        self.prefixes[name[:-1]] = self.used_prefixes[name[:-1]] = self.resolve(iri)

    def base(self, _: Token, iri: Token) -> None:
        self.base_iri = self.resolve(iri)

    def rule(
        self,
        method: Token | None,
        heads: tuple[Atom, ...],
        _: Token | None,
        body: tuple[BodyItem, ...] | None,
    ) -> None:
        chosen = cast(EvaluationMethod, str(method[1:])) if method else None
        self.rules.append(Rule(heads, body or (), heads[0].span, chosen))

    def query(self, answer: tuple[Variable, ...] | None, arrow: Token, body: tuple[BodyItem, ...]) -> None:
        """A rule for the answers: those to a query that asks for nothing are whether there is a match."""
        names = answer if answer != _EVERYTHING else tuple(dict.fromkeys(_named_variables(body)))
        span = names[0].span if names and answer != _EVERYTHING else self.span(arrow)
        self.queries.append(Rule((Atom(ANSWER, names or (), span),), body, span))

    def answer(self, *variables: Variable | Token) -> tuple[Variable, ...]:
        return tuple(v for v in variables if isinstance(v, Variable)) or _EVERYTHING

    def heads(self, *atoms: Atom) -> tuple[Atom, ...]:
        return atoms

    def body(self, *items: BodyItem) -> tuple[BodyItem, ...]:
        return items

    def declaration(self, keyword: Token, name: Iri, *attributes: Attribute | None) -> None:
        present = tuple(a for a in attributes if a)
        self.declarations.append(Declaration(name.value, present, name.span))

    def attribute(self, *tokens: Token) -> Attribute:
        name, _, type_ = "".join(tokens).partition(":")
        return Attribute(name, type_)

    def directive(self, keyword: Token, name: Iri, *parameters: tuple[str, str] | None) -> None:
        kind = cast(DirectiveKind, str(keyword[1:]))
        present = tuple(p for p in parameters if p)
        self.directives.append(Directive(kind, name.value, present, name.span))

    def parameter(self, name: Token, value: Token) -> tuple[str, str]:
        return str(name), self.text(value)

    # Body items.

    def not_atom(self, keyword: Token, atom: Atom) -> Negation:
        return Negation((atom,), (), self.span(keyword))

    def not_body(self, keyword: Token, body: tuple[BodyItem, ...]) -> Negation:
        return Negation(body, (), self.span(keyword))

    def not_exists(self, keyword: Token, *parts: Any) -> Negation:
        local = tuple(dict.fromkeys(p for p in parts[:-1] if isinstance(p, Variable)))
        return Negation(parts[-1], local, self.span(keyword))

    def not_exists_atom(self, keyword: Token, *parts: Any) -> Negation:
        return self.not_exists(keyword, *parts[:-1], (parts[-1],))

    def filter(self, keyword: Token, condition: Expression) -> Filter:
        return Filter(condition, self.span(keyword))

    def bind(self, keyword: Token, expression: Expression, _: Token, variable: Variable) -> Bind:
        return Bind(expression, variable, self.span(keyword))

    def aggregate(self, keyword: Token, body: tuple[BodyItem, ...], *parts: Any) -> Aggregate:
        group = tuple(dict.fromkeys(p for p in parts if isinstance(p, Variable)))
        calls = tuple(p for p in parts if isinstance(p, AggregateCall))
        return Aggregate(body, group, calls, False, self.span(keyword))

    def aggregate_call(
        self, _: Token, name: Token, distinct: Token | None, argument: Expression, __: Token, result: Variable
    ) -> AggregateCall:
        return AggregateCall(self.aggregate_name(name), argument, result, distinct is not None)

    def aggregate_star(self, _: Token, name: Token, __: Token, ___: Token, result: Variable) -> AggregateCall:
        function = self.aggregate_name(name)
        if function != "count":
            raise self.fail("aggregate", f"{name}(*) has no meaning", self.span(name), "only COUNT(*) has")
        return AggregateCall(function, None, result)

    def aggregate_name(self, name: Token) -> AggregateFunction:
        if name.lower() not in AGGREGATES:
            hint = did_you_mean(name.lower(), AGGREGATES) or "known: " + ", ".join(AGGREGATES)
            raise self.fail("aggregate", f"unknown aggregate function {name}", self.span(name), hint)
        return cast(AggregateFunction, name.lower())

    # Atoms and terms.

    def bracket_atom(self, name: Iri, _: Token, *terms: Term | None) -> Atom:
        present = tuple(t for t in terms if t is not None)
        if name.value == RDF_TYPE and len(present) == 2:
            return triple_atom(present[0], name, present[1], name.span)
        return Atom(name.value, present, name.span)

    def variable_atom(self, name: Variable, _: Token, *terms: Term) -> Atom:
        if len(terms) == 1:
            return triple_atom(terms[0], Iri(RDF_TYPE), name, name.span)
        if len(terms) == 2:
            return triple_atom(terms[0], name, terms[1], name.span)
        raise self.fail(
            "arity",
            f"a variable in place of a predicate stands for triples, not for {len(terms)} arguments",
            name.span,
            "use ?class[?x] or ?property[?x, ?y]",
        )

    def triple(self, bracket: Token, s: Term, p: Term, o: Term) -> Atom:
        if not isinstance(p, Iri | Variable):
            raise self.fail("triple", "the predicate of a triple is an IRI or a variable", self.here(p))
        return triple_atom(s, p, o, self.here(p) or self.span(bracket))

    def in_graph(self, atom: Atom, graph: Iri | Variable) -> Atom:
        plain = atom.is_triple or len(atom.terms) in (1, 2)
        if not plain:
            count = len(atom.terms)
            raise self.fail(
                "graph", f"a named graph has triples, and {atom.name} has {count} arguments", atom.span
            )
        return in_graph(atom, graph)

    def bare_name(self, token: Token) -> Iri:
        return Iri(str(token), self.span(token))

    def iri(self, token: Token) -> Iri:
        return Iri(self.resolve(token), self.span(token))

    def pname(self, token: Token) -> Iri:
        prefix, _, local = token.partition(":")
        if prefix not in self.prefixes:
            hint = did_you_mean(prefix, self.prefixes)
            hint = hint or f"declare it: PREFIX {prefix}: <...>"
            self.complain("prefix", f"unknown prefix {prefix}:", self.span(token), hint)
            self.prefixes[prefix] = f"unknown:{prefix}#"
        if prefix in STANDARD_PREFIXES:
            self.used_prefixes.setdefault(prefix, self.prefixes[prefix])
        if "\\" in local:
            local = re.sub(r"\\(.)", r"\1", local)
        return Iri(self.prefixes[prefix] + local, self.span(token))

    def resolve(self, token: Token) -> str:
        value = token[1:-1]
        if not self.base_iri:
            return value
        try:
            return urljoin(self.base_iri, value)
        except ValueError:
            raise self.fail(
                "iri", f"cannot resolve {token} against {self.base_iri}", self.span(token)
            ) from None

    def rdf_type(self, token: Token) -> Iri:
        return Iri(RDF_TYPE, self.span(token))

    def variable(self, token: Token) -> Variable:
        if token[1:] == "_":
            raise self.fail(
                "variable", f"{token} is not a variable's name", self.span(token), "write _ alone"
            )
        return Variable(str(token[1:]), self.span(token))

    def wildcard(self, token: Token) -> Variable:
        return Variable("_", self.span(token))

    def blank_node(self, token: Token) -> BlankNode:
        return BlankNode(str(token[2:]), self.span(token))

    def boolean(self, token: Token) -> Literal:
        return Literal(str(token), XSD_BOOLEAN, span=self.span(token))

    def number(self, token: Token) -> Literal:
        if token.type == "DOUBLE":
            # The term of the number, as tables have it, however it is written here.
            return replace(double(float(token)), span=self.span(token))
        return Literal(str(token), NUMBER_TYPES[token.type], span=self.span(token))

    def negative(self, number: Literal) -> Literal:
        return cast(Literal, negate(number, number.span))

    def text(self, token: Token) -> str:
        quotes = 3 if token.type == "LONG_STRING" else 1

        def fail(message: str) -> Refusal:
            return self.fail("escape", message, self.span(token))

        return unescape(token[quotes:-quotes], fail)

    def string(self, token: Token, mark: Token | Iri | None = None) -> Literal:
        value, span = self.text(token), self.span(token)
        if isinstance(mark, Iri):
            if mark.value == LANG_STRING:
                raise self.fail("literal", "rdf:langString needs a language", mark.span, 'write "text"@en')
            return Literal(value, mark.value, span=span)
        if mark is not None:
            return Literal(value, LANG_STRING, mark[1:].lower(), span)
        return Literal(value, XSD_STRING, span=span)

    # Expressions.

    or_ = _call("or")
    and_ = _call("and")
    eq = _call("eq")
    ne = _call("ne")
    lt = _call("lt")
    le = _call("le")
    gt = _call("gt")
    ge = _call("ge")
    add = _call("add")
    sub = _call("sub")
    mul = _call("mul")
    div = _call("div")
    not_ = _call("not")

    def neg(self, operand: Expression) -> Expression:
        return negate(operand, self.here(operand))

    def plus(self, operand: Expression) -> Expression:
        return operand

    def in_(self, value: Expression, _: Token, *options: Expression | None) -> Expression:
        return Call("in", (value, *(o for o in options if o is not None)), self.here(value))

    def not_in(self, value: Expression, _: Token, __: Token, *options: Expression | None) -> Expression:
        return Call("not", (self.in_(value, _, *options),), self.here(value))

    def call(self, name: Token, _: Token, *arguments: Expression | None) -> Expression:
        function = ALIASES.get(name.lower(), name.lower())
        return self.build_call(function, str(name), arguments, self.span(name))

    def iri_or_cast(self, iri: Iri, bracket: Token | None, *arguments: Expression | None) -> Expression:
        if bracket is None:
            return iri
        return self.build_call(iri.value, f"<{iri.value}>", arguments, iri.span)

    def build_call(
        self, function: str, shown: str, arguments: tuple[Expression | None, ...], span: Span | None
    ) -> Expression:
        present = tuple(a for a in arguments if a is not None)
        if function in REFUSED_FUNCTIONS:
            raise self.fail("function", f"{shown} is not supported", span, REFUSED_FUNCTIONS[function])
        known = FUNCTIONS.get(function)
        if known is None:
            hint = did_you_mean(function, FUNCTIONS)
            raise self.fail("function", f"unknown function {shown}", span, hint)
        if not known.accepts(len(present)):
            raise self.fail("function", wrong_count(shown, known.least, known.most, len(present)), span)
        return Call(function, present, span)


def wrong_count(name: str, least: int, most: int | None, count: int) -> str:
    if most is None:
        wanted = f"at least {least}"
    else:
        wanted = str(least) if least == most else f"{least} to {most}"
    return f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {count}"
