"""Aggregated values of groups of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.engines.spark.relation import Facts, Relation, defer
from hdlog.engines.spark.values import VALUE_SCHEMA, with_values
from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import Term, Variable
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGERS

if TYPE_CHECKING:
    from hdlog.engines.spark.context import SparkVersion
    from hdlog.engines.spark.engine import SparkEngine

_VALUE = f"try_subtract(value, {INTEGERS}L)"
_NATIVE = {"sum": f"try_sum(try_multiply({_VALUE}, m))", "min": f"min({_VALUE})", "max": f"max({_VALUE})"}
"""Of integers."""


class Aggregator:
    """One aggregate. All of a group is looked at again when something of it changes."""

    def __init__(
        self, engine: SparkEngine, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]
    ) -> None:
        assert not call.distinct, "different values are a predicate of their own"
        self.engine = engine
        self.call = call
        self.group = tuple(group)
        self.terms = tuple(terms)
        value = (call.argument,) if isinstance(call.argument, Variable) else ()
        self.columns = (*self.group, *value)

    def values(self, version: SparkVersion) -> Facts:
        return self._aggregate(self.engine.unit(), version)

    def _aggregate(self, start: Relation, version: SparkVersion) -> Facts:
        engine, width = self.engine, len(self.group)
        members = engine.join(start, version, self.terms)
        if members.frame is None:
            return Facts(width + 1)
        rows = engine.project(members, self.columns).sums()
        frame = aggregate_groups(engine.dictionary, engine.keeper, rows, width, self.call)
        return defer(width + 1, frame, summed=True)

    def change(self, delta: Facts, after: SparkVersion, present: SparkVersion) -> Facts:
        engine = self.engine
        # Each once: what comes and what goes would cancel out.
        touched = engine.scan(engine.distinct(delta), self.terms)
        groups = engine.distinct(engine.project(touched, self.group))
        start = engine.scan(groups, self.group)
        terms = (*self.group, self.call.result)
        before = engine.project(engine.join(start, present, terms), terms)
        return engine.plus([self._aggregate(start, after), engine.negate(before)], len(terms))


def aggregate_groups(
    dictionary: Dictionary, keeper: Keeper, rows: Frame, width: int, call: AggregateCall
) -> Frame:
    """A fact for each group, the first `width` columns, that has a value: group, value, and `m`. The value comes after the group."""
    keys = [f"c{i}" for i in range(width)]
    value = f"c{width} AS value" if call.argument is not None else "0L AS value"
    members = rows.where("m > 0").select(*keys, "0 AS k", value, "m")
    grouped = [*keys, "k"]
    if call.function == "count" or call.argument is None:
        counted = members.totals(grouped, f"{INTEGERS}L + sum(m) AS value")
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


def _integers(keeper: Keeper, members: Frame, grouped: list[str], total: str) -> tuple[Frame, dict[str, int]]:
    """Values of groups that have nothing but integers."""
    totals = members.totals(
        grouped,
        f"bool_and(value < 0 AND try_multiply({_VALUE}, m) IS NOT NULL) AS integers",
        f"{total} AS result",
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
    lists = kept.join(texts, ["value"]).totals(
        grouped, "array_sort(collect_list(struct(text, m))) AS members"
    )
    schema = ", ".join([*(f"{g} {'INT' if g == 'k' else 'BIGINT'}" for g in grouped), VALUE_SCHEMA])
    work = _worker(call, grouped)
    made, _ = keeper.keep_data(keeper.data(lists).mapInArrow(work, schema), {})
    return dictionary.with_ids(made)


def _worker(
    call: AggregateCall, grouped: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [_text(call, members) for members in batch.column("members").to_pylist()]
            yield with_values(batch, grouped, values)

    return work


def _text(call: AggregateCall, members: list[dict[str, Any]]) -> str | None:
    try:
        terms = [parse_term(m["text"]) for m in members]
        return term_text(aggregate(call, terms, [m["m"] for m in members]))
    except NoValue:
        return None
