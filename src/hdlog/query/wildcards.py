"""Triples of any predicate: atoms with a variable in place of a predicate or class, over all predicates there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic

from hdlog.engines.protocol import F, R, T, Version
from hdlog.program.model import GRAPH, Atom, Call, Predicate
from hdlog.program.terms import RDF_TYPE, Iri, Term, Variable
from hdlog.query.rows import Names, Rows, RowSets

_TYPE = Iri(RDF_TYPE)


class Wildcards(Generic[R, F, T]):
    def __init__(self, sets: RowSets[R, F, T]) -> None:
        self.sets = sets
        self.engine = sets.engine
        self.snapshot = sets.snapshot

    def join(self, rows: Rows[R], atoms: Sequence[Atom], wanted: Names) -> Rows[R]:
        """Rows with each match of the atoms; those that share most with what is known come first."""
        waiting = list(atoms)
        while waiting:
            atom = max(waiting, key=lambda a: _count_known(a, rows.names))
            waiting.remove(atom)
            later = frozenset(v.name for a in waiting for v in a.variables())
            rows = self.sets.keep(self._join_atom(rows, atom), wanted | later)
        return rows

    def _join_atom(self, rows: Rows[R], atom: Atom) -> Rows[R]:
        s, p, o, *graph = atom.terms
        names = rows.names | {v.name for v in atom.variables()}
        parts = [
            part
            for predicate in self._find_predicates(rows, atom)
            for part in self._join_predicate(rows, predicate, s, p, o, graph)
        ]
        return self.sets.stack(parts, names)

    def _find_predicates(self, rows: Rows[R], atom: Atom) -> list[Predicate]:
        """Those that a match may be of: where values of the predicate or the class are known, no others."""
        has_graph = atom.predicate.has_graph
        _, p, o, *_ = atom.terms
        known = self._find_known(rows, o if p == _TYPE else p)
        if known is None:
            return [q for q in self.snapshot.sizes() if q.has_graph == has_graph and _is_triple(q)]
        suffix, more = (GRAPH, 1) if has_graph else ("", 0)
        found = []
        for name in known:
            if p == _TYPE:
                found.append(Predicate(name + suffix, 1 + more))
            elif name == RDF_TYPE:
                found += [q for q in self.snapshot.sizes() if _is_class(q, has_graph)]
            if p != _TYPE:
                found.append(Predicate(name + suffix, 2 + more))
        if p == _TYPE:
            found.append(Predicate(RDF_TYPE + suffix, 2 + more))
        return [q for q in dict.fromkeys(found) if self.snapshot.has(q)]

    def _find_known(self, rows: Rows[R], term: Term) -> list[str] | None:
        """The IRIs that a term stands for in some rows; None if that may be any."""
        if isinstance(term, Iri):
            return [term.value]
        if not isinstance(term, Variable) or term.name not in rows.certain:
            return None
        values = self.engine.keep(self.engine.distinct(self.engine.project(rows.relation, (term,))))
        (texts,) = self.engine.decode(values).texts()
        return [text[1:-1] for text in texts if text.startswith("<")]

    def _join_predicate(
        self, rows: Rows[R], predicate: Predicate, s: Term, p: Term, o: Term, graph: Sequence[Term]
    ) -> Iterator[Rows[R]]:
        """The matches that are facts of one predicate."""
        plain = predicate.without_graph()
        version = Version[F, T](self.snapshot.table(predicate))
        if plain.arity == 1:
            fixed = [(p, _TYPE), (o, Iri(plain.name))]
            terms: tuple[Term, ...] = (s, *graph)
        elif plain.name == RDF_TYPE or p != _TYPE:
            fixed = [(p, Iri(plain.name))]
            terms = (s, o, *graph)
        else:
            return
        relation, names = rows.relation, rows.names
        for term, value in fixed:
            if isinstance(term, Variable) and term.name in names:
                relation = self.engine.filter(relation, Call("sameterm", (term, value)))
            elif not isinstance(term, Variable) and term != value:
                return
        if self.engine.is_empty(relation):
            return
        relation = self.engine.join(relation, version, terms)
        names = names | {t.name for t in terms if isinstance(t, Variable)}
        for term, value in fixed:
            if isinstance(term, Variable) and term.name not in rows.names:
                if term.name in names:
                    relation = self.engine.filter(relation, Call("sameterm", (term, value)))
                else:
                    relation = self.engine.extend(relation, value, term.name)
                    names = names | {term.name}
        yield Rows(relation, names, rows.uncertain)


def _is_triple(predicate: Predicate) -> bool:
    return predicate.without_graph().arity in (1, 2)


def _is_class(predicate: Predicate, has_graph: bool) -> bool:
    return predicate.has_graph == has_graph and predicate.without_graph().arity == 1


def _count_known(atom: Atom, names: Names) -> int:
    return sum(not isinstance(t, Variable) or t.name in names for t in atom.terms)
