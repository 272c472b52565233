"""Aggregated values of groups of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.engines.spark.relation import Facts, defer
from hdlog.engines.spark.values import VALUE_SCHEMA, with_values
from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import Variable
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGERS

if TYPE_CHECKING:
    from hdlog.engines.spark.context import SparkVersion
    from hdlog.engines.spark.engine import SparkEngine

_NATIVE = {"sum": "try_sum", "min": "min", "max": "max"}


class Aggregator:
    """One aggregate. All of a group is looked at again when something of it changes."""

    def __init__(self, engine: SparkEngine, width: int, call: AggregateCall, column: int) -> None:
        assert not call.distinct, "different values are a predicate of their own"
        self.engine = engine
        self.width = width
        self.call = call
        self.column = column

    def values(self, version: SparkVersion, groups: Facts) -> Facts:
        engine = self.engine
        variables = [Variable(str(i)) for i in range(version.table.arity)]
        members = engine.join(
            engine.scan(engine.distinct(groups), variables[: self.width]), version, variables
        )
        if members.frame is None:
            return Facts(self.width + 1)
        rows = engine.project(members, variables).sums()
        frame = aggregate_groups(engine.dictionary, engine.keeper, rows, self.width, self.call, self.column)
        return defer(self.width + 1, frame, summed=True)

    def change(self, delta: Facts, after: SparkVersion, present: SparkVersion) -> Facts:
        engine = self.engine
        groups = engine.first_columns(delta, self.width)
        variables = [Variable(str(i)) for i in range(self.width + 1)]
        rows = engine.join(engine.scan(groups, variables[: self.width]), present, variables)
        before = engine.project(rows, variables)
        return engine.plus([self.values(after, groups), engine.negate(before)], self.width + 1)


def aggregate_groups(
    dictionary: Dictionary, keeper: Keeper, rows: Frame, width: int, call: AggregateCall, position: int
) -> Frame:
    """A fact for each group, the first `width` columns, that has a value: group, value, and `m`."""
    keys = [f"c{i}" for i in range(width)]
    value = f"c{position} AS value" if call.argument is not None else "0L AS value"
    members = rows.where("m > 0").select(*keys, "0 AS k", value)
    grouped = [*keys, "k"]
    if call.function == "count" or call.argument is None:
        counted = members.totals(grouped, f"{INTEGERS}L + count(1) AS value")
        return _facts(counted, keys)
    parts = []
    slow = members
    if call.function in _NATIVE:
        totals, figures = _integers(keeper, members, grouped, _NATIVE[call.function])
        parts.append(_facts(totals.where("exact"), keys))
        if not figures["slow"]:
            return parts[0]
        slow = members.join(totals.where("NOT exact").select(*grouped), grouped, "left_semi")
    parts.append(_facts(_aggregate_by_definition(dictionary, keeper, slow, grouped, call), keys))
    return union(parts)


def _facts(frame: Frame, keys: list[str]) -> Frame:
    return frame.select(*keys, f"value AS c{len(keys)}", "1L AS m")


def _integers(
    keeper: Keeper, members: Frame, grouped: list[str], function: str
) -> tuple[Frame, dict[str, int]]:
    """Values of groups that have nothing but integers."""
    totals = members.totals(
        grouped,
        "bool_and(value < 0) AS integers",
        f"{function}(try_subtract(value, {INTEGERS}L)) AS result",
    ).select(
        *grouped,
        f"integers AND coalesce(abs(result) < {INTEGER_LIMIT}L, false) AS exact",
        f"try_add({INTEGERS}L, result) AS value",
    )
    return keeper.keep(totals, {"slow": "count_if(NOT exact)"})


def _aggregate_by_definition(
    dictionary: Dictionary, keeper: Keeper, members: Frame, grouped: list[str], call: AggregateCall
) -> Frame:
    kept, _ = keeper.keep(members, {})
    ids = kept.select("value AS id").distinct("id")
    texts = dictionary.texts_of(ids).select("id AS value", "text")
    lists = kept.join(texts, ["value"]).totals(grouped, "array_sort(collect_list(text)) AS texts")
    schema = ", ".join([*(f"{g} {'INT' if g == 'k' else 'BIGINT'}" for g in grouped), VALUE_SCHEMA])
    work = _worker(call, grouped)
    made, _ = keeper.keep_data(keeper.data(lists).mapInArrow(work, schema), {})
    return dictionary.with_ids(made)


def _worker(
    call: AggregateCall, grouped: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [_text(call, texts) for texts in batch.column("texts").to_pylist()]
            yield with_values(batch, grouped, values)

    return work


def _text(call: AggregateCall, texts: list[str]) -> str | None:
    try:
        return term_text(aggregate(call, [parse_term(t) for t in texts]))
    except NoValue:
        return None
