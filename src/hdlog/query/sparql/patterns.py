"""Patterns: triples, paths, graphs, groups, and what is around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from itertools import count
from typing import Any

from hdlog.program.model import GRAPH, TRIPLE, Atom, Expression, in_graph, triple_atom
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import BlankNode, Constant, Iri, Term, Variable
from hdlog.query.algebra import (
    Aggregate,
    Condition,
    Extend,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    Node,
    Path,
    Select,
    Selection,
    Union,
    Values,
    names_of,
)
from hdlog.query.sparql.expressions import Expressions, translate_term
from hdlog.query.sparql.parsing import is_path, is_variable, part, refuse
from hdlog.query.sparql.paths import translate_path
from hdlog.reading.values import value_text

Triple = tuple[Term, Term, Term]
Quad = tuple[Term, Term, Term, Term | None]
"""A triple and its graph, the default one if it is None."""
_AGGREGATES = {
    "Count": "count",
    "Sum": "sum",
    "Min": "min",
    "Max": "max",
    "Avg": "avg",
    "Sample": "sample",
    "GroupConcat": "group_concat",
}


@dataclass(frozen=True)
class Dataset:
    """Which graphs a query is about, where it says so; otherwise the default graph, and all that are named."""

    default: tuple[Iri, ...] | None = None
    named: tuple[Iri, ...] | None = None

    @staticmethod
    def read(clauses: Any) -> Dataset:
        if not clauses:
            return Dataset()
        default = tuple(Iri(str(c.default)) for c in clauses if c.default)
        named = tuple(Iri(str(c.named)) for c in clauses if c.named)
        return Dataset(default, named)


@dataclass
class Translation:
    dataset: Dataset = field(default_factory=Dataset)
    _fresh: Iterator[int] = field(default_factory=count)
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
        names = tuple(dict.fromkeys(str(v) for v in node.PV if is_variable(v)))
        keys: Sequence[Any] = ()
        node = node.p
        if node.name == "OrderBy":
            node, keys = node.p, node.expr
        order = tuple((self.condition(key.expr), key.order == "DESC") for key in keys)
        return Selection(self.node(node), names, distinct, order, start, length)

    def template(self, triples: Iterable[Any]) -> Iterator[Triple]:
        for s, p, o in triples:
            yield self.template_term(s), self.template_term(p), self.template_term(o)

    def template_term(self, term: Any) -> Term:
        return BlankNode(str(term)) if type(term).__name__ == "BNode" else translate_term(term)

    def quads(self, clause: Any, graph: Iri | None) -> Iterator[Quad]:
        """The triples of a template, with their graphs; `graph` is that of those outside of any."""
        for triple in self.template(part(clause, "triples") or ()):
            yield (*triple, graph)
        for name, triples in (part(clause, "quads") or {}).items():
            own = translate_term(name)
            for triple in self.template(triples):
                yield (*triple, own)

    def matches(self, clause: Any) -> Node:
        """The quads of a template as a pattern."""
        node: Node = self.triples(part(clause, "triples") or ())
        for name, triples in (part(clause, "quads") or {}).items():
            before, self._graph = self._graph, translate_term(name)
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
        raise refuse(f"{node.name} is not supported")

    def triples(self, triples: Sequence[Any]) -> Node:
        """Triples that are to be matched together, and paths beside them."""
        atoms: list[Atom] = []
        others: list[Node] = []
        for s, p, o in triples:
            subject, value = translate_term(s), translate_term(o)
            if isinstance(subject, Constant) and not isinstance(subject, Iri | BlankNode):
                others.append(Values((), ()))  # no triple has such a subject
            if is_path(p):
                others.append(self._path(subject, p, value))
                continue
            others += self._match_in_default(triple_atom(subject, translate_term(p), value), atoms)
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
        before, self._graph = self._graph, translate_term(node.term)
        try:
            inner = self.node(node.p)
        finally:
            self._graph = before
        term = translate_term(node.term)
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
        constant = translate_term(term)
        assert isinstance(constant, Constant), "values are constants"
        return constant

    def _group(self, node: Any, calls: Sequence[Any]) -> Node:
        inner = self.node(node.p)
        keys = []
        for key in node.expr or ():
            if is_variable(key):
                keys.append(str(key))
            else:
                name = self._name("key")
                inner = Extend(inner, name, self.condition(key))
                keys.append(name)
        return Group(inner, tuple(dict.fromkeys(keys)), tuple(self._aggregate(call) for call in calls))

    def _aggregate(self, call: Any) -> Aggregate:
        function = _AGGREGATES.get(call.name.removeprefix("Aggregate_"))
        if function is None:
            raise refuse(f"{call.name} is not supported")
        everything = isinstance(call.vars, str) and str(call.vars) == "*" and not is_variable(call.vars)
        argument = None if everything else self._argument(call.vars)
        given = part(call, "separator")
        separator = " " if given is None else str(given)
        distinct = bool(part(call, "distinct"))
        return Aggregate(function, argument, str(call.res), distinct, separator)  # type: ignore[arg-type]

    # Paths.

    def _path(self, subject: Term, path: Any, value: Term) -> Node:
        graph = self._graph
        if graph is None and self.dataset.default is not None:
            if len(self.dataset.default) != 1:
                raise refuse("a path over several graphs of a FROM is not supported; give one FROM")
            graph = self.dataset.default[0]
        return Path(subject, translate_path(path), value, graph)

    # Expressions.

    def _argument(self, expression: Any) -> Expression:
        condition = self.condition(expression)
        if condition.exists:
            raise refuse("EXISTS within an aggregate is not supported; bind it to a variable before")
        return condition.expression

    def condition(self, expression: Any) -> Condition:
        made = Expressions(self.node, self._name, self._now)
        return Condition(made.expression(expression), tuple(made.exists))

    def _name(self, kind: str) -> str:
        return f"#{kind}{next(self._fresh)}"
