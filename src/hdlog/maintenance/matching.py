"""Bodies matched by join plans: the plan of the moment, and the few lines that run one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.meters import Meter
from hdlog.plan.bodies import Body
from hdlog.plan.joins import (
    Antijoin,
    Extend,
    FanOut,
    Join,
    JoinPlan,
    Meet,
    Select,
    Step,
    best_start,
    plan_join,
)
from hdlog.program.model import Rule
from hdlog.tuning import Tuning

Start = tuple[int | None, int | None]
"""The literal a plan begins with, and the one that has a delta."""


class Matcher(Generic[R, F, T]):
    """Matches the body of one rule, from a delta or from scratch. A plan is made when it is first needed, and again when the facts
    have become many more or fewer."""

    def __init__(
        self, engine: Engine[R, F, T], rule: Rule, tuning: Tuning, in_node: bool, meter: Meter | None = None
    ) -> None:
        """`in_node`: the body of a node, whose cyclic atoms are joined one variable at a time."""
        self.engine = engine
        self.meter = meter or Meter()
        self.rule = rule
        self.body = Body(rule)
        self.tuning = tuning
        self.meets = in_node and tuning.worst_case_optimal
        self.collapses = in_node and tuning.sum_product
        self._is_alone = len(self.body.literals) == 1 and not self.body.early
        """whether there is nothing to do but to look at the facts of one literal"""
        self.plans: dict[Start, tuple[JoinPlan, tuple[float, ...]]] = {}
        """with the sizes that each was made for"""
        self.rows: dict[Start, list[int]] = {}
        """how many rows each step made, at most"""

    def in_a_node(self) -> Matcher[R, F, T]:
        """Another for the same body, which matches it as that of a node."""
        return Matcher(self.engine, self.rule, self.tuning, True, self.meter)

    def match_delta(self, number: int, delta: F, versions: list[Version[F, T]]) -> R:
        """The matches that use a fact of `delta` for literal `number`; `versions` says where the others are matched."""
        literal = self.body.literals[number]
        start = number
        if self.meets and literal.positive and self.engine.count(delta) > self.tuning.numbers.many_rows:
            start = self._best_start(versions, number)
        if start != number:
            return self._match_from(start, number, versions)
        rows = self.engine.scan(delta, literal.atom.terms)
        return rows if self._is_alone else self._run((start, number), versions, rows)

    def match_all(self, versions: list[Version[F, T]]) -> R:
        if self.meets and self.body.positive:
            return self._match_from(self._best_start(versions, self.body.positive[0]), None, versions)
        return self._run((None, None), versions, self.engine.unit())

    def _match_from(self, start: int, changed: int | None, versions: list[Version[F, T]]) -> R:
        terms = self.body.literals[start].atom.terms
        rows = self.engine.join(self.engine.unit(), versions[start], terms)
        return self._run((start, changed), versions, rows)

    def _best_start(self, versions: Sequence[Version[F, T]], preferred: int) -> int:
        if len(self.body.positive) == 1:
            return preferred
        return best_start(self.body, preferred, self._fan_out(versions), self.tuning.numbers)

    def _fan_out(self, versions: Sequence[Version[F, T]]) -> FanOut:
        return lambda i, columns: self.engine.fan_out(versions[i], columns)

    def plan(self, start: Start, versions: Sequence[Version[F, T]]) -> JoinPlan:
        """The plan for facts as many as these."""
        sizes = tuple(
            self.engine.fan_out(versions[i], ()) if i not in start else 0.0 for i in self.body.positive
        )
        known = self.plans.get(start)
        if known is not None and not self._have_drifted(known[1], sizes):
            return known[0]
        made = plan_join(self.body, start[0], self._fan_out(versions), self.meets, self.tuning.reordering)
        self.plans[start] = (made, sizes)
        self.rows[start] = [0] * len(made.steps)
        return made

    def _have_drifted(self, before: Sequence[float], now: Sequence[float]) -> bool:
        drift, floor = self.tuning.numbers.drift, self.tuning.numbers.drift_floor
        return any(n > drift * b + floor or b > drift * n + floor for b, n in zip(before, now, strict=True))

    def _run(self, start: Start, versions: Sequence[Version[F, T]], rows: R) -> R:
        """The rows that are left after all steps of a plan: this is how a join plan is run."""
        engine, literals, allow = self.engine, self.body.literals, self.meter.allow
        plan = self.plan(start, versions)
        made = self.rows[start]
        for number, step in enumerate(plan.steps):
            if engine.is_empty(rows):
                return rows
            before = engine.count(rows)
            match step:
                case Join(literal, keep):
                    rows = engine.join(rows, versions[literal], literals[literal].atom.terms, allow)
                    rows = engine.keep_columns(rows, keep)
                case Meet(variable, numbers, keep):
                    factors = [(versions[i], literals[i].atom.terms) for i in numbers]
                    rows = engine.meet(rows, variable, factors, keep, allow)
                case Antijoin(literal):
                    rows = engine.antijoin(rows, versions[literal], literals[literal].atom.terms)
                case Select() | Extend():
                    rows = apply_built_in(engine, step, rows)
            made[number] = max(engine.count(rows), made[number])
            if self.collapses and isinstance(step, Join | Meet) and step.drops:
                # Rows that became many, and then equal for lack of a column, are added up.
                if engine.count(rows) > max(self.tuning.numbers.many_rows, 2 * before):
                    rows = engine.collapse(rows)
        return rows


def apply_built_in(engine: Engine[R, F, T], step: Step, rows: R) -> R:
    match step:
        case Select(condition):
            return engine.filter(rows, condition)
        case Extend(expression, variable):
            return engine.extend(rows, expression, variable)
    raise AssertionError(f"{step} reads facts")
