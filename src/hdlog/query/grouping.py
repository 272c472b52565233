"""Groups of rows, and their aggregated values."""

from __future__ import annotations

from typing import Generic

from hdlog.engines.protocol import F, R, T
from hdlog.program.functions import IS_BOUND, NoValue
from hdlog.program.model import AggregateCall, Call
from hdlog.program.ntriples import term_text
from hdlog.program.terms import UNBOUND, Constant, Variable, integer, string
from hdlog.query.aggregates import aggregate
from hdlog.query.algebra import Aggregate, Group
from hdlog.query.rows import Names, Rows, RowSets, variables

_VALUE = "#value"


class Grouping(Generic[R, F, T]):
    def __init__(self, sets: RowSets[R, F, T]) -> None:
        self.sets = sets
        self.engine = sets.engine

    def group(self, rows: Rows[R], node: Group) -> Rows[R]:
        """A row for each combination of keys, with the aggregated values."""
        keys = frozenset(node.keys)
        rows = self.sets.complete(rows, rows.names | keys)
        grouped = self.sets.distinct(self.sets.keep(rows, keys))
        is_empty = not keys and not node.strict and self._is_empty(grouped)
        if is_empty:
            grouped = self.sets.unit()
        for call in node.aggregates:
            values = self._aggregate(rows, keys, call)
            grouped = self._join(grouped, values, keys, call, is_empty)
        return grouped

    def _is_empty(self, rows: Rows[R]) -> bool:
        return self.engine.is_empty(self.engine.keep(rows.relation))

    def _join(
        self, grouped: Rows[R], values: Rows[R], keys: Names, call: Aggregate, is_empty: bool
    ) -> Rows[R]:
        """Groups with their values; those without one have what is aggregated of nothing."""
        # Keys without a value are compared as what stands for that.
        columns = variables(values.names)
        facts = self.engine.project(values.relation, columns)
        version = self.sets.snapshot.of_facts(facts, len(columns))
        joined = self.engine.join(grouped.relation, version, columns)
        there = Rows(joined, grouped.names | {call.name}, grouped.uncertain | values.uncertain)
        if call.strict:
            return there
        missing = self.sets.without(grouped, values, keys)
        # A group has members, of which some had no value; but for the one group of no rows at all.
        nothing = _value_of_nothing(call) if is_empty or call.function == "count" else None
        rest = self.sets.extend(missing, call.name, UNBOUND if nothing is None else nothing, strict=True)
        if nothing is None:
            rest = Rows(rest.relation, rest.names, rest.uncertain | {call.name})
        return self.sets.stack([there, rest], grouped.names | {call.name})

    def _aggregate(self, rows: Rows[R], keys: Names, call: Aggregate) -> Rows[R]:
        """The values of groups that have one: keys, and the value."""
        if call.argument is None and call.distinct:
            rows = self.sets.distinct(rows)
        valued = rows if call.argument is None else self._find_values(rows, keys, call)
        valued = self.sets.keep(valued, keys | ({_VALUE} if call.argument is not None else frozenset()))
        if call.distinct and call.argument is not None:
            valued = self.sets.distinct(valued)
        if call.function in ("count", "sum", "avg", "mean", "min", "max"):
            values = self._by_engine(valued, keys, call)
            if call.function == "count":
                return values
            rest = self.sets.without(valued, values, keys)
            if self._is_empty(rest):
                return values
            return self.sets.stack([values, self._by_definition(rest, keys, call)], keys | {call.name})
        return self._by_definition(valued, keys, call)

    def _find_values(self, rows: Rows[R], keys: Names, call: Aggregate) -> Rows[R]:
        """Rows with the value that is aggregated. One without a value does not count; any but a count or a sample of its group has none
        then, unless it is of a rule."""
        assert call.argument is not None
        if call.strict or call.function in ("count", "sample"):
            return self.sets.extend(rows, _VALUE, call.argument, strict=True)
        valued = self.sets.extend(rows, _VALUE, call.argument)
        if _VALUE not in valued.uncertain:
            return valued
        missing = Call("not", (Call(IS_BOUND, (Variable(_VALUE),)),))
        return self.sets.without(valued, self.sets.filter(valued, missing), keys)

    def _by_engine(self, valued: Rows[R], keys: Names, call: Aggregate) -> Rows[R]:
        """Added up over whole columns: groups for which the functions of rules have a value."""
        columns = variables(valued.names)
        facts = self.engine.project(valued.relation, columns)
        argument = Variable(_VALUE) if call.argument is not None else None
        inner = AggregateCall(call.function, argument, Variable(call.name))  # type: ignore[arg-type]
        group = variables(keys)
        aggregator = self.engine.aggregator(inner, group, columns)
        values = aggregator.values(self.sets.snapshot.of_facts(facts, len(columns)))
        return self.sets.of_facts(values, [*(v.name for v in group), call.name])

    def _by_definition(self, valued: Rows[R], keys: Names, call: Aggregate) -> Rows[R]:
        """Group by group: texts put together, and values of several kinds."""
        names = [*sorted(keys), _VALUE]
        columns, counts = self.engine.collect(valued.relation, names)
        texts = [self.engine.dictionary.texts(column) for column in columns]
        groups: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        for *key, value, times in zip(*texts, counts.tolist(), strict=True):
            groups.setdefault(tuple(key), []).append((value, times))
        made = []
        for own, members in groups.items():
            try:
                made.append((*own, term_text(aggregate(call, members))))
            except NoValue:
                continue
        names[-1] = call.name
        if not made:
            return self.sets.empty(frozenset(names))
        ids = [self.engine.dictionary.encode(column) for column in zip(*made, strict=True)]
        return self.sets.of_facts(self.engine.facts_from_columns(ids, len(made)), names)


def _value_of_nothing(call: Aggregate) -> Constant | None:
    """What is aggregated of no values."""
    if call.function in ("count", "sum", "avg"):
        return integer(0)
    return string("") if call.function == "group_concat" else None
