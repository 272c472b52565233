"""The algebra on Spark: queries over frames, computed when they are kept."""

from __future__ import annotations

from collections.abc import Sequence

from hdlog.engines.protocol import Allow, Kept
from hdlog.engines.spark import builtins
from hdlog.engines.spark.context import SparkVersion, distinct_metrics, read_distinct
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import Facts, Relation, column, defer, names_of
from hdlog.engines.spark.statistics import Statistics
from hdlog.program.model import Expression
from hdlog.program.terms import Term, Variable


class Relations(Statistics):
    def unit(self) -> Relation:
        return Relation((), Frame("SELECT 1L AS m", ("m",)), 1.0, 1)

    def scan(self, facts: Facts, terms: Sequence[Term]) -> Relation:
        names = names_of(terms)
        if facts.frame is None:
            return Relation(names, None, 0.0, 0)
        frame = self._atom(facts.frame, terms).select(*map(column, names), "m")
        return Relation(names, frame, float(self.estimate_facts(facts)), facts.rows if facts.summed else None)

    def _atom(self, frame: Frame, terms: Sequence[Term]) -> Frame:
        """The rows that agree with constants and repeated variables, with a column for each variable beside `m`."""
        first: dict[str, int] = {}
        conditions = []
        for i, term in enumerate(terms):
            if not isinstance(term, Variable):
                conditions.append(f"c{i} = {self.identify(term)}L")
            elif term.name in first:
                conditions.append(f"c{i} = c{first[term.name]}")
            else:
                first[term.name] = i
        chosen = frame.where(" AND ".join(conditions)) if conditions else frame
        return chosen.select(*(f"c{i} AS {column(n)}" for n, i in first.items()), "m")

    def _cut(self, relation: Relation) -> Relation:
        """Computed if its query has become long."""
        if relation.frame is not None and len(relation.frame.sql) > self.numbers.long_query:
            return self._keep_relation(relation)
        return relation

    def cut_facts(self, facts: Facts) -> None:
        if facts.frame is not None and len(facts.frame.sql) > self.numbers.long_query:
            self.keep(facts)

    def _gather_right(self, version: SparkVersion, terms: Sequence[Term]) -> tuple[Frame | None, int, int]:
        """All rows of an atom with their multiplicity as `w`, how many there are at most, and of one fact."""
        names = names_of(terms)
        for facts in (*version.plus, *version.minus):
            self.cut_facts(facts)
        parts = self.parts_of(version)
        if not parts:
            return None, 0, 0
        frames = [
            self._atom(frame, terms).select(*map(column, names), f"{'-' if sign < 0 else ''}m AS w")
            for frame, sign, _ in parts
        ]
        return union(frames), sum(rows for _, _, rows in parts), len(parts)

    def join(
        self, left: Relation, version: SparkVersion, terms: Sequence[Term], allow: Allow | None = None
    ) -> Relation:
        left = self._cut(left)
        atom_names = names_of(terms)
        names = (*left.names, *(n for n in atom_names if n not in left.names))
        right, rows, times = self._gather_right(version, terms)
        if left.frame is None or right is None:
            return Relation(names, None, 0.0, 0)
        on = [column(n) for n in atom_names if n in left.names]
        bound = [i for i, t in enumerate(terms) if not isinstance(t, Variable) or t.name in left.names]
        estimate = left.estimate * self.fan_out(version, bound)
        a, b = self._place_hints(left, right, rows)
        frame = a.join(b, on).select(*map(column, names), "m * w AS m")
        limit = left.bound if left.bound is not None and len(atom_names) == len(on) else None
        return Relation(names, frame, estimate, limit and limit * times)

    def _place_hints(self, left: Relation, right: Frame, rows: int) -> tuple[Frame, Frame]:
        """Both sides of a join, with a hint on the one that is to be looked up in."""
        assert left.frame is not None, "an empty side is no side"
        if left.bound is not None and left.bound <= min(self.numbers.broadcast, rows):
            return left.frame.with_hint("BROADCAST"), right
        if not self.keeper.careful and left.estimate <= min(self.numbers.likely_broadcast, rows):
            return left.frame.with_hint("BROADCAST"), right
        if rows <= self.numbers.broadcast:
            return left.frame, right.with_hint("BROADCAST")
        # A table of rows that are more than was thought would not fit: only what is counted is made one.
        most = self.numbers.hashed * self.partitions
        if left.kept and left.estimate <= min(most, rows):
            return left.frame.with_hint("SHUFFLE_HASH"), right
        return left.frame, right.with_hint("SHUFFLE_HASH") if rows <= most else right

    def antijoin(self, left: Relation, version: SparkVersion, terms: Sequence[Term]) -> Relation:
        right, rows, times = self._gather_right(version, terms)
        if left.frame is None or right is None:
            return left
        names = [column(n) for n in names_of(terms)]
        if times > 1 or version.table.content.runs:
            right = right.select(*names, "w", "0 AS k").totals([*names, "k"], "sum(w) AS w").where("w <> 0")
        one = left.frame.select("*", "0 AS k")
        there = right.select(*names, "0 AS k").with_hint(
            "BROADCAST" if rows <= self.numbers.broadcast else "SHUFFLE_HASH"
        )
        kept = one.join(there, [*names, "k"], "left_anti").select(*left.columns, "m")
        return Relation(left.names, kept, left.estimate, left.bound)

    def meet(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[SparkVersion, Sequence[Term]]],
        needed: Sequence[str],
        allow: Allow | None = None,
    ) -> Relation:
        """One join after the other: without indexes no row can choose its shortest list."""

        def size(factor: tuple[SparkVersion, Sequence[Term]]) -> float:
            version, terms = factor
            bound = [i for i, t in enumerate(terms) if not (isinstance(t, Variable) and t.name == name)]
            return self.fan_out(version, bound)

        relation = left
        for version, terms in sorted(factors, key=size):
            relation = self.join(relation, version, terms)
        return self.keep_columns(relation, needed)

    def stack(self, parts: Sequence[Relation]) -> Relation:
        filled = [p for p in parts if p.frame is not None]
        if len(filled) < 2:
            return filled[0] if filled else parts[0]
        names = tuple(sorted(filled[0].names))
        frames = [p.frame.select(*map(column, names), "m") for p in filled if p.frame is not None]
        return Relation(names, union(frames), sum(p.estimate for p in filled))

    def collapse(self, relation: Relation) -> Relation:
        if relation.frame is None:
            return relation
        return Relation(
            relation.names,
            relation.frame.totals(relation.columns, "sum(m) AS m").where("m <> 0"),
            relation.estimate,
            relation.bound,
        )

    def filter(self, relation: Relation, condition: Expression) -> Relation:
        return builtins.select(self.dictionary, self.keeper, relation, condition)

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation:
        return builtins.extend(self.dictionary, self.keeper, relation, expression, name)

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation:
        kept = tuple(n for n in relation.names if n in names)
        if len(kept) == len(relation.names):
            return relation
        if relation.frame is None:
            return Relation(kept, None, 0.0, 0)
        frame = relation.frame.select(*map(column, kept), "m")
        return Relation(kept, frame, relation.estimate, relation.bound)

    def project(self, relation: Relation, terms: Sequence[Term]) -> Facts:
        if relation.frame is None:
            return Facts(len(terms))
        chosen = [
            f"{column(t.name)} AS c{i}" if isinstance(t, Variable) else f"{self.identify(t)}L AS c{i}"
            for i, t in enumerate(terms)
        ]
        return defer(len(terms), relation.frame.select(*(chosen or ["0L AS c0"]), "m"), summed=False)

    def is_empty(self, result: Relation | Facts) -> bool:
        return result.frame is None

    def count(self, result: Relation | Facts) -> int:
        if isinstance(result, Relation):
            return int(min(result.estimate, 2.0**62))
        if result.rows is None:
            self.keep(result)
        assert result.rows is not None, "kept facts are counted"
        return result.rows

    def keep(self, result: Kept) -> Kept:
        if isinstance(result, Relation):
            return self._keep_relation(result)  # type: ignore[return-value]
        assert isinstance(result, Facts)
        if not result.kept:
            result.become(self._keep_facts(result))
        return result

    def _keep_relation(self, relation: Relation) -> Relation:
        if relation.frame is None or relation.kept:
            return relation
        frame, figures = self.keeper.keep(relation.frame, {})
        rows = figures["rows"]
        return Relation(relation.names, frame if rows else None, float(rows), rows, kept=True)

    def _keep_facts(self, facts: Facts) -> Facts:
        frame, figures = self.keeper.keep(
            facts.sums(),
            {"positive": "count_if(m > 0)", **distinct_metrics(facts.arity)},
        )
        if not figures["rows"]:
            return Facts(facts.arity)
        return Facts(
            facts.arity,
            frame,
            figures["rows"],
            figures["positive"],
            distinct=read_distinct(facts.arity, figures),
        )
