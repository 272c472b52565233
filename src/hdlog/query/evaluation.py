"""Queries evaluated: nodes of the algebra into rows, by the operations that every engine has.

A node is evaluated with what is known of rows it will be joined with, its *seed*: conjunctions begin there, so that a query that touches little takes
little. It is told which names are *needed*, so that others are added up and not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic

from hdlog import interrupts
from hdlog.engines.protocol import F, R, T, Version
from hdlog.program.model import Atom, Predicate, Rule
from hdlog.program.terms import Variable, boolean
from hdlog.query.algebra import (
    Aggregate,
    Condition,
    Extend,
    Given,
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
    condition_names,
    expression_names,
    mentioned_names,
    names_of,
)
from hdlog.query.answers import Answers, arrange
from hdlog.query.bodies import Bodies
from hdlog.query.grouping import Grouping
from hdlog.query.paths import Paths
from hdlog.query.rows import NO_NAMES, Names, Rows, RowSets, variables
from hdlog.query.wildcards import Wildcards

SEED, MATCH = "#seed", "#match"
_MOST_SEEDS = 100_000
"""Rows up to which others are looked for from them on."""


class Evaluation(Generic[R, F, T]):
    def __init__(self, bodies: Bodies[R, F, T]) -> None:
        self.bodies = bodies
        self.snapshot = bodies.snapshot
        self.engine = bodies.engine
        self.sets = RowSets(self.snapshot)
        self.wildcards = Wildcards(self.sets)
        self.paths = Paths(self.sets, self.wildcards)
        self.grouping = Grouping(self.sets)
        self.given: Rows[R] | None = None
        """of a query that is asked with some; no two of them are the same"""
        self._scope: Rows[R] | None = None
        """within an EXISTS, the rows that it is asked for"""

    def evaluate(self, node: Node, seed: Rows[R] | None = None, needed: Names | None = None) -> Rows[R]:
        """The rows of a node that may agree with a row of the seed; of their names only the needed ones, if it says which."""
        interrupts.check()
        names = names_of(node) | (self._scope.names if self._scope is not None else frozenset())
        wanted = names if needed is None else names & needed
        return self.sets.keep(self._evaluate(node, seed, wanted), wanted)

    def _evaluate(self, node: Node, seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        match node:
            case Match(atoms):
                return self._match(atoms, seed, wanted)
            case Values(names, terms):
                return self.sets.make(names, terms)
            case Given():
                assert self.given is not None, "rows are given with the query"
                return self.given
            case Join():
                return self._join(node, seed, wanted)
            case LeftJoin():
                return self._left_join(node, seed, wanted)
            case Union(parts):
                several = [self.evaluate(part, seed, wanted) for part in parts]
                return self.sets.stack(several, frozenset().union(*(rows.names for rows in several)))
            case Minus():
                return self._minus(node, seed, wanted)
            case Select(inner, condition):
                rows = self.evaluate(inner, seed, wanted | condition_names(condition))
                return self.select(rows, condition)
            case Extend(inner, name, value, strict):
                below = self._narrow(seed, names_of(inner))
                rows = self.evaluate(inner, below, wanted | condition_names(value))
                return self.extend(rows, name, value, strict)
            case Group():
                return self._group(node, seed)
            case Selection():
                return self._select_rows(node, seed)
            case Path():
                return self.paths.evaluate(node, self._narrow(seed, names_of(node)))
        raise AssertionError(f"{node} is no node")

    # Conjunctions.

    def _match(self, atoms: Sequence[Atom], seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        plain = [atom for atom in atoms if not atom.is_triple]
        others = [atom for atom in atoms if atom.is_triple]
        names = names_of(Match(tuple(atoms)))
        waiting = frozenset(v.name for atom in others for v in atom.variables())
        rows = self._match_plain(plain, self._narrow(seed, names), wanted | waiting)
        return self.wildcards.join(rows, others, wanted) if others else rows

    def _match_plain(self, atoms: Sequence[Atom], seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        names = frozenset(v.name for atom in atoms for v in atom.variables())
        given: dict[Predicate, F] = {}
        if seed is not None:
            known = variables(seed.certain)
            facts = self.engine.distinct(self.engine.project(seed.relation, known))
            seeds = Atom(SEED, known)
            given = {seeds.predicate: facts}
            atoms, names = [seeds, *atoms], names | seed.certain
        if not atoms:
            return self.sets.unit()
        head = Atom(MATCH, variables(names & wanted))
        derived = self.bodies.derive(Rule((head,), tuple(atoms)), given)
        return Rows(self.engine.scan(derived, head.terms), names & wanted)

    def _narrow(self, seed: Rows[R] | None, names: Names) -> Rows[R] | None:
        """A seed without names that mean something else here, and without uncertain ones; None if nothing is left of it."""
        if seed is None or not seed.certain & names:
            return None
        return self.sets.keep(seed, seed.certain & names)

    def _make_seed(self, rows: Rows[R], otherwise: Rows[R] | None = None) -> Rows[R] | None:
        """Rows as a seed for what they will be joined with, unless they are many."""
        if rows.certain and self.engine.count(rows.relation) <= _MOST_SEEDS:
            return self.sets.keep(rows, rows.certain)
        return otherwise

    # Joins.

    def _join(self, node: Join, seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        shared = names_of(node.left) & names_of(node.right)
        left = self.evaluate(node.left, seed, wanted | shared)
        direct = self._look_up(left, node.right)
        if direct is not None:
            return direct
        if isinstance(node.left, Given) and isinstance(node.right, Match) and left.names <= shared:
            return self._match(node.right.atoms, left, wanted)  # which begins with what is given
        right = self.evaluate(node.right, self._make_seed(left, seed), wanted | shared)
        return self.sets.join(left, right)

    def _look_up(self, left: Rows[R], right: Node) -> Rows[R] | None:
        """Rows with the facts of a single atom, by an index of its table."""
        if not isinstance(right, Match) or len(right.atoms) != 1 or right.atoms[0].is_triple:
            return None
        (atom,), names = right.atoms, names_of(right)
        if names & left.uncertain or not names & left.names:
            return None
        version = Version[F, T](self.snapshot.table(atom.predicate))
        joined = self.engine.join(left.relation, version, atom.terms)
        return Rows(joined, left.names | names, left.uncertain)

    def _left_join(self, node: LeftJoin, seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        asked = wanted if node.condition is None else wanted | condition_names(node.condition)
        shared = names_of(node.left) & names_of(node.right)
        left = self.evaluate(node.left, seed, asked | shared)
        # A join gives values to names of the left that have none: copies tell which row it was.
        copies = {name: f"#before {name}" for name in left.uncertain & shared}
        marked = left
        for name, copy in copies.items():
            marked = self.sets.extend(marked, copy, Variable(name))
        matched = self._look_up(marked, node.right)
        if matched is None:
            right = self.evaluate(node.right, self._make_seed(left, seed), asked | shared)
            matched = self.sets.join(marked, right)
        if node.condition is not None:
            matched = self.select(matched, node.condition)
        same = marked.names - copies.keys()
        alone = self.sets.keep(self.sets.without(marked, matched, same), left.names)
        return self.sets.stack([matched, alone], (left.names | matched.names) - set(copies.values()))

    def _minus(self, node: Minus, seed: Rows[R] | None, wanted: Names) -> Rows[R]:
        shared = names_of(node.left) & names_of(node.right)
        left = self.evaluate(node.left, seed, wanted | shared)
        if not shared:
            return left
        with self._outside_of_exists():
            found = self.evaluate(node.right, self._make_seed(left), shared)
        kept = []
        for part in self.sets.split_by_bound(left, shared):
            rest = part
            for other in self.sets.split_by_bound(self.sets.distinct(found), shared):
                common = part.names & other.names & shared
                if common:
                    rest = self.sets.without(rest, other, common)
            kept.append(rest)
        return self.sets.stack(kept, left.names)

    def _group(self, node: Group, seed: Rows[R] | None) -> Rows[R]:
        asked = frozenset(node.keys).union(*(aggregate_names(a, node.node) for a in node.aggregates))
        with self._outside_of_exists():
            rows = self.evaluate(node.node, self._narrow(seed, frozenset(node.keys)), asked)
        return self.grouping.group(rows, node)

    # Expressions.

    def select(self, rows: Rows[R], condition: Condition) -> Rows[R]:
        marked = self._decide_exists(self._look_around(rows, condition), condition)
        kept = self.sets.filter(marked, condition.expression)
        return self.sets.keep(kept, kept.names - {name for name, _ in condition.exists})

    def extend(self, rows: Rows[R], name: str, value: Condition, strict: bool = False) -> Rows[R]:
        marked = self._decide_exists(self._look_around(rows, value), value)
        extended = self.sets.extend(marked, name, value.expression, strict)
        return self.sets.keep(extended, extended.names - {inner for inner, _ in value.exists})

    def _look_around(self, rows: Rows[R], condition: Condition) -> Rows[R]:
        """Within an EXISTS, names that a condition asks for have the values of the row that it is asked for."""
        if self._scope is None:
            return rows
        missing = condition_names(condition) & self._scope.names - rows.names
        if not missing:
            return rows
        return self.sets.join(rows, self.sets.distinct(self.sets.keep(self._scope, missing | rows.names)))

    def _decide_exists(self, rows: Rows[R], condition: Condition) -> Rows[R]:
        """Rows with a column for each EXISTS of a condition, which says whether there is a match."""
        for name, node in condition.exists:
            keys = rows.names & mentioned_names(node)
            there = self._find_matching(rows, node, keys)
            answers = ((self.sets.matching, True), (self.sets.without, False))
            parts = [
                self.sets.extend(compare(rows, there, keys), name, boolean(value), strict=True)
                for compare, value in answers
            ]
            rows = self.sets.stack(parts, rows.names | {name})
        return rows

    def _find_matching(self, rows: Rows[R], node: Node, keys: Names) -> Rows[R]:
        """The values of some names, each once, with which a node has rows; names without a value may have any there."""
        own = self.sets.distinct(self.sets.keep(rows, keys))
        found = []
        before = self._scope
        for part in self.sets.split_by_bound(own, keys):
            self._scope = part
            try:
                matches = self.sets.join(part, self.evaluate(node, self._make_seed(part), part.names))
            finally:
                self._scope = before
            found.append(self.sets.complete(self.sets.keep(matches, part.names), keys))
        return self.sets.distinct(self.sets.stack(found, keys))

    @contextmanager
    def _outside_of_exists(self) -> Iterator[None]:
        """A sub-query, a group, and what is taken away see nothing of the rows around them."""
        before, self._scope = self._scope, None
        try:
            yield
        finally:
            self._scope = before

    # Queries, and queries within them.

    def _select_rows(self, node: Selection, seed: Rows[R] | None) -> Rows[R]:
        if node.is_cut:
            # Not seeded: other rows would be the first then.
            answers = self.answer(node)
            return self.sets.make(answers.names, list(answers.terms()))
        names = frozenset(node.names)
        with self._outside_of_exists():
            rows = self.sets.complete(self.evaluate(node.node, self._narrow(seed, names), names), names)
        return self.sets.distinct(rows) if node.distinct else rows

    def answer(self, query: Selection, seed: Rows[R] | None = None) -> Answers:
        """The rows that a query asks for, in its order."""
        names = frozenset(query.names)
        asked = names.union(*(condition_names(key) for key, _ in query.order))
        with self._outside_of_exists():
            rows = self.sets.complete(self.evaluate(query.node, seed, asked), asked)
        keys = [f"#key{number}" for number in range(len(query.order))]
        for name, (condition, _) in zip(keys, query.order, strict=True):
            rows = self.extend(rows, name, condition)
        columns, counts = self.engine.collect(rows.relation, [*query.names, *keys])
        ordered = list(zip(columns[len(names) :], (falls for _, falls in query.order), strict=True))
        own = columns[: len(names)]
        return arrange(self.engine.dictionary, query, own, counts, ordered, rows.uncertain)


def aggregate_names(aggregate: Aggregate, node: Node) -> Names:
    """What an aggregate asks for: rows that are counted once each need all their names."""
    if aggregate.argument is None:
        return names_of(node) if aggregate.distinct else NO_NAMES
    return frozenset(expression_names(aggregate.argument))
