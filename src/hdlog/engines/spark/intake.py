"""DataFrames of users into facts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DataType, DoubleType, FloatType, IntegralType, StringType

from hdlog.engines.identifiers import INTEGER_LIMIT, INTEGERS
from hdlog.engines.load import InputError
from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Keeper
from hdlog.engines.spark.relation import Facts, late
from hdlog.program.terms import XSD_BOOLEAN, XSD_DOUBLE

_QUOTED = r"""concat('"', replace(replace(replace(replace(replace({c}, '\\', '\\\\'), '"', '\\"'), '\n', '\\n'), '\r', '\\r'), '\t', '\\t'), '"')"""


def encode_frame(dictionary: Dictionary, keeper: Keeper, data: DataFrame) -> Facts:
    """The rows of a DataFrame as facts, each once; columns in order, whatever their names."""
    arity = len(data.columns)
    named = keeper.frame(data.toDF(*(f"g{i}" for i in range(arity))))
    types = [field.dataType for field in data.schema.fields]
    texts = [i for i, t in enumerate(types) if not isinstance(t, IntegralType)]
    given = named.select(
        *(
            f"{INTEGERS}L + g{i} AS c{i}" if i not in texts else f"{_text_sql(i, types[i])} AS t{i}"
            for i in range(arity)
        ),
        *(f"g{i} AS n{i}" for i in range(arity)),
    )
    missing = " OR ".join(f"n{i} IS NULL" for i in range(arity)) or "false"
    large = " OR ".join(f"abs(n{i}) >= {INTEGER_LIMIT}L" for i in range(arity) if i not in texts) or "false"
    kept, told = keeper.keep(given, {"missing": f"count_if({missing})", "large": f"count_if({large})"})
    if told["missing"]:
        raise InputError(
            f"a table of facts has no missing values; {told['missing']:,} rows of the DataFrame do"
        )
    if told["large"]:
        raise InputError(
            f"numbers of a DataFrame must be below 2^61; those of {told['large']:,} rows are not"
        )
    for i in texts:
        dictionary.intern(kept.select(f"t{i} AS text"))
    frame = kept
    for i in texts:
        known = dictionary.frame()
        assert known is not None, "the texts have ids by now"
        frame = frame.join(known.select("text AS t" + str(i), f"id AS c{i}"), [f"t{i}"])
    return late(
        arity,
        frame.select(*(f"c{i}" for i in range(arity))).totals([f"c{i}" for i in range(arity)], "1L AS m"),
        True,
    )


def _text_sql(number: int, kind: DataType) -> str:
    """The N-Triples text of a value."""
    name = f"g{number}"
    if isinstance(kind, StringType):
        return _QUOTED.format(c=name)
    if isinstance(kind, BooleanType):
        return f"concat('\"', {name}, '\"^^<{XSD_BOOLEAN}>')"
    if isinstance(kind, DoubleType | FloatType):
        return f"concat('\"', CAST({name} AS DOUBLE), '\"^^<{XSD_DOUBLE}>')"
    raise InputError(
        f"column {number + 1} of the DataFrame has the type {kind.simpleString()}; cast it to a string"
    )
