"""Property paths: pairs of nodes that are linked by steps, from the end that is known.

Paths that repeat are evaluated semi-naively: each round follows the pairs that the round before has found.
"""

from __future__ import annotations

from itertools import count
from typing import Generic

from hdlog import interrupts
from hdlog.engines.protocol import F, R, T, Version
from hdlog.program.model import GRAPH, TRIPLE, Atom, Call, Predicate
from hdlog.program.terms import RDF_TYPE, Iri, Term, Variable
from hdlog.query.algebra import Alternative, AnyStep, Path, PathExpression, Repeat, Sequence, Step
from hdlog.query.rows import Names, Rows, RowSets
from hdlog.query.wildcards import Wildcards

_FROM, _TO = "#from", "#to"


class Paths(Generic[R, F, T]):
    def __init__(self, sets: RowSets[R, F, T], wildcards: Wildcards[R, F, T]) -> None:
        self.sets = sets
        self.wildcards = wildcards
        self.engine = sets.engine
        self.snapshot = sets.snapshot

    def evaluate(self, node: Path, seed: Rows[R] | None) -> Rows[R]:
        """The pairs that a path links, those that may agree with a row of the seed at least."""
        return _Walk(self, node, seed).run()


class _Walk(Generic[R, F, T]):
    """One path, in one graph or in each of them."""

    def __init__(self, paths: Paths[R, F, T], node: Path, seed: Rows[R] | None) -> None:
        self.paths, self.sets, self.engine = paths, paths.sets, paths.engine
        self.node, self.seed = node, seed
        self.graph = () if node.graph is None else (node.graph,)
        self.graph_names: Names = frozenset(t.name for t in self.graph if isinstance(t, Variable))
        self._fresh = (f"#step{n}" for n in count())

    def run(self) -> Rows[R]:
        forwards = self._is_known(self.node.subject) or not self._is_known(self.node.object)
        start, end = (
            (self.node.subject, self.node.object) if forwards else (self.node.object, self.node.subject)
        )
        path = self.node.path if forwards else reverse(self.node.path)
        rows = self.follow(self._begin(start), path, _FROM, _TO, start)
        return self._name_ends(rows, start, end)

    def _is_known(self, term: Term) -> bool:
        if isinstance(term, Variable):
            return self.seed is not None and term.name in self.seed.certain
        return True

    def _begin(self, start: Term) -> Rows[R]:
        """What is known of where the path begins, and in which graph."""
        if isinstance(start, Variable):
            known = frozenset({start.name}) | self.graph_names
            if self.seed is None or start.name not in self.seed.certain:
                return self.sets.unit()
            rows = self.sets.distinct(self.sets.keep(self.seed, self.seed.certain & known))
            named = self.sets.extend(rows, _FROM, start, strict=True)
            return self.sets.keep(named, frozenset({_FROM}) | self.graph_names)
        return self.sets.extend(self.sets.unit(), _FROM, start, strict=True)

    def _name_ends(self, rows: Rows[R], start: Term, end: Term) -> Rows[R]:
        """The columns of both ends by their own names; constants and a name that is at both ends select."""
        for column, term in ((_FROM, start), (_TO, end)):
            if isinstance(term, Variable) and term.name not in rows.names:
                rows = self.sets.extend(rows, term.name, Variable(column), strict=True)
            else:
                rows = self.sets.filter(rows, Call("sameterm", (Variable(column), term)))
        return self.sets.keep(rows, rows.names - {_FROM, _TO})

    # Steps.

    def follow(
        self, rows: Rows[R], path: PathExpression, a: str, b: str, start: Term | None = None
    ) -> Rows[R]:
        """Rows with each node that a path leads to from column a, in the new column b; from everywhere if there is no column a."""
        interrupts.check()
        match path:
            case Step(predicate, backwards):
                return self._step(rows, predicate, *((b, a) if backwards else (a, b)))
            case AnyStep(but, backwards):
                return self._any_step(rows, but, *((b, a) if backwards else (a, b)))
            case Sequence(parts):
                return self._sequence(rows, parts, a, b)
            case Alternative(parts):
                several = [self.follow(rows, part, a, b) for part in parts]
                return self.sets.stack(several, rows.names | {a, b} | self.graph_names)
            case Repeat():
                return self._repeat(rows, path, a, b, start)
        raise AssertionError(f"{path} is no path")

    def _step(self, rows: Rows[R], predicate: str, a: str, b: str) -> Rows[R]:
        terms = (Variable(a), Variable(b), *self.graph)
        if predicate == RDF_TYPE:
            return self._triples(rows, (Variable(a), Iri(RDF_TYPE), Variable(b)))
        known = Predicate(predicate + (GRAPH if self.graph else ""), len(terms))
        version = Version[F, T](self.paths.snapshot.table(known))
        joined = self.engine.join(rows.relation, version, terms)
        return Rows(joined, rows.names | {a, b} | self.graph_names, rows.uncertain)

    def _any_step(self, rows: Rows[R], but: frozenset[str], a: str, b: str) -> Rows[R]:
        name = next(self._fresh)
        found = self._triples(rows, (Variable(a), Variable(name), Variable(b)))
        for predicate in sorted(but):
            same = Call("sameterm", (Variable(name), Iri(predicate)))
            found = self.sets.filter(found, Call("not", (same,)))
        return self.sets.keep(found, found.names - {name})

    def _triples(self, rows: Rows[R], terms: tuple[Term, Term, Term]) -> Rows[R]:
        atom = Atom(TRIPLE + (GRAPH if self.graph else ""), (*terms, *self.graph))
        return self.paths.wildcards.join(rows, [atom], rows.names | {v.name for v in atom.variables()})

    def _sequence(self, rows: Rows[R], parts: tuple[PathExpression, ...], a: str, b: str) -> Rows[R]:
        kept = rows.names | {a, b} | self.graph_names
        here = a
        for place, part in enumerate(parts):
            there = b if place == len(parts) - 1 else next(self._fresh)
            rows = self.follow(rows, part, here, there)
            rows = self.sets.keep(rows, kept | {there})
            here = there
        return rows

    # Paths that repeat.

    def _repeat(self, rows: Rows[R], path: Repeat, a: str, b: str, start: Term | None) -> Rows[R]:
        """Each pair once, however many ways there are between its nodes."""
        starts = self._find_starts(rows, a)
        pairs = self._close(path, starts, a, b)
        if path.least == 0:
            same = self._find_same(starts, a, b, start)
            pairs = self.sets.distinct(self.sets.stack([pairs, same], pairs.names))
        return self.sets.join(rows, pairs) if rows.names else pairs

    def _find_starts(self, rows: Rows[R], a: str) -> Rows[R]:
        """Where paths begin, each once; everywhere if that is not known."""
        known = rows.names & (frozenset({a}) | self.graph_names)
        return self.sets.distinct(self.sets.keep(rows, known)) if a in rows.names else self.sets.unit()

    def _close(self, path: Repeat, starts: Rows[R], a: str, b: str) -> Rows[R]:
        """The pairs that one step or more link."""
        names = frozenset({a, b}) | self.graph_names
        found = self.sets.distinct(self.sets.keep(self.follow(starts, path.path, a, b), names))
        if path.most == 1:
            return found
        there = next(self._fresh)
        delta, rounds = found, [found]
        while not self._is_empty(delta):
            reached = self.sets.keep(self.follow(delta, path.path, b, there), names - {b} | {there})
            moved = self.sets.extend(reached, _MOVED, Variable(there), strict=True)
            renamed = self._rename(self.sets.keep(moved, names - {b} | {_MOVED}), b)
            delta = self.sets.without(self.sets.distinct(renamed), found, names)
            delta = Rows(self.engine.keep(delta.relation), delta.names)
            rounds.append(delta)
            found = self.sets.stack([found, delta], names)
        return found

    def _rename(self, rows: Rows[R], name: str) -> Rows[R]:
        renamed = self.sets.extend(rows, name, Variable(_MOVED), strict=True)
        return self.sets.keep(renamed, renamed.names - {_MOVED})

    def _is_empty(self, rows: Rows[R]) -> bool:
        return self.engine.is_empty(self.engine.keep(rows.relation))

    def _find_same(self, starts: Rows[R], a: str, b: str, start: Term | None) -> Rows[R]:
        """Nodes that are linked with themselves by no step: a term that the query names is, wherever it occurs; others are those of the
        graph."""
        if start is not None and not isinstance(start, Variable):
            nodes = self._in_graphs(starts)
        else:
            nodes = self._find_nodes(starts, a)
        return self.sets.extend(nodes, b, Variable(a), strict=True)

    def _in_graphs(self, starts: Rows[R]) -> Rows[R]:
        """A term in each graph there is, where these are asked for."""
        missing = self.graph_names - starts.names
        if not missing:
            return starts
        (name,) = missing
        s, p, o = (next(self._fresh) for _ in range(3))
        everything = self._triples(self.sets.unit(), (Variable(s), Variable(p), Variable(o)))
        graphs = self.sets.distinct(self.sets.keep(everything, frozenset({name})))
        return self.sets.join(starts, graphs)

    def _find_nodes(self, starts: Rows[R], a: str) -> Rows[R]:
        """The starts that are subjects or objects of the graph; all of these, if it is not known where to start."""
        p, other = next(self._fresh), next(self._fresh)
        names = frozenset({a}) | self.graph_names
        ends = [
            self._triples(starts, (Variable(a), Variable(p), Variable(other))),
            self._triples(starts, (Variable(other), Variable(p), Variable(a))),
        ]
        return self.sets.distinct(self.sets.stack([self.sets.keep(e, names) for e in ends], names))


_MOVED = "#moved"


def reverse(path: PathExpression) -> PathExpression:
    """From the other end."""
    match path:
        case Step(predicate, backwards):
            return Step(predicate, not backwards)
        case AnyStep(but, backwards):
            return AnyStep(but, not backwards)
        case Sequence(parts):
            return Sequence(tuple(map(reverse, reversed(parts))))
        case Alternative(parts):
            return Alternative(tuple(map(reverse, parts)))
        case Repeat(inner, least, most):
            return Repeat(reverse(inner), least, most)
