"""The distributed engine: the algebra over DataFrames.

Relations and facts are plans until something asks for them to be kept. Each operation that changes a table keeps its result, so
a round costs one job for each head predicate, whatever the number of rules that derive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import encode_chunks
from hdlog.engines.protocol import Hints, Support, Version
from hdlog.engines.spark import builtins, show
from hdlog.engines.spark.aggregates import Aggregator
from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.engines.spark.intake import encode_frame
from hdlog.engines.spark.relation import Facts, Relation, column, columns, late, names_of
from hdlog.engines.spark.session import SETTINGS, start_session
from hdlog.engines.spark.table import SUPPORTS, Run, Table, state_columns
from hdlog.journal import Journal
from hdlog.program.model import AggregateCall, Expression, Predicate
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Term, Variable
from hdlog.reading.chunks import Chunk
from hdlog.reading.identifiers import StoreIds
from hdlog.tuning import Numbers

_FOUNDED = "(a + da <> 0 OR n + dn <> 0)"
SparkVersion = Version[Facts, Table]
Kept = TypeVar("Kept")


class SparkHints(Hints[Facts, Table]):
    """Spark joins a union as well as one frame, and a core would take as many jobs as the join itself."""

    def __init__(self, engine: SparkEngine) -> None:
        self.engine = engine

    def merge_parts(self, parts: list[Facts], arity: int) -> list[Facts]:
        """The frames of many rounds as one, so that theirs can go."""
        if len(parts) <= self.engine.numbers.most_parts:
            return parts
        whole = self.engine.disjoint_union(parts, arity)
        whole.kept = False
        return [self.engine.keep(whole)]

    def was_empty(self, table: Table, added: Facts, removed: Facts) -> bool:
        came, went = (0 if f.frame is None else f.rows for f in (added, removed))
        return came is not None and went is not None and len(table) + went == came


class SparkEngine:
    def __init__(
        self,
        spark: SparkSession | None = None,
        partitions: int | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        """`partitions` of all shuffles: one for each core by default; more for more than some millions of facts a core."""
        self.numbers = numbers or Numbers()
        self.hints = SparkHints(self)
        self.journal = Journal()
        self.spark = spark or start_session()
        for key, value in SETTINGS.items():
            self.spark.conf.set(key, value)
        self.say: Callable[[str], None] = lambda _: None
        """where to tell what goes on"""
        self.keeper = Keeper(self.spark, self.numbers.interpreted)
        self.partitions = 0
        self.spread(partitions or self.spark.sparkContext.defaultParallelism)
        self.dictionary = Dictionary(self.keeper, self.numbers.unsent_terms)

    def spread(self, partitions: int) -> None:
        """Into how many parts data is shuffled from now on, at least."""
        if partitions > self.partitions:
            self.partitions = self.keeper.partitions = partitions

    def table(self, arity: int) -> Table:
        return Table(self.keeper, arity, self.numbers.most_spark_runs)

    # Relations.

    def unit(self) -> Relation:
        return Relation((), Frame("SELECT 1L AS m", ("m",)), 1.0, 1)

    def scan(self, facts: Facts, terms: Sequence[Term]) -> Relation:
        names = names_of(terms)
        if facts.frame is None:
            return Relation(names, None, 0.0, 0)
        frame = self._atom(facts.frame, terms).select(*map(column, names), "m")
        return Relation(names, frame, float(self._about(facts)), facts.rows if facts.summed else None)

    def _atom(self, frame: Frame, terms: Sequence[Term]) -> Frame:
        """The rows that agree with constants and repeated variables, with a column for each variable beside `m`."""
        first: dict[str, int] = {}
        conditions = []
        for i, term in enumerate(terms):
            if not isinstance(term, Variable):
                conditions.append(f"c{i} = {self._identifier(term)}L")
            elif term.name in first:
                conditions.append(f"c{i} = c{first[term.name]}")
            else:
                first[term.name] = i
        chosen = frame.where(" AND ".join(conditions)) if conditions else frame
        return chosen.select(*(f"c{i} AS {column(n)}" for n, i in first.items()), "m")

    def _identifier(self, term: Constant) -> int:
        return int(self.dictionary.encode_terms([term])[0])

    def _parts(self, version: SparkVersion) -> list[tuple[Frame, int, int]]:
        """What adds up to a version: frames with keys and `m`, a sign, and how many rows."""
        table = version.table
        sets = [(f, 1) for f in version.plus] + [(f, -1) for f in version.minus]
        undone = _undone(table, sets)
        runs = {run for facts, _ in undone for run, _ in facts.origin}
        parts = [
            (table.live_part(run), 1, run.rows)
            for run in table.content.runs
            if (run.came or run.went) and run not in runs
        ]
        rest = [(f, sign) for f, sign in sets if f.frame is not None and (f, sign) not in undone]
        return parts + [(f.frame, sign, self._about(f)) for f, sign in rest if f.frame is not None]

    def _right(self, version: SparkVersion, terms: Sequence[Term]) -> tuple[Frame | None, int, int]:
        """All rows of an atom with their multiplicity as `w`, how many there are at most, and of one fact."""
        names = names_of(terms)
        parts = self._parts(version)
        if not parts:
            return None, 0, 0
        frames = [
            self._atom(frame, terms).select(*map(column, names), f"{'-' if sign < 0 else ''}m AS w")
            for frame, sign, _ in parts
        ]
        return union(frames), sum(rows for _, _, rows in parts), len(parts)

    def join(self, left: Relation, version: SparkVersion, terms: Sequence[Term]) -> Relation:
        found = names_of(terms)
        names = (*left.names, *(n for n in found if n not in left.names))
        right, rows, times = self._right(version, terms)
        if left.frame is None or right is None:
            return Relation(names, None, 0.0, 0)
        on = [column(n) for n in found if n in left.names]
        bound = [i for i, t in enumerate(terms) if not isinstance(t, Variable) or t.name in left.names]
        estimate = left.estimate * self.fan_out(version, bound)
        a, b = self._placed(left, right, rows)
        frame = a.join(b, on).select(*map(column, names), "m * w AS m")
        limit = left.bound if left.bound is not None and len(found) == len(on) else None
        return Relation(names, frame, estimate, limit and limit * times)

    def _placed(self, left: Relation, right: Frame, rows: int) -> tuple[Frame, Frame]:
        """Both sides of a join, with a hint on the one that is to be looked up in."""
        assert left.frame is not None, "an empty side is no side"
        if left.bound is not None and left.bound <= min(self.numbers.broadcast, rows):
            return left.frame.hinted("BROADCAST"), right
        if not self.keeper.careful and left.estimate <= min(self.numbers.likely_broadcast, rows):
            return left.frame.hinted("BROADCAST"), right
        if rows <= self.numbers.broadcast:
            return left.frame, right.hinted("BROADCAST")
        if min(left.estimate, rows) > self.numbers.hashed * self.partitions:
            return left.frame, right
        if left.estimate < rows:
            return left.frame.hinted("SHUFFLE_HASH"), right
        return left.frame, right.hinted("SHUFFLE_HASH")

    def antijoin(self, left: Relation, version: SparkVersion, terms: Sequence[Term]) -> Relation:
        right, rows, times = self._right(version, terms)
        if left.frame is None or right is None:
            return left
        names = [column(n) for n in names_of(terms)]
        if times > 1 or version.table.content.runs:
            right = right.select(*names, "w", "0 AS k").totals([*names, "k"], "sum(w) AS w").where("w <> 0")
        one = left.frame.select("*", "0 AS k")
        there = right.select(*names, "0 AS k").hinted(
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
            f"{column(t.name)} AS c{i}" if isinstance(t, Variable) else f"{self._identifier(t)}L AS c{i}"
            for i, t in enumerate(terms)
        ]
        return late(len(terms), relation.frame.select(*(chosen or ["0L AS c0"]), "m"), summed=False)

    def is_empty(self, relation: Relation | Facts) -> bool:
        return relation.frame is None

    def count(self, relation: Relation | Facts) -> int:
        if isinstance(relation, Relation):
            return int(min(relation.estimate, 2.0**62))
        if relation.rows is None:
            self.keep(relation)
        assert relation.rows is not None, "kept facts are counted"
        return relation.rows

    def _about(self, facts: Facts) -> int:
        """How many facts, without asking Spark."""
        return facts.rows if facts.rows is not None else self.numbers.broadcast + 1

    def keep(self, found: Kept) -> Kept:
        if isinstance(found, Relation):
            return self._keep_relation(found)  # type: ignore[return-value]
        assert isinstance(found, Facts)
        if not found.kept:
            found.become(self._keep_facts(found))
        return found

    def _keep_relation(self, relation: Relation) -> Relation:
        if relation.frame is None or relation.kept:
            return relation
        frame, told = self.keeper.keep(relation.frame, {})
        rows = told["rows"]
        return Relation(relation.names, frame if rows else None, float(rows), rows, kept=True)

    def _keep_facts(self, facts: Facts) -> Facts:
        frame, told = self.keeper.keep(
            facts.sums(),
            {"positive": "count_if(m > 0)", **_distinct_metrics(facts.arity)},
        )
        if not told["rows"]:
            return Facts(facts.arity)
        return Facts(
            facts.arity, frame, told["rows"], told["positive"], distinct=_told_distinct(facts.arity, told)
        )

    # Fact sets.

    def no_facts(self, arity: int) -> Facts:
        return Facts(arity)

    def facts_from_columns(self, ids: Sequence[StoreIds], rows: int) -> Facts:
        arity = len(ids)
        if not rows:
            return Facts(arity)
        if not arity:
            return Facts(0, Frame("SELECT 0L AS c0, 1L AS m", ("c0", "m")), 1, 1)
        unique = np.unique(np.stack([c.astype(np.int64) for c in ids]), axis=1)
        schema = ", ".join(f"{c} BIGINT" for c in columns(arity))
        made = self.spark.createDataFrame(
            pa.table({c: pa.array(unique[i]) for i, c in enumerate(columns(arity))}), schema=schema
        )
        distinct = [float(len(np.unique(c))) for c in unique]
        count = unique.shape[1]
        return Facts(
            arity, self.keeper.frame(made.selectExpr("*", "1L AS m"), count), count, count, distinct=distinct
        )

    def plus(self, parts: Iterable[Facts], arity: int) -> Facts:
        filled = [p for p in parts if p.frame is not None]
        if len(filled) < 2:
            return filled[0] if filled else Facts(arity)
        return late(arity, union([p.frame for p in filled if p.frame is not None]), summed=False)

    def minus(self, a: Facts, b: Facts) -> Facts:
        if a.frame is None or b.frame is None:
            return a
        left, right = a.sums(), b.sums().select(*b.keys)
        there = right.hinted("BROADCAST" if self._about(b) <= self.numbers.broadcast else "SHUFFLE_HASH")
        return late(a.arity, left.join(there, a.keys, "left_anti"), summed=True)

    def union(self, a: Facts, b: Facts) -> Facts:
        if a.frame is None or b.frame is None:
            return self.distinct(b if a.frame is None else a)
        both = union([f.sums().select(*f.keys) for f in (a, b)])
        return late(a.arity, both.totals(a.keys, "1L AS m"), summed=True)

    def positive(self, facts: Facts) -> Facts:
        if facts.frame is None or facts.positive == 0:
            return Facts(facts.arity)
        if facts.positive is not None and facts.positive == facts.rows:
            return facts
        found = late(facts.arity, facts.sums().where("m > 0"), summed=True, rows=facts.positive)
        if facts.positive is not None:
            found.positive, found.kept = facts.positive, facts.kept
        return found

    def negate(self, facts: Facts) -> Facts:
        if facts.frame is None:
            return facts
        positive = None if facts.positive is None or facts.rows is None else facts.rows - facts.positive
        frame = facts.frame.select(*facts.keys, "-m AS m")
        return Facts(facts.arity, frame, facts.rows, positive, facts.summed, facts.kept, facts.distinct)

    def distinct(self, facts: Facts) -> Facts:
        if facts.frame is None:
            return facts
        frame = facts.sums().select(*facts.keys, "1L AS m")
        rows = facts.rows
        kept = facts.kept and facts.summed
        return Facts(facts.arity, frame, rows, rows, True, kept, facts.distinct, facts.origin)

    def first_columns(self, facts: Facts, width: int) -> Facts:
        if facts.frame is None:
            return Facts(width)
        frame = facts.sums().select(*(columns(width) if width else ["0L AS c0"]))
        return late(width, frame.totals(columns(width), "1L AS m"), summed=True)

    def aggregator(self, width: int, call: AggregateCall, column: int) -> Aggregator:
        return Aggregator(self, width, call, column)

    # Tables.

    def size(self, table: Table) -> int:
        return len(table)

    def bytes(self, kept: Table | Facts) -> int:
        rows = sum(r.rows for r in kept.content.runs) if isinstance(kept, Table) else self.count(kept)
        return rows * 8 * (kept.arity + (4 if isinstance(kept, Table) else 1))

    def fan_out(self, version: SparkVersion, bound: Sequence[int]) -> float:
        size = len(version.table) + sum(self._about(f) for f in version.plus)
        if not size or not bound:
            return float(size)
        if len(bound) == version.table.arity:
            return 1.0 / (1 + size)
        parts = [(len(version.table), version.table.content.distinct)]
        parts += [(self._about(f), tuple(f.distinct)) for f in version.plus]
        rows, distinct = max(parts, key=lambda part: part[0])
        values = 1.0
        for i in bound:
            values *= distinct[i] if distinct else rows**0.5
        return rows / max(1.0, min(values, float(rows)))

    def agreeing_pairs(self, a: SparkVersion, i: int, b: SparkVersion, j: int) -> float:
        sides = []
        for version, position, name in ((a, i, "x"), (b, j, "y")):
            parts = self._parts(version)
            if not parts:
                return 0.0
            frame, _, _ = max(parts, key=lambda part: part[2])
            sides.append(frame.select(f"c{position} AS k").totals(["k"], f"count(1) AS {name}"))
        pairs = sides[0].join(sides[1], ["k"]).totals([], "sum(CAST(x AS DOUBLE) * y) AS pairs")
        return float(self.keeper.collect(pairs)["pairs"][0].as_py() or 0.0)

    def facts(self, table: Table) -> Facts:
        frames = table.live()
        if not frames:
            return Facts(table.arity)
        one = len(frames) == 1
        rows = len(table)
        return Facts(table.arity, union(frames), rows, rows, one, one, table.content.distinct)

    def adjust(self, table: Table, facts: Facts, support: Support) -> None:
        if facts.frame is not None:
            kept = self.keep(facts)
            if kept.frame is not None:
                self._append(table, kept, state_columns(**{SUPPORTS[support]: "m"}))

    def insert(self, table: Table, facts: Facts) -> None:
        kept = self.keep(facts)
        if kept.frame is not None:
            run = self._append(table, kept, state_columns(l="1L"), came=self.count(kept))
            facts.origin = ((run, 1),)

    def delete(self, table: Table, facts: Facts) -> None:
        kept = self.keep(facts)
        if kept.frame is not None:
            run = self._append(table, kept, state_columns(l="-1L"), went=self.count(kept))
            facts.origin = ((run, -1),)

    def _append(self, table: Table, facts: Facts, state: list[str], came: int = 0, went: int = 0) -> Run:
        assert facts.frame is not None, "only facts are appended"
        self._note(table)
        run = Run(facts.frame.select(*table.keys, *state), self.count(facts), came, went)
        table.append(run, facts.distinct if came else ())
        return run

    def _note(self, table: Table) -> None:
        if table.noted != self.journal.number:
            table.noted = self.journal.number
            table.version += 1
            content = table.content

            def restore() -> None:
                table.content = content

            self.journal.note(restore)

    def live(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        return self._looked_up(table, facts, f"l = {int(wanted)}", not wanted)

    def founded(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        found = "(a <> 0 OR n <> 0)"
        return self._looked_up(table, facts, found if wanted else f"NOT {found}", not wanted)

    def supported(self, table: Table, facts: Facts) -> Facts:
        return self._looked_up(table, facts, "(a <> 0 OR n <> 0 OR r <> 0)")

    def asserted(self, table: Table, facts: Facts) -> Facts:
        return self._looked_up(table, facts, "a <> 0")

    def _looked_up(self, table: Table, facts: Facts, condition: str, unknown: bool = False) -> Facts:
        """The facts for whose state a condition holds; `unknown`: whether it does for one that is not stored."""
        if facts.frame is None:
            return facts
        if not table.content.runs:
            return self.distinct(facts) if unknown else Facts(facts.arity)
        states = table.states(facts.sums().select(*facts.keys, "1L AS m"))
        return late(facts.arity, states.where(condition).select(*facts.keys, "m"), summed=True)

    def grow(self, table: Table, facts: Facts, support: Support) -> Facts:
        came, _ = self._change(table, {support: facts}, "CASE WHEN l = 0 THEN 1L ELSE 0L END")
        return came

    def shrink(self, table: Table, facts: Facts, support: Support) -> Facts:
        dying = f"CASE WHEN l = 1 AND NOT {_FOUNDED} THEN -1L ELSE 0L END"
        _, went = self._change(table, {support: self.negate(facts)}, dying)
        return went

    def recount(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        return self._change(table, {"asserted": asserted, "nonrecursive": signed}, _FOUNDATION)

    def change_foundations(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        gained, lost = self._change(
            table, {"asserted": asserted, "nonrecursive": signed}, _FOUNDATION, apply=False
        )
        return lost, gained

    def _change(
        self, table: Table, given: Mapping[Support, Facts], turn: str, apply: bool = True
    ) -> tuple[Facts, Facts]:
        """Change supports in one job; the facts that `turn` says become live (1) and not live (-1).

        Unless it is to `apply`, they are only told.
        """
        filled = {s: f for s, f in given.items() if f.frame is not None}
        if not filled:
            return Facts(table.arity), Facts(table.arity)
        if apply and not table.content.runs and len(filled) == 1:
            ((support, facts),) = filled.items()
            return self._load(table, facts, support)
        frame, told = self.keeper.keep(
            table.states(self._differences(table, filled)).select("*", f"{turn} AS turn"),
            {
                "came": "count_if(turn = 1)",
                "went": "count_if(turn = -1)",
                **_distinct_metrics(table.arity),
            },
        )
        if told["rows"]:
            self._note(table)
            distinct = _told_distinct(table.arity, told)
            state = state_columns(a="da", n="dn", r="dr", **({"l": "turn"} if apply else {}))
            turned = (told["came"], told["went"]) if apply else (0, 0)
            run = Run(frame.select(*table.keys, *state), told["rows"], *turned)
            table.append(run, distinct if told["came"] else ())
        came, went = (self._turned(table.arity, frame, told[k], v) for k, v in (("came", 1), ("went", -1)))
        if told["rows"] and apply:
            came.origin, went.origin = ((run, 1),), ((run, -1),)
        return came, went

    def _differences(self, table: Table, filled: Mapping[Support, Facts]) -> Frame:
        """One row for each fact whose supports change: keys, da, dn, dr."""
        parts = []
        for support, facts in filled.items():
            assert facts.frame is not None, "only facts are changes"
            frame = facts.sums() if len(filled) == 1 else facts.frame
            amounts = [f"{'m' if s == support else '0L'} AS d{c}" for s, c in SUPPORTS.items()]
            parts.append(frame.select(*table.keys, *amounts))
        if len(parts) == 1:
            return parts[0]
        return union(parts).totals(table.keys, *(f"sum(d{c}) AS d{c}" for c in SUPPORTS.values()))

    def _load(self, table: Table, facts: Facts, support: Support) -> tuple[Facts, Facts]:
        """The first facts of a table."""
        kept = self.keep(facts)
        nothing = Facts(table.arity)
        if kept.frame is None:
            return nothing, nothing
        state = state_columns(**{SUPPORTS[support]: "m", "l": "1L"})
        run = self._append(table, kept, state, came=self.count(kept))
        came = self.distinct(kept)
        came.origin = ((run, 1),)
        return came, nothing

    def _turned(self, arity: int, frame: Frame, rows: int, turn: int) -> Facts:
        if not rows:
            return Facts(arity)
        return Facts(arity, frame.where(f"turn = {turn}").select(*columns(arity), "1L AS m"), rows, rows)

    def disjoint_union(self, parts: Sequence[Facts], arity: int) -> Facts:
        filled = [self.distinct(p) for p in parts if p.frame is not None]
        if len(filled) < 2:
            return filled[0] if filled else Facts(arity)
        rows = None if any(p.rows is None for p in filled) else sum(p.rows or 0 for p in filled)
        found = late(arity, union([p.frame for p in filled if p.frame is not None]), True, rows)
        found.positive, found.kept = rows, all(p.kept for p in filled)
        if all(p.origin for p in filled):
            found.origin = tuple(o for p in filled for o in p.origin)
        return found

    # Facts in and out.

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, Facts]:
        return encode_chunks(self, chunks)

    def owns(self, table: object) -> bool:
        """DataFrames stay on Spark."""
        return isinstance(table, DataFrame)

    def encode_table(self, table: DataFrame, types: Sequence[str]) -> Facts:
        return encode_frame(self.dictionary, self.keeper, table, types)

    def decode(self, facts: Facts) -> FactTable:
        rows = self.count(facts)

        def fetch() -> list[StoreIds]:
            if facts.frame is None:
                return [np.empty(0, np.int64)] * facts.arity
            table = self.keeper.collect(facts.sums().select(*facts.keys))
            return [table[c].to_numpy() for c in columns(facts.arity)[: facts.arity]]

        return FactTable(self.dictionary, facts.arity, rows, fetch)

    def show(self, facts: Facts, names: Sequence[str]) -> DataFrame:
        """A DataFrame of plain values: numbers where a column has nothing else, texts otherwise."""
        shown = show.plain_values(self.dictionary, self.keeper, facts)
        return shown.toDF(*names) if names else shown

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        whole = table.whole()
        if whole is None:
            return []
        found = self.keeper.collect(whole.where("l = 1"))
        rows = self._rows(found, table.arity)
        supports = (found["n"].to_numpy() + found["r"].to_numpy()).tolist()
        return [(r, bool(a), n) for r, a, n in zip(rows, found["a"].to_pylist(), supports, strict=True)]

    def weights(self, facts: Facts) -> dict[tuple[Constant, ...], int]:
        if facts.frame is None:
            return {}
        found = self.keeper.collect(facts.sums())
        return dict(zip(self._rows(found, facts.arity), found["m"].to_pylist(), strict=True))

    def _rows(self, found: pa.Table, arity: int) -> list[tuple[Constant, ...]]:
        texts = [self.dictionary.texts(found[c].to_numpy()) for c in columns(arity)[:arity]]
        terms = [[parse_term(t) for t in c] for c in texts]
        return list(zip(*terms, strict=True)) if terms else [()] * found.num_rows

    def close(self) -> None:
        self.keeper.release()

    # Updates.

    def tidy(self, tables: Sequence[Table], facts: Sequence[Facts]) -> None:
        pass  # texts are in files and frames, and frames go with what uses them

    def begin(self) -> None:
        self.journal.begin()
        self.dictionary.begin()
        self.journal.note(self.dictionary.roll_back)

    def note(self, restore: Callable[[], None]) -> None:
        self.journal.note(restore)

    def commit(self) -> None:
        self.dictionary.flush()
        self.keeper.release()
        self.journal.commit()

    def roll_back(self) -> None:
        self.journal.roll_back()


_FOUNDATION = f"CASE WHEN {_FOUNDED} AND l = 0 THEN 1L WHEN NOT {_FOUNDED} AND l = 1 THEN -1L ELSE 0L END"


def _undone(table: Table, sets: Sequence[tuple[Facts, int]]) -> list[tuple[Facts, int]]:
    """The sets of a version that take back whole runs of the table: what came with them, and what went.

    Such runs are left out; adding the sets would leave rows that cancel, twice as many after each join.
    """
    runs = set(table.content.runs)
    found = [(f, s) for f, s in sets if f.origin and all(r in runs and sign == -s for r, sign in f.origin)]
    while True:
        covered = {o for facts, _ in found for o in facts.origin}
        whole = {
            run
            for run, _ in covered
            if (not run.came or (run, 1) in covered) and (not run.went or (run, -1) in covered)
        }
        kept = [(f, s) for f, s in found if all(run in whole for run, _ in f.origin)]
        if len(kept) == len(found):
            return kept
        found = kept


def _distinct_metrics(arity: int) -> dict[str, str]:
    """Different values by column, in the same job; a single column has nothing but different values."""
    if arity < 2:
        return {}
    return {f"d{i}": f"approx_count_distinct(c{i})" for i in range(arity)}


def _told_distinct(arity: int, told: Mapping[str, int]) -> tuple[float, ...]:
    return tuple(max(1.0, float(told[f"d{i}"])) for i in range(arity)) if arity > 1 else ()
