"""Facts as DataFrames of plain values, or of N-Triples texts."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from hdlog.engines.spark.dictionary import Dictionary, sql_text
from hdlog.engines.spark.frames import Keeper
from hdlog.engines.spark.relation import Facts
from hdlog.reading.identifiers import INTEGERS

_BETWEEN = 'regexp_extract({t}, \'(?s)^"(.*)"[^"]*$\', 1)'


def _format_plain(text: str) -> str:
    """What a table shows for a term: the IRI, the lexical form, the label."""
    lexical = _BETWEEN.format(t=text)
    # A backslash of the text waits as a character that no text has, so that what follows it is not taken for an escape.
    for escape, character in (
        ("\\\\", "\x01"),
        ("\\t", "\t"),
        ("\\n", "\n"),
        ("\\r", "\r"),
        ('\\"', '"'),
        ("\x01", "\\"),
    ):
        lexical = f"replace({lexical}, {sql_text(escape)}, {sql_text(character)})"
    return (
        f"CASE WHEN startswith({text}, '<') THEN substring({text}, 2, length({text}) - 2) "
        f"WHEN startswith({text}, '\"') THEN {lexical} ELSE {text} END"
    )


_XSD = "http://www.w3.org/2001/XMLSchema#"
_ZONE = "(Z|[+-][0-9][0-9]:[0-9][0-9])$"
_TYPED = (
    ("double", "DOUBLE", ""),
    ("boolean", "BOOLEAN", ""),
    ("date", "DATE", ""),
    ("dateTime", "TIMESTAMP", f"AND {{v}} RLIKE '{_ZONE}'"),
    ("dateTime", "TIMESTAMP_NTZ", f"AND NOT {{v}} RLIKE '{_ZONE}'"),
)
"""Datatypes of literals, the types of columns that have nothing else, and what else has to be true of a value."""


def _is_typed(text: str, datatype: str, type_: str, more: str) -> str:
    """Whether a term is a value of a type."""
    value = _BETWEEN.format(t=text)
    return (
        f"endswith({text}, '\"^^<{_XSD}{datatype}>') AND try_cast({value} AS {type_}) IS NOT NULL "
        + more.format(v=value)
    )


def plain_values(dictionary: Dictionary, keeper: Keeper, facts: Facts) -> DataFrame:
    """Values where a column has those of one type: integers, doubles, booleans, dates, times; otherwise texts: IRIs without brackets, literals
    without datatypes."""
    if facts.frame is None:
        schema = ", ".join(f"c{i} STRING" for i in range(facts.arity)) or "c0 STRING"
        return keeper.spark.createDataFrame([], schema=schema)
    names = facts.keys
    frame, figures = keeper.keep(
        facts.sums().select(*names),
        {f"texts{i}": f"count_if(c{i} >= 0)" for i in range(len(names))},
        "facts to be shown",
    )
    named = [i for i in range(len(names)) if figures[f"texts{i}"]]
    if named:
        kept = frame
        for i in named:
            # The ids are those of what is kept: of the frame so far, each column would double the work of the one before.
            texts = dictionary.texts_of(kept.select(f"c{i} AS id").distinct("id"))
            frame = frame.join(texts.select(f"id AS c{i}", f"text AS t{i}"), [f"c{i}"])
        metrics = {
            f"typed{i}_{k}": f"count_if({_is_typed(f't{i}', *typed)})"
            for i in named
            for k, typed in enumerate(_TYPED)
        }
        frame, more = keeper.keep(frame, metrics, "facts to be shown, with texts")
        figures |= more
    shown = [_show_column(i, figures) for i in range(len(names))]
    keeper.pin(frame.uses)
    return keeper.data(frame.select(*shown))


def _show_column(i: int, figures: Mapping[str, int]) -> str:
    if not figures[f"texts{i}"]:
        return f"c{i} - ({INTEGERS}L) AS c{i}"
    for k, (_, type_, _) in enumerate(_TYPED):
        if figures[f"typed{i}_{k}"] == figures["rows"]:
            return f"CAST({_BETWEEN.format(t=f't{i}')} AS {type_}) AS c{i}"
    return f"{_format_plain(f't{i}')} AS c{i}"
