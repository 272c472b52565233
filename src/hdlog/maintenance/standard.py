"""The standard module: semi-naive evaluation of a rule, n + 1 times, never the same derivation twice.

In a node it may also match everything before and after a change, where that is less work (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.changes import Changes, Heads, Versions, is_void
from hdlog.maintenance.matching import Matcher, apply_built_in
from hdlog.maintenance.meters import Meter
from hdlog.plan.joins import plan_conclusion
from hdlog.program.model import Atom, Bind, Filter, Rule
from hdlog.program.terms import Variable
from hdlog.tuning import Tuning


class StandardModule(Generic[R, F, T]):
    """Evaluates B0 .. Bi-1 without their deltas, Bi in its delta, Bi+1 .. Bn including theirs, for each i."""

    def __init__(
        self,
        engine: Engine[R, F, T],
        rule: Rule,
        tuning: Tuning | None = None,
        in_node: bool = False,
        meter: Meter | None = None,
    ) -> None:
        """`in_node`: the body of a node, whose cyclic atoms are joined one variable at a time."""
        self.engine = engine
        self.rule = rule
        self.tuning = tuning or Tuning()
        self.meter = meter or Meter()
        self.matcher = Matcher(engine, rule, self.tuning, in_node, self.meter)
        self.adding = self.matcher if in_node else self.matcher.in_a_node()
        """matches in which what nobody asks for is added up on the way, for many that make few facts"""
        self._matches_a_fact = 0.0
        """when there were many"""
        self.body = self.matcher.body
        self.reads = self.sources = self.body.reads
        bound = {name for literal in self.body.literals for name in literal.names}
        bound |= {i.variable.name for i in self.body.early if isinstance(i, Bind)}
        self._last_steps = plan_conclusion(self.body.last, bound)
        self._needed_last = sorted(self.body.find_needed((), ()))
        self._is_copy = _copies(rule)

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        if self._is_copy:
            delta = changes[self.reads[0]].delta
            return {} if self.engine.is_empty(delta) else dict.fromkeys(range(len(self.rule.heads)), delta)
        if self.matcher.meets and self.is_upheaval(changes):
            return self.derive_difference(changes)
        matcher = self._choose_matcher(changes)
        matches: list[R] = []
        for i, literal in enumerate(self.body.literals):
            delta = changes[literal.read].delta
            if self.engine.is_empty(delta):
                continue
            alone = Version[F, T](self.engine.table(len(literal.atom.terms)), (delta,))
            versions = [
                alone if j == i else changes[read].without if j < i else changes[read].including
                for j, read in enumerate(self.reads)
            ]
            if not any(is_void(self.engine, versions[j]) for j in self.body.positive if j != i):
                matches.append(matcher.match_delta(i, delta, versions))
        heads = self._conclude(matches)
        if matcher is not self.adding:
            self._measure(matches, heads)
        return heads

    def _choose_matcher(self, changes: Changes[F, T]) -> Matcher[R, F, T]:
        """The one that adds up where the last many matches made few facts, and there are many again."""
        if self._matches_a_fact < self.tuning.numbers.worth_adding:
            return self.matcher
        most = max((self.engine.count(changes[read].delta) for read in self.reads), default=0)
        return self.adding if most > self.tuning.numbers.many_rows else self.matcher

    def _measure(self, matches: Sequence[R], heads: Heads[F]) -> None:
        if not self.adding.collapses or not self.adding.meets or not self.engine.hints.counts_rows:
            return
        found = sum(map(self.engine.count, matches))
        if found > self.tuning.numbers.few_rows:
            derived = max(map(self.engine.hints.known_rows, heads.values()), default=0)
            self._matches_a_fact = found / derived if derived else 0.0

    def is_upheaval(self, changes: Changes[F, T]) -> bool:
        """Whether so much changes that matching everything twice is less work than matching each delta."""
        share = 0.0
        for i in self.body.positive:
            change = changes[self.reads[i]]
            if not self.engine.is_empty(change.delta):
                sides = (self.engine.fan_out(side, ()) for side in (change.without, change.including))
                share += self.engine.count(change.delta) / max(1.0, *sides)
        return share > self.tuning.numbers.upheaval

    def derive_difference(self, changes: Changes[F, T]) -> Heads[F]:
        """All that is derived after a change, without all before it."""
        before = self.derive_all({read: changes[read].without for read in self.reads})
        after = self.derive_all({read: changes[read].including for read in self.reads})
        signed: dict[int, F] = {}
        for n in before.keys() | after.keys():
            parts = [after[n]] if n in after else []
            parts += [self.engine.negate(before[n])] if n in before else []
            signed[n] = self.engine.plus(parts, len(self.rule.heads[n].terms))
        return signed

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        by_literal = [versions[read] for read in self.reads]
        if any(is_void(self.engine, by_literal[i]) for i in self.body.positive):
            return {}
        return self._conclude([self.matcher.match_all(by_literal)])

    def _conclude(self, matches: Sequence[R]) -> Heads[F]:
        """The heads of matches found by several deltas."""
        filled = [
            self.engine.keep_columns(rows, self._needed_last)
            for rows in matches
            if not self.engine.is_empty(rows)
        ]
        if not filled:
            return {}
        rows = filled[0] if len(filled) == 1 else self.engine.stack(filled)
        for step in self._last_steps:
            rows = apply_built_in(self.engine, step, rows)
        return project_heads(self.engine, self.rule, rows, range(len(self.rule.heads)))


def _copies(rule: Rule) -> bool:
    """Whether the facts of the heads are just those of the only atom: a class in another, a property in another."""
    if len(rule.body) != 1 or not isinstance(rule.body[0], Atom):
        return False
    terms = rule.body[0].terms
    distinct = {t for t in terms if isinstance(t, Variable)}
    return len(distinct) == len(terms) and all(head.terms == terms for head in rule.heads)


def project_heads(engine: Engine[R, F, T], rule: Rule, rows: R, numbers: Iterable[int]) -> Heads[F]:
    """Some heads of a rule, for matches of its body."""
    if engine.is_empty(rows):
        return {}
    chosen = list(numbers)
    if len(chosen) > 1:
        rows = engine.keep(rows)
    return {n: engine.project(rows, rule.heads[n].terms) for n in chosen}


def conclude(
    engine: Engine[R, F, T],
    rule: Rule,
    built_ins: Iterable[Filter | Bind],
    rows: R,
    bound: Iterable[str],
    heads: Iterable[int],
) -> Heads[F]:
    """Some heads, for matches of all literals to which no built-in was applied yet."""
    for step in plan_conclusion(built_ins, bound):
        rows = apply_built_in(engine, step, rows)
    return project_heads(engine, rule, rows, heads)
