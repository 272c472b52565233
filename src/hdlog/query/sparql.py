"""SPARQL 1.1 into the algebra of queries. rdflib parses it; its algebra is translated node by node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from itertools import count
from threading import Lock
from typing import Any, Literal

from hdlog.errors import Problem, ProgramError, Source, Span, UsageError
from hdlog.program.functions import FUNCTIONS, IS_BOUND, NEW_NODE, RANDOM, UUID, UUID_TEXT
from hdlog.program.model import GRAPH, TRIPLE, Atom, Call, Expression, in_graph, triple_atom
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import BlankNode, Constant, Iri, Term, Variable
from hdlog.query.algebra import (
    Aggregate,
    Alternative,
    AnyStep,
    Condition,
    Extend,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    Node,
    Path,
    PathExpression,
    Repeat,
    Select,
    Selection,
    Union,
    Values,
    names_of,
)
from hdlog.query.algebra import Sequence as PathSequence
from hdlog.query.algebra import Step as PathStep
from hdlog.query.rows import ROW
from hdlog.reading.values import graph_text, value_text

Form = Literal["select", "ask", "construct", "describe"]
Triple = tuple[Term, Term, Term]
KEYWORDS = re.compile(
    r"(?:\s|#[^\n]*\n|prefix\s[^<]*<[^>]*>|base\s*<[^>]*>)*(select|ask|construct|describe)\b", re.IGNORECASE
)
"""What a query in SPARQL begins with."""
_VOLATILE = {"rand": RANDOM, "uuid": UUID, "struuid": UUID_TEXT, "bnode": NEW_NODE}
_OPERATORS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_AGGREGATES = {
    "Count": "count",
    "Sum": "sum",
    "Min": "min",
    "Max": "max",
    "Avg": "avg",
    "Sample": "sample",
    "GroupConcat": "group_concat",
}
_ARGUMENTS = ("arg", "arg1", "arg2", "arg3", "text", "start", "length", "pattern", "replacement", "flags")
_parsing = Lock()


@dataclass(frozen=True)
class SparqlQuery:
    form: Form
    selection: Selection
    template: tuple[Triple, ...] = ()
    """of a CONSTRUCT; blank nodes are new ones for each answer"""
    described: tuple[Iri, ...] = ()
    """IRIs that a DESCRIBE names"""


def is_sparql(text: str) -> bool:
    """Whether a query is in SPARQL, and not a rule body."""
    return KEYWORDS.match(text) is not None


def parse_sparql(text: str, prefixes: Mapping[str, str]) -> SparqlQuery:
    """A query; `prefixes` are those it need not declare."""
    parsed, algebra = _parse(text, prefixes)
    kind = algebra.name
    dataset = _Dataset.read(algebra.datasetClause)
    translation = Translation(dataset)
    match kind:
        case "SelectQuery":
            everything = _part(parsed[1], "projection") is None
            selection = translation.selection(algebra.p)
            if everything:
                selection = replace(selection, names=_names_in_order(text, selection.node))
            return SparqlQuery("select", selection)
        case "AskQuery":
            node = translation.selection(algebra.p).node
            return SparqlQuery("ask", Selection(node, (), distinct=True, length=1))
        case "ConstructQuery":
            selection = translation.selection(algebra.p)
            template = tuple(translation.template(algebra.template or _own_triples(algebra.p)))
            names = tuple(
                dict.fromkeys(t.name for triple in template for t in triple if isinstance(t, Variable))
            )
            return SparqlQuery("construct", replace(selection, names=names), template)
        case "DescribeQuery":
            return translation.describe(algebra)
    raise _refuse(f"{kind} is not supported")


# Updates.

Quad = tuple[Term, Term, Term, Term | None]
"""A triple and its graph, the default one if it is None."""
GraphName = Iri | Literal["DEFAULT", "NAMED", "ALL"]


@dataclass(frozen=True)
class Modify:
    """Quads that go and quads that come, for each answer to a query, or once."""

    delete: tuple[Quad, ...]
    insert: tuple[Quad, ...]
    where: Selection | None = None


@dataclass(frozen=True)
class Clear:
    graph: GraphName


@dataclass(frozen=True)
class Load:
    """What is in a file, into a graph."""

    source: str
    graph: Iri | None
    silent: bool


@dataclass(frozen=True)
class Transfer:
    """What is in one graph into another, which is emptied before if it is to be `replaced`; the one is, in the end, if it is `moved`."""

    source: GraphName
    target: GraphName
    replaced: bool
    moved: bool


Operation = Modify | Clear | Load | Transfer


def parse_sparql_update(text: str, prefixes: Mapping[str, str]) -> list[Operation]:
    """What a text in SPARQL Update does, one after the other."""
    _, operations = _parse(text, prefixes, is_update=True)
    return [made for operation in operations for made in _operation(operation)]


def _operation(operation: Any) -> Iterator[Operation]:
    graph = _part(operation, "graphiri")
    match operation.name:
        case "InsertData" | "DeleteData":
            quads = tuple(Translation().quads(operation, None))
            yield Modify((), quads) if operation.name == "InsertData" else Modify(quads, ())
        case "DeleteWhere":
            translation = Translation()
            quads = tuple(translation.quads(operation, None))
            yield Modify(quads, (), _everything(translation.matches(operation)))
        case "Modify":
            yield _modify(operation)
        case "Clear" | "Drop":
            yield Clear(_graph_name(graph))
        case "Load":
            yield Load(
                str(operation.iri),
                None if graph is None else Iri(str(graph)),
                bool(_part(operation, "silent")),
            )
        case "Add" | "Move" | "Copy":
            source, target = map(_graph_name, operation.graph)
            if source != target:
                yield Transfer(source, target, operation.name != "Add", operation.name == "Move")
        case "Create":
            return  # a graph is there when it has triples
        case _:
            raise _refuse(f"{operation.name} is not supported")


def _modify(operation: Any) -> Modify:
    given = _part(operation, "withClause")
    own = None if given is None else Iri(str(given))
    using = _part(operation, "using")
    dataset = _Dataset.read(using) if using else _Dataset(None if own is None else (own,))
    translation = Translation(dataset)
    where = translation.node(operation.where)
    delete, insert = (_part(operation, name) for name in ("delete", "insert"))
    return Modify(_template(delete, own), _template(insert, own), _everything(where))


def _template(clause: Any, graph: Iri | None) -> tuple[Quad, ...]:
    return () if clause is None else tuple(Translation().quads(clause, graph))


def _everything(node: Node) -> Selection:
    return Selection(node, tuple(sorted(n for n in names_of(node) if not n.startswith("#"))), distinct=True)


def _graph_name(name: Any) -> GraphName:
    return str(name) if type(name).__name__ == "str" else Iri(str(name))  # type: ignore[return-value]


def _parse(text: str, prefixes: Mapping[str, str], is_update: bool = False) -> tuple[Any, Any]:
    try:
        import rdflib
        from pyparsing import ParseException
        from rdflib.plugins.sparql import algebra, parser
    except ImportError:
        raise UsageError("SPARQL needs rdflib; install it with: pip install hdlog[query]") from None
    with _parsing:
        # Terms of a query are what it says: "01" is not 1.
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            _mend_grammar(parser)
            read: Any = parser.parseUpdate if is_update else parser.parseQuery
            translate: Any = algebra.translateUpdate if is_update else algebra.translateQuery
            parsed = read(text)
            translated = translate(parsed, initNs=dict(prefixes)).algebra
        except ParseException as error:
            span = Span(Source("<query>", text), error.lineno, error.column, error.column + 1)
            raise ProgramError([Problem("sparql", f"this is no SPARQL: {error.msg}", span)]) from None
        except Exception as error:  # noqa: BLE001 - rdflib raises whatever comes to its mind
            raise _refuse(f"rdflib cannot make sense of it: {error}") from None
        finally:
            rdflib.NORMALIZE_LITERALS = before
    return parsed, translated


def _mend_grammar(parser: Any) -> None:
    """rdflib forgets the property of an inverse one in a negated set, as in !(p|^q)."""
    inverse = parser.PathOneInPropertySet.exprs[-1]
    if "part" not in str(inverse):
        mended = parser.Comp("InversePath", "^" + parser.Param("part", parser.iri | parser.A))
        parser.PathOneInPropertySet.exprs[-1] = mended


def _names_in_order(text: str, node: Node) -> tuple[str, ...]:
    """The names of a query for everything, in the order of its text."""
    written = dict.fromkeys(re.findall(r"[?$](\w+)", text))
    known = names_of(node)
    return tuple(name for name in written if name in known)


def _own_triples(node: Any) -> Any:
    """The template of CONSTRUCT WHERE is its pattern."""
    while node.name != "BGP":
        node = node.p
    return node.triples


@dataclass(frozen=True)
class _Dataset:
    """Which graphs a query is about, where it says so; otherwise the default graph, and all that are named."""

    default: tuple[Iri, ...] | None = None
    named: tuple[Iri, ...] | None = None

    @staticmethod
    def read(clauses: Any) -> _Dataset:
        if not clauses:
            return _Dataset()
        default = tuple(Iri(str(c.default)) for c in clauses if c.default)
        named = tuple(Iri(str(c.named)) for c in clauses if c.named)
        return _Dataset(default, named)


@dataclass
class Translation:
    dataset: _Dataset = field(default_factory=_Dataset)
    _fresh: Iterator[int] = field(default_factory=count)
    _exists: list[tuple[str, Node]] = field(default_factory=list)
    _graph: Term | None = None
    _now: Constant = field(default_factory=lambda: parse_term(value_text(datetime.now(UTC))))

    # Queries.

    def selection(self, node: Any) -> Selection:
        """A query, or one within another: what comes around its pattern."""
        start, length, distinct = 0, None, False
        if node.name == "Slice":
            start, length, node = (
                int(node.start or 0),
                None if node.length is None else int(node.length),
                node.p,
            )
        while node.name in ("Distinct", "Reduced"):
            distinct, node = distinct or node.name == "Distinct", node.p
        assert node.name == "Project", f"{node.name} is no query"
        names = tuple(dict.fromkeys(str(v) for v in node.PV if _is_variable(v)))
        keys: Sequence[Any] = ()
        node = node.p
        if node.name == "OrderBy":
            node, keys = node.p, node.expr
        order = tuple((self.condition(key.expr), key.order == "DESC") for key in keys)
        return Selection(self.node(node), names, distinct, order, start, length)

    def describe(self, algebra: Any) -> SparqlQuery:
        named = tuple(Iri(str(v)) for v in algebra.PV if not _is_variable(v))
        names = tuple(str(v) for v in algebra.PV if _is_variable(v))
        if algebra.p is None:
            return SparqlQuery("describe", Selection(Match(()), ()), described=named)
        selection = self.selection(algebra.p)
        return SparqlQuery("describe", replace(selection, names=names, distinct=True), described=named)

    def template(self, triples: Iterable[Any]) -> Iterator[Triple]:
        for s, p, o in triples:
            yield self.template_term(s), self.template_term(p), self.template_term(o)

    def template_term(self, term: Any) -> Term:
        return BlankNode(str(term)) if type(term).__name__ == "BNode" else self.term(term)

    def quads(self, clause: Any, graph: Iri | None) -> Iterator[Quad]:
        """The triples of a template, with their graphs; `graph` is that of those outside of any."""
        for triple in self.template(_part(clause, "triples") or ()):
            yield (*triple, graph)
        for name, triples in (_part(clause, "quads") or {}).items():
            own = self.term(name)
            for triple in self.template(triples):
                yield (*triple, own)

    def matches(self, clause: Any) -> Node:
        """The quads of a template as a pattern."""
        node: Node = self.triples(_part(clause, "triples") or ())
        for name, triples in (_part(clause, "quads") or {}).items():
            before, self._graph = self._graph, self.term(name)
            node = Join(node, self.triples(triples))
            self._graph = before
        return node

    # Nodes.

    def node(self, node: Any) -> Node:
        match node.name:
            case "BGP":
                return self.triples(node.triples)
            case "Join":
                return self._join(node)
            case "LeftJoin":
                return self._left_join(node)
            case "Union":
                return Union((self.node(node.p1), self.node(node.p2)))
            case "Minus":
                return Minus(self.node(node.p1), self.node(node.p2))
            case "Filter":
                return Select(self.node(node.p), self.condition(node.expr))
            case "Extend":
                return Extend(self.node(node.p), str(node.var), self.condition(node.expr))
            case "Graph":
                return self._in_graph(node)
            case "ToMultiSet":
                return self.node(node.p)
            case "values":
                return self._values(node)
            case "Project" | "Distinct" | "Reduced" | "Slice":
                return self.selection(node)
            case "Group":
                return self._group(node, ())
            case "AggregateJoin":
                return self._group(node.p, node.A)
        raise _refuse(f"{node.name} is not supported")

    def triples(self, triples: Sequence[Any]) -> Node:
        """Triples that are to be matched together, and paths beside them."""
        atoms: list[Atom] = []
        others: list[Node] = []
        for s, p, o in triples:
            subject, value = self.term(s), self.term(o)
            if isinstance(subject, Constant) and not isinstance(subject, Iri | BlankNode):
                others.append(Values((), ()))  # no triple has such a subject
            if _is_path(p):
                others.append(self._path(subject, p, value))
                continue
            others += self._match_in_default(triple_atom(subject, self.term(p), value), atoms)
        parts = [*([Match(tuple(atoms))] if atoms or not others else []), *others]
        return reduce(Join, parts)

    def _match_in_default(self, atom: Atom, atoms: list[Atom]) -> list[Node]:
        """An atom where it belongs: among those that are matched together, or by itself if it is about several graphs."""
        if self._graph is not None:
            atoms.append(in_graph(atom, self._graph))
        elif self.dataset.default is None:
            atoms.append(atom)
        elif len(self.dataset.default) == 1:
            atoms.append(in_graph(atom, self.dataset.default[0]))
        else:
            # Of several graphs together each triple is there once.
            graph = self._name("graph")
            several = Values((graph,), tuple((g,) for g in self.dataset.default))
            inner = Join(several, Match((in_graph(atom, Variable(graph)),)))
            names = tuple(sorted({v.name for v in atom.variables()}))
            return [Selection(inner, names, distinct=True)]
        return []

    def _join(self, node: Any) -> Node:
        left, right = self.node(node.p1), self.node(node.p2)
        if isinstance(left, Match) and isinstance(right, Match):
            return Match((*left.atoms, *right.atoms))
        return right if left == Match(()) else left if right == Match(()) else Join(left, right)

    def _left_join(self, node: Any) -> Node:
        left = self.node(node.p1)
        right = self.node(node.p2)
        condition = None if node.expr is None or node.expr.name == "TrueFilter" else self.condition(node.expr)
        return LeftJoin(left, right, condition)

    def _in_graph(self, node: Any) -> Node:
        before, self._graph = self._graph, self.term(node.term)
        try:
            inner = self.node(node.p)
        finally:
            self._graph = before
        term = self.term(node.term)
        if isinstance(term, Variable) and term.name not in names_of(inner):
            s, p, o = (Variable(self._name("any")) for _ in range(3))
            everything = Match((Atom(TRIPLE + GRAPH, (s, p, o, term)),))
            inner = Join(Selection(everything, (term.name,), distinct=True), inner)
        if self.dataset.named is None:
            return inner
        if isinstance(term, Variable):
            return Join(Values((term.name,), tuple((g,) for g in self.dataset.named)), inner)
        return inner if term in self.dataset.named else Join(Values((), ()), inner)

    def _values(self, node: Any) -> Node:
        names = tuple(dict.fromkeys(str(v) for row in node.res for v in row))
        rows = [{str(v): t for v, t in row.items()} for row in node.res]
        return Values(names, tuple(tuple(self._value(row.get(n)) for n in names) for row in rows))

    def _value(self, term: Any) -> Constant | None:
        if term is None or (str(term) == "UNDEF" and type(term).__name__ == "str"):
            return None
        constant = self.term(term)
        assert isinstance(constant, Constant), "values are constants"
        return constant

    def _group(self, node: Any, calls: Sequence[Any]) -> Node:
        inner = self.node(node.p)
        keys = []
        for key in node.expr or ():
            if _is_variable(key):
                keys.append(str(key))
            else:
                name = self._name("key")
                inner = Extend(inner, name, self.condition(key))
                keys.append(name)
        return Group(inner, tuple(dict.fromkeys(keys)), tuple(self._aggregate(call) for call in calls))

    def _aggregate(self, call: Any) -> Aggregate:
        function = _AGGREGATES.get(call.name.removeprefix("Aggregate_"))
        if function is None:
            raise _refuse(f"{call.name} is not supported")
        everything = isinstance(call.vars, str) and str(call.vars) == "*" and not _is_variable(call.vars)
        argument = None if everything else self.expression(call.vars)
        given = _part(call, "separator")
        separator = " " if given is None else str(given)
        distinct = bool(_part(call, "distinct"))
        return Aggregate(function, argument, str(call.res), distinct, separator)  # type: ignore[arg-type]

    # Paths.

    def _path(self, subject: Term, path: Any, value: Term) -> Node:
        graph = self._graph
        if graph is None and self.dataset.default is not None:
            if len(self.dataset.default) != 1:
                raise _refuse("a path over several graphs of a FROM is not supported; give one FROM")
            graph = self.dataset.default[0]
        return Path(subject, self.path(path), value, graph)

    def path(self, path: Any) -> PathExpression:
        match type(path).__name__:
            case "URIRef":
                return PathStep(str(path))
            case "SequencePath":
                return PathSequence(tuple(map(self.path, path.args)))
            case "AlternativePath":
                return Alternative(tuple(map(self.path, path.args)))
            case "InvPath":
                from hdlog.query.paths import reverse

                return reverse(self.path(path.arg))
            case "MulPath":
                least: Literal[0, 1] = 0 if path.zero else 1
                return Repeat(self.path(path.path), least, None if path.more else 1)
            case "NegatedPath":
                return self._negated(path.args)
        raise _refuse(f"the path {path} is not supported")

    def _negated(self, parts: Sequence[Any]) -> PathExpression:
        """Any property but some, forwards, backwards or both ways."""
        forwards, backwards = [], []
        for part in parts:
            match type(part).__name__:
                case "URIRef":
                    forwards.append(str(part))
                case "InvPath":
                    backwards.append(str(part.arg))
                case _:
                    backwards.append(str(part.part))
        ways: list[PathExpression] = []
        if forwards or not backwards:
            ways.append(AnyStep(frozenset(forwards)))
        if backwards:
            ways.append(AnyStep(frozenset(backwards), backwards=True))
        return ways[0] if len(ways) == 1 else Alternative(tuple(ways))

    # Terms and expressions.

    def term(self, term: Any) -> Term:
        match type(term).__name__:
            case "Variable":
                return Variable(str(term))
            case "BNode":
                return Variable(f"#node {term}")
        return parse_term(graph_text(term))

    def condition(self, expression: Any) -> Condition:
        before, self._exists = self._exists, []
        try:
            made = self.expression(expression)
            return Condition(made, tuple(self._exists))
        finally:
            self._exists = before

    def expression(self, expression: Any) -> Expression:
        name = getattr(expression, "name", None)
        if name is None or type(expression).__name__ in ("Variable", "URIRef", "Literal"):
            return self.term(expression)
        match name:
            case "ConditionalOrExpression" | "ConditionalAndExpression":
                function = "or" if name == "ConditionalOrExpression" else "and"
                parts = [expression.expr, *(expression.other or ())]
                return reduce(lambda a, b: Call(function, (a, b)), map(self.expression, parts))
            case "RelationalExpression":
                return self._compare(expression)
            case "AdditiveExpression" | "MultiplicativeExpression":
                made = self.expression(expression.expr)
                for operator, other in zip(expression.op, expression.other, strict=True):
                    made = Call(_ARITHMETIC[str(operator)], (made, self.expression(other)))
                return made
            case "UnaryNot":
                return Call("not", (self.expression(expression.expr),))
            case "UnaryMinus":
                return Call("neg", (self.expression(expression.expr),))
            case "UnaryPlus":
                return Call("add", (self.expression(expression.expr), parse_term(value_text(0))))
            case "Builtin_EXISTS" | "Builtin_NOTEXISTS":
                return self._ask(expression.graph, name == "Builtin_NOTEXISTS")
            case "Function":
                arguments = tuple(map(self.expression, expression.expr or ()))
                return self._call(str(expression.iri), f"<{expression.iri}>", arguments)
            case "TrueFilter":
                return parse_term(value_text(True))
        if name.startswith("Builtin_"):
            return self._built_in(name.removeprefix("Builtin_"), expression)
        raise _refuse(f"{name} is not supported in an expression")

    def _compare(self, expression: Any) -> Expression:
        if expression.op is None:
            return self.expression(expression.expr)
        left = self.expression(expression.expr)
        if str(expression.op) in ("IN", "NOT IN"):
            others = expression.other
            listed = [] if not isinstance(others, list) else others
            # Equal to one of them, or an error if it is equal to none and one of the comparisons is.
            tests: list[Expression] = [Call("eq", (left, self.expression(o))) for o in listed]
            no: Expression = parse_term(value_text(False))
            made = reduce(lambda a, b: Call("or", (a, b)), tests, no)
            return Call("not", (made,)) if str(expression.op) == "NOT IN" else made
        return Call(_OPERATORS[str(expression.op)], (left, self.expression(expression.other)))

    def _ask(self, pattern: Any, negated: bool) -> Expression:
        from rdflib.plugins.sparql import algebra

        if pattern.name == "GroupGraphPatternSub":
            pattern = algebra.translateGroupGraphPattern(pattern)
        name = self._name("exists")
        outer, self._exists = self._exists, []
        try:
            node = self.node(pattern)
        finally:
            self._exists = outer
        self._exists.append((name, node))
        found = Variable(name)
        return Call("not", (found,)) if negated else found

    def _built_in(self, name: str, expression: Any) -> Expression:
        arguments: list[Expression] = []
        for word in _ARGUMENTS:
            given = _part(expression, word)
            if given is not None:
                several = given if isinstance(given, list) else [given]
                arguments += map(self.expression, several)
        function = name.lower()
        match function:
            case "bound":
                return Call(IS_BOUND, tuple(arguments))
            case "now":
                return self._now
            case "uri":
                function = "iri"
            case "isuri":
                function = "isiri"
            case "rand" | "uuid" | "struuid":
                return Call(_VOLATILE[function], (Variable(ROW),))
            case "bnode":
                return Call(_VOLATILE[function], (Variable(ROW), *arguments))
        return self._call(function, name, tuple(arguments))

    def _call(self, function: str, shown: str, arguments: tuple[Expression, ...]) -> Expression:
        known = FUNCTIONS.get(function)
        if known is None:
            raise _refuse(f"there is no function {shown}")
        if not known.accepts(len(arguments)):
            raise _refuse(f"{shown} does not take {len(arguments)} arguments")
        return Call(function, arguments)

    def _name(self, kind: str) -> str:
        return f"#{kind}{next(self._fresh)}"


def _part(node: Any, name: str) -> Any:
    """A part of a node of rdflib, if it has it; its own `get` gives the name of what is not there."""
    return node[name] if name in node else None  # noqa: SIM401


def _refuse(message: str) -> ProgramError:
    return ProgramError([Problem("sparql", message)])


def _is_variable(term: Any) -> bool:
    return type(term).__name__ == "Variable"


def _is_path(term: Any) -> bool:
    return type(term).__name__.endswith("Path")
