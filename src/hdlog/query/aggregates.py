"""Aggregated values of a group, one value at a time: what the engines do not have."""

from __future__ import annotations

from collections.abc import Sequence

from hdlog.program.functions import NoValue, text_of
from hdlog.program.functions import aggregate as aggregate_by_rule
from hdlog.program.model import AggregateCall
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Variable, string
from hdlog.query.algebra import Aggregate
from hdlog.query.ordering import rank_key


def aggregate(call: Aggregate, members: Sequence[tuple[str, int]]) -> Constant:
    """The value of texts of terms, each of which occurs so many times; NoValue where there is none."""
    terms = [(parse_term(text), times) for text, times in members]
    match call.function:
        case "sample":
            return terms[0][0]
        case "min" | "max":
            pick = min if call.function == "min" else max
            return pick((term for term, _ in terms), key=rank_key)
        case "group_concat":
            return string(call.separator.join(text_of(term) for term, n in terms for _ in range(n)))
    if call.function == "count":
        raise NoValue  # which every engine has
    by_rule = AggregateCall(call.function, Variable("x"), Variable("y"))
    return aggregate_by_rule(by_rule, [term for term, _ in terms], [times for _, times in terms])
