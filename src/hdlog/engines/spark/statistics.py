"""What plans on Spark are made from, and what is worth while on it."""

from __future__ import annotations

from collections.abc import Sequence

from hdlog.engines.spark.context import Context, SparkVersion

SparkColumn = tuple[SparkVersion, int]


class Statistics(Context):
    def fan_out(self, version: SparkVersion, bound: Sequence[int]) -> float:
        size = len(version.table) + sum(self.estimate_facts(f) for f in version.plus)
        if not size or not bound:
            return float(size)
        if len(bound) == version.table.arity:
            return 1.0 / (1 + size)
        parts = [(len(version.table), version.table.content.distinct)]
        parts += [(self.estimate_facts(f), tuple(f.distinct)) for f in version.plus]
        rows, distinct = max(parts, key=lambda part: part[0])
        values = 1.0
        for i in bound:
            values *= distinct[i] if distinct else rows**0.5
        return rows / max(1.0, min(values, float(rows)))

    def agreeing_pairs(self, asked: Sequence[tuple[SparkColumn, SparkColumn]]) -> list[float]:
        return [self._count_agreeing(a, b) for a, b in asked]

    def _count_agreeing(self, a: SparkColumn, b: SparkColumn) -> float:
        sides = []
        for (version, position), name in ((a, "x"), (b, "y")):
            parts = self.parts_of(version)
            if not parts:
                return 0.0
            frame, _, _ = max(parts, key=lambda part: part[2])
            sides.append(frame.select(f"c{position} AS k").totals(["k"], f"count(1) AS {name}"))
        pairs = sides[0].join(sides[1], ["k"]).totals([], "sum(CAST(x AS DOUBLE) * y) AS pairs")
        return float(self.keeper.collect(pairs)["pairs"][0].as_py() or 0.0)
