"""Why a fact holds: a smallest derivation, from the rules of the program down to what is asserted.

Facts are asked for backwards, level by level: a fact is derived by rules from others, whose derivations are looked for in the next level. The
search ends with the first level in which the fact can be derived from asserted ones, so no derivation is less deep; of those it is the one with
the fewest steps. Only facts that a derivation of the fact may use are looked at, and no fact is used to derive itself.

Where facts have very many derivations, as with rules that join a predicate with itself, a few of each are drawn, more if these do not suffice. The
derivation that is found is right then, but there may be a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from hdlog import interrupts
from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T
from hdlog.errors import LimitReached
from hdlog.program.model import Aggregate, Atom, Predicate, Rule
from hdlog.program.terms import Variable
from hdlog.query.algebra import Node
from hdlog.query.evaluation import Evaluation
from hdlog.query.rows import Rows
from hdlog.query.rule_bodies import translate_body
from hdlog.reasoning import Reasoning

Fact = tuple[Predicate, tuple[int, ...]]
"""With the engine's ids of its terms."""
_MOST_FACTS = 2_000_000
"""That are looked at before the search is given up."""
_A_LEVEL, _A_FACT = 100, 32
"""Derivations of all facts of a level, and of one of them, from which on only some are drawn; at least one of each is."""
_WIDER = 8
"""How many times as many are drawn if those did not suffice."""


@dataclass(frozen=True)
class Derivation:
    """A rule, and the match of its body by which it derives a fact."""

    rule: Rule
    fact: Fact
    values: Mapping[str, int]
    children: tuple[Fact, ...]
    """the facts that its atoms match"""


@dataclass(frozen=True)
class Proof:
    """A fact with the derivation of it, and those of what that uses; without one it is asserted."""

    fact: Fact
    derivation: Derivation | None = None
    children: tuple[Proof, ...] = ()

    def size(self) -> int:
        total, waiting = 0, [self]
        while waiting:
            proof = waiting.pop()
            total += 1
            waiting += proof.children
        return total


@dataclass
class _Seen:
    """What is known of a fact."""

    asserted: bool = False
    derivations: list[Derivation] = field(default_factory=list)
    used_by: list[Derivation] = field(default_factory=list)
    proven: bool = False


class Search(Generic[R, F, T]):
    def __init__(self, reasoning: Reasoning[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
        self.evaluation = evaluation
        self.engine = reasoning.engine
        self.kept = reasoning.driver.kept
        self._rules: dict[Predicate, list[tuple[Rule, Atom]]] = {}
        for rule in reasoning.driver.planning.rules:
            for head in rule.heads:
                self._rules.setdefault(head.predicate, []).append((rule, head))
        self._bodies: dict[tuple[Rule, Atom], tuple[Node, list[str]]] = {}
        self._seen: dict[Fact, _Seen] = {}
        self._missing: dict[int, int] = {}
        """by derivation, how many of its facts are yet to be proven"""
        self._id_type = self.engine.dictionary.encode([]).dtype
        self._width = 1
        self.is_smallest = True
        """whether all derivations were looked at, so that none is less deep"""

    def prove(self, goal: Fact, several: int = 1) -> list[Proof]:
        """The smallest derivations of a fact that holds, the first of them best; they differ in the last step."""
        self._width = 1
        while not self._explore(goal) and not self.is_smallest:
            self._width *= _WIDER
        costs = self._find_costs()
        if self._seen[goal].asserted:
            return [Proof(goal)]
        last = [d for d in self._seen[goal].derivations if all(c in costs for c in d.children)]
        last.sort(key=lambda d: sum(costs[c][0] for c in d.children))
        return [self._build(goal, d, costs) for d in last[:several]]

    # Looking for derivations.

    def _explore(self, goal: Fact) -> bool:
        """Look for derivations until there is one; whether there is."""
        level = [goal]
        self._seen, self._missing, self.is_smallest = {goal: _Seen()}, {}, True
        self._chance = np.random.default_rng(1)
        while level and not self._seen[goal].proven:
            interrupts.check()
            if len(self._seen) > _MOST_FACTS:
                raise LimitReached(
                    f"more than {_MOST_FACTS:,} facts may be part of a derivation; none was found by then"
                )
            level = self._expand(level)
        return self._seen[goal].proven

    def _expand(self, level: Sequence[Fact]) -> list[Fact]:
        """Find what derives some facts; the facts that are seen for the first time by that."""
        by_predicate: dict[Predicate, list[tuple[int, ...]]] = {}
        for predicate, row in level:
            by_predicate.setdefault(predicate, []).append(row)
        fresh: list[Fact] = []
        most = self._width * max(1, min(_A_FACT, _A_LEVEL // len(level)))
        for predicate, rows in by_predicate.items():
            facts = self._encode(predicate, rows)
            asserted = self._select_asserted(predicate, facts)
            for row in asserted:
                self._seen[(predicate, row)].asserted = True
                self._note_proven((predicate, row))
            rest = [row for row in rows if row not in asserted]
            if rest:
                others = facts if len(rest) == len(rows) else self._encode(predicate, rest)
                for rule, head in self._rules.get(predicate, ()):
                    for derivation in self._match(rule, head, others, most):
                        fresh += self._note(derivation)
        return fresh

    def _encode(self, predicate: Predicate, rows: Sequence[tuple[int, ...]]) -> F:
        columns = [np.array(c, self._id_type) for c in zip(*rows, strict=True)]
        return self.engine.facts_from_columns(columns, len(rows))

    def _select_asserted(self, predicate: Predicate, facts: F) -> set[tuple[int, ...]]:
        table = self.kept.find(predicate)
        if table is None:
            return set()
        found = self.engine.select_asserted(table, facts)
        return set(self._rows_of(found, predicate.arity))

    def _rows_of(self, facts: F, arity: int) -> Iterator[tuple[int, ...]]:
        names = [f"a{i}" for i in range(arity)]
        relation = self.engine.scan(facts, tuple(map(Variable, names)))
        columns, counts = self.engine.collect(relation, names)
        return zip(*(c.tolist() for c in columns), strict=True) if names else iter([()] * len(counts))

    def _match(self, rule: Rule, head: Atom, facts: F, most: int) -> Iterator[Derivation]:
        """The matches of a rule by which it derives some facts; of those for one fact at most so many."""
        names = sorted({v.name for v in head.variables()})
        node, wanted = self._body(rule, head, names)
        goals = Rows(self.engine.scan(facts, head.terms), frozenset(names))
        if self.engine.is_empty(goals.relation):
            return
        if rule.body and isinstance(rule.body[0], Aggregate):
            yield from self._aggregated(rule, head, goals, names)
            return
        self.evaluation.given = goals
        rows = self.evaluation.evaluate(node, None, frozenset(wanted))
        columns, counts = self.engine.collect(rows.relation, wanted)
        chosen = self._draw(
            [c for n, c in zip(wanted, columns, strict=True) if n in names], len(counts), most
        )
        constants = self._constants(rule, head)
        drawn = (c[chosen].tolist() for c in columns)
        for values in zip(*drawn, strict=True) if wanted else [()] * min(1, len(counts)):
            binding = {**constants, **dict(zip(wanted, values, strict=True))}
            children = tuple(self._fact(atom, binding) for atom in rule.atoms())
            yield Derivation(rule, self._fact(head, binding), binding, children)

    def _draw(self, heads: Sequence[Ids], rows: int, most: int) -> NDArray[np.int64]:
        """Some rows of each head: all, unless there are too many."""
        if rows <= most:
            return np.arange(rows)
        order = self._chance.permutation(rows)
        if not heads:
            self.is_smallest = False
            return order[:most]
        group = np.unique(np.stack([c[order] for c in heads], axis=1), axis=0, return_inverse=True)[1].ravel()
        by_group = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(group[by_group]) != 0))
        place = np.arange(rows) - np.repeat(starts, np.diff(np.append(starts, rows)))
        kept = by_group[place < most]
        self.is_smallest = self.is_smallest and len(kept) == rows
        return order[kept]

    def _aggregated(self, rule: Rule, head: Atom, goals: Rows[R], names: list[str]) -> Iterator[Derivation]:
        """An aggregate is told of as a whole."""
        columns, _ = self.engine.collect(goals.relation, names)
        constants = self._constants(rule, head)
        for values in zip(*(c.tolist() for c in columns), strict=True) if names else [()]:
            binding = {**constants, **dict(zip(names, values, strict=True))}
            yield Derivation(rule, self._fact(head, binding), binding, ())

    def _body(self, rule: Rule, head: Atom, names: list[str]) -> tuple[Node, list[str]]:
        if (rule, head) not in self._bodies:
            inner = {v.name for atom in rule.atoms() for v in atom.variables()}
            aggregated = bool(rule.body) and isinstance(rule.body[0], Aggregate)
            node = translate_body(() if aggregated else rule.body, names)
            self._bodies[rule, head] = node, sorted(inner | set(names))
        return self._bodies[rule, head]

    def _constants(self, rule: Rule, head: Atom) -> dict[str, int]:
        """The ids of constants, by the text that stands for them."""
        terms = {t for atom in (head, *rule.atoms()) for t in atom.terms if not isinstance(t, Variable)}
        if not terms:
            return {}
        ordered = sorted(terms, key=str)
        ids = self.engine.dictionary.encode_terms(ordered)
        return {f"#constant {t!r}": int(i) for t, i in zip(ordered, ids.tolist(), strict=True)}

    def _fact(self, atom: Atom, binding: Mapping[str, int]) -> Fact:
        row = tuple(
            binding[t.name] if isinstance(t, Variable) else binding[f"#constant {t!r}"] for t in atom.terms
        )
        return atom.predicate, row

    def _note(self, derivation: Derivation) -> list[Fact]:
        """Remember a derivation; the facts of it that are new."""
        self._seen[derivation.fact].derivations.append(derivation)
        fresh = []
        missing = 0
        for child in dict.fromkeys(derivation.children):
            known = self._seen.get(child)
            if known is None:
                known = self._seen[child] = _Seen()
                fresh.append(child)
            known.used_by.append(derivation)
            missing += not known.proven
        self._missing[id(derivation)] = missing
        if not missing:
            self._note_proven(derivation.fact)
        return fresh

    def _note_proven(self, fact: Fact) -> None:
        """A fact can be derived from asserted ones; what follows from that."""
        waiting = [fact]
        while waiting:
            known = self._seen[waiting.pop()]
            if known.proven:
                continue
            known.proven = True
            for derivation in known.used_by:
                self._missing[id(derivation)] -= 1
                if not self._missing[id(derivation)]:
                    waiting.append(derivation.fact)

    # The smallest of them.

    def _find_costs(self) -> dict[Fact, tuple[int, Derivation | None]]:
        """How many steps each fact that can be derived takes at least, and the last of them."""
        costs: dict[Fact, tuple[int, Derivation | None]] = {}
        missing = {id(d): len(set(d.children)) for seen in self._seen.values() for d in seen.derivations}
        waiting: list[tuple[int, int, Fact, Derivation | None]] = []
        number = 0
        for fact, seen in self._seen.items():
            if seen.asserted:
                heappush(waiting, (1, (number := number + 1), fact, None))
            for derivation in seen.derivations:
                if not derivation.children:
                    heappush(waiting, (1, (number := number + 1), fact, derivation))
        while waiting:
            cost, _, fact, last = heappop(waiting)
            if fact in costs:
                continue
            costs[fact] = cost, last
            for user in self._seen[fact].used_by:
                missing[id(user)] -= 1
                if not missing[id(user)] and user.fact not in costs:
                    total = 1 + sum(costs[c][0] for c in user.children)
                    heappush(waiting, (total, (number := number + 1), user.fact, user))
        return costs

    def _build(
        self, goal: Fact, last: Derivation, costs: Mapping[Fact, tuple[int, Derivation | None]]
    ) -> Proof:
        """The derivation as a tree; facts that are used several times are there several times, as one."""
        made: dict[Fact, Proof] = {}
        waiting: list[tuple[Fact, Derivation | None]] = [(goal, last)]
        while waiting:
            fact, own = waiting[-1]
            if fact in made:
                waiting.pop()
                continue
            children = () if own is None else own.children
            unknown = [c for c in children if c not in made]
            if unknown:
                waiting += [(c, costs[c][1]) for c in unknown]
                continue
            made[fact] = Proof(fact, own, tuple(made[c] for c in children))
            waiting.pop()
        return made[goal]
