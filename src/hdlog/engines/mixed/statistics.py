"""What plans of the mixed engine are made from: the larger side of a version tells."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from hdlog.engines.mixed.looking import Looking
from hdlog.engines.mixed.sides import (
    Facts,
    FarFacts,
    FarTable,
    MixedVersion,
    NearFacts,
    NearTable,
    Recent,
    Relation,
    Run,
    Table,
)
from hdlog.engines.protocol import Core, Hints, Version
from hdlog.engines.spark.context import find_undone
from hdlog.program.terms import Term

MixedColumn = tuple[MixedVersion, int]
NearVersion = Version[NearFacts, NearTable]
FarVersion = Version[FarFacts, FarTable]


class Statistics(Looking):
    def near_part(self, version: MixedVersion) -> NearVersion:
        """What of a version is in the process."""
        table = version.table
        plus = tuple(f.near for f in version.plus if f.near is not None)
        minus = tuple(f.near for f in version.minus if f.near is not None)
        recent = tuple(r.live for r in table.recent if len(r.live))
        return Version(
            self.near.table(table.arity) if table.near is None else table.near, plus + recent, minus
        )

    def far_part(self, version: MixedVersion) -> FarVersion:
        """What of a version is on Spark only."""
        table = version.table.far
        plus = tuple(f.far for f in version.plus if f.near is None and f.far is not None)
        minus = tuple(f.far for f in version.minus if f.near is None and f.far is not None)
        return Version(self.far.table(version.table.arity) if table is None else table, plus, minus)

    def parts_of(self, version: MixedVersion) -> tuple[NearVersion, FarVersion | None]:
        """Both parts of a version, which add up to it; None for one on Spark that has no facts for certain."""
        version = self.without_undone(version)
        for facts in (*version.plus, *version.minus):
            self.bring_facts_home(facts)
        far = self.far_part(version)
        has_far = bool(far.table.content.runs) or any(f.frame is not None for f in (*far.plus, *far.minus))
        return self.near_part(version), far if has_far else None

    def without_undone(self, version: MixedVersion) -> MixedVersion:
        """Without sets that take back whole changes of a far table, and without these."""
        table = version.table
        if table.far is None:
            return version
        parts: set[Recent | Run] = {*table.recent, *table.far.content.runs}
        sets = [(_Set(f, parts), 1) for f in version.plus] + [(_Set(f, parts), -1) for f in version.minus]
        undone = {id(s.facts): s for s, _ in find_undone(parts, sets)}
        if not undone:
            return version
        gone = {part for s in undone.values() for part, _ in s.origin}
        rest = Table(table.arity, far=self.far.table(table.arity))
        assert rest.far is not None
        rest.far.content = table.far.content.without(gone)
        rest.recent = tuple(r for r in table.recent if r not in gone)
        plus, minus = (
            tuple(f for f in side if id(f) not in undone) for side in (version.plus, version.minus)
        )
        return Version(rest, plus, minus)

    def is_near(self, version: MixedVersion) -> bool:
        """Whether all of it is in the process."""
        return version.table.near is not None and all(f.is_near for f in (*version.plus, *version.minus))

    def all_far(self, version: MixedVersion) -> FarVersion:
        """All of a version, as Spark has it."""
        version = self.without_undone(version)
        plus, minus = (tuple(map(self.find_far_facts, side)) for side in (version.plus, version.minus))
        table = version.table
        if table.far is None:
            return Version(self.far.table(table.arity), (self.send_table(table), *plus), minus)
        recent = tuple(self.send_facts(r.live) for r in table.recent if len(r.live))
        return Version(table.far, plus + recent, minus)

    def send_table(self, table: Table) -> FarFacts:
        """The live facts of a near table, for Spark; sent again when they are others."""
        assert table.near is not None
        if table.sent is None or table.sent[0] != table.near.changes:
            table.sent = (table.near.changes, self.send_facts(table.near.facts()))
        return table.sent[1]

    def fan_out(self, version: MixedVersion, bound: Sequence[int]) -> float:
        if self.is_near(version):
            return self.near.fan_out(self.near_part(version), bound)
        near, far = self.near_part(version), self.far_part(version)
        if not bound:
            return self.near.fan_out(near, ()) + self.far.fan_out(far, ())
        if self.near.fan_out(near, ()) > self.far.fan_out(far, ()):
            return self.near.fan_out(near, bound)
        return self.far.fan_out(far, bound)

    def agreeing_pairs(self, asked: Sequence[tuple[MixedColumn, MixedColumn]]) -> list[float]:
        here = [all(self.is_near(version) for version, _ in sides) for sides in asked]
        near = [
            ((self.near_part(a), i), (self.near_part(b), j))
            for ((a, i), (b, j)), is_here in zip(asked, here, strict=True)
            if is_here
        ]
        far = [
            ((self.all_far(a), i), (self.all_far(b), j))
            for ((a, i), (b, j)), is_here in zip(asked, here, strict=True)
            if not is_here
        ]
        found = {True: iter(self.near.agreeing_pairs(near)), False: iter(self.far.agreeing_pairs(far))}
        return [next(found[is_here]) for is_here in here]


class _Set:
    """Facts, and the changes of a table that they are just those of, as the table has these."""

    def __init__(self, facts: Facts, parts: Container[Recent | Run]) -> None:
        self.facts = facts
        self.origin = tuple((_find_part(part, parts), way) for part, way in facts.origin)


def _find_part(part: Recent | Run, parts: Container[Recent | Run]) -> Recent | Run:
    if isinstance(part, Recent) and part not in parts and part.run is not None:
        return part.run
    return part


class MixedHints(Hints[Relation, Facts, Table]):
    def __init__(self, engine: Statistics) -> None:
        self.engine = engine

    def in_one_piece(self, version: MixedVersion) -> MixedVersion:
        engine = self.engine
        if not engine.is_near(version):
            return version
        flat = engine.near.hints.in_one_piece(engine.near_part(version))
        plus, minus = (
            tuple(Facts(version.table.arity, near=f) for f in side) for side in (flat.plus, flat.minus)
        )
        return Version(Table(version.table.arity, near=flat.table), plus, minus)

    def merge_parts(self, parts: list[Facts], arity: int) -> list[Facts]:
        """Those on Spark as one, so that the frames of many rounds can go."""
        far = [p.far for p in parts if not p.is_near and p.far is not None]
        if len(far) <= self.engine.numbers.most_parts:
            return parts
        merged = self.engine.far.hints.merge_parts(far, arity)
        return [*(p for p in parts if p.is_near), *(Facts(arity, far=f) for f in merged)]

    def was_empty(self, table: Table, added: Facts, removed: Facts) -> bool:
        came, went = (self._rows(f) for f in (added, removed))
        return came is not None and went is not None and len(table) + went == came

    @property
    def counts_rows(self) -> bool:
        """Those in the process; of those on Spark there are estimates."""
        return True

    def is_counted(self, relation: Relation) -> bool:
        return relation.is_near

    def known_rows(self, facts: Facts) -> int:
        return self._rows(facts) or 0

    def _rows(self, facts: Facts) -> int | None:
        if facts.near is not None:
            return len(facts.near)
        return None if facts.far is None else 0 if facts.far.frame is None else facts.far.rows

    def core(self, atoms: Sequence[tuple[MixedVersion, Sequence[Term]]]) -> Core | None:
        engine = self.engine
        if not all(engine.is_near(version) for version, _ in atoms):
            return None
        return engine.near.hints.core([(engine.near_part(version), terms) for version, terms in atoms])

    def look_ahead(self, wanted: Sequence[tuple[Table, Facts]]) -> None:
        """What is known of facts in far tables, by one job for all."""
        engine = self.engine
        for _, facts in wanted:
            engine.bring_facts_home(facts)
        engine.learn([(t, f.near.keys) for t, f in wanted if t.far is not None and f.near is not None])

    def side_of(self, table: Table) -> str:
        return "on Spark" if table.near is None else "in the process"

    def announce(self, work: str) -> None:
        self.engine.far.hints.announce(work)

    def take_care(self) -> None:
        self.engine.far.hints.take_care()

    def workers(self, changed: Iterable[Facts]) -> int:
        return 1
