"""Facts as DataFrames of plain values, or of N-Triples texts."""

from __future__ import annotations

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


def plain_values(dictionary: Dictionary, keeper: Keeper, facts: Facts) -> DataFrame:
    """Integers where a column has nothing else; IRIs without brackets and literals without datatypes otherwise."""
    if facts.frame is None:
        schema = ", ".join(f"c{i} STRING" for i in range(facts.arity)) or "c0 STRING"
        return keeper.spark.createDataFrame([], schema=schema)
    names = facts.keys
    frame, figures = keeper.keep(
        facts.sums().select(*names), {f"texts{i}": f"count_if(c{i} >= 0)" for i in range(len(names))}
    )
    shown, kept = [], frame
    for i, name in enumerate(names):
        if figures[f"texts{i}"]:
            # The ids are those of what is kept: of the frame so far, each column would double the work of the one before.
            texts = dictionary.texts_of(kept.select(f"{name} AS id").distinct("id"))
            frame = frame.join(texts.select(f"id AS {name}", f"text AS t{i}"), [name])
            shown.append(f"{_format_plain(f't{i}')} AS {name}")
        else:
            shown.append(f"{name} - ({INTEGERS}L) AS {name}")
    keeper.pin(frame.uses)
    return keeper.data(frame.select(*shown))
