"""DataFrames of users into facts, each value the term that `hdlog.reading.values` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Keeper, union
from hdlog.engines.spark.relation import Facts, defer
from hdlog.errors import InputError
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGERS, text_ids
from hdlog.reading.term_table import TermTable
from hdlog.reading.values import BAD, column_ids

_KINDS = (
    IntegralType,
    StringType,
    BooleanType,
    DoubleType,
    FloatType,
    DecimalType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


def encode_frame(
    dictionary: Dictionary, keeper: Keeper, data: DataFrame, types: Sequence[str], any_size: bool = False
) -> Facts:
    """The rows of a DataFrame as facts, each once; columns in order, with their declared types.

    Integers that are ids by themselves never leave Spark's own code. If there are larger ones, of `any_size`, all go through the
    Python workers.
    """
    arity = len(data.columns)
    kinds = [field.dataType for field in data.schema.fields]
    _check_kinds(data.columns, kinds)
    plain = [
        isinstance(k, IntegralType) and t in ("", "any", "number") and not any_size
        for k, t in zip(kinds, types, strict=True)
    ]
    named = data.toDF(*(f"g{i}" for i in range(arity)))
    if not all(plain):
        named = named.mapInArrow(_Encoder(plain, types, dictionary.clashes), _schema(kinds, plain))
    encoded = keeper.frame(named).select(
        *(f"try_add({INTEGERS}L, g{i}) AS c{i}" if whole else f"c{i}" for i, whole in enumerate(plain)),
        *(f"t{i}" for i, whole in enumerate(plain) if not whole),
        *(f"g{i} IS NULL AS n{i}" if whole else f"n{i}" for i, whole in enumerate(plain)),
        *(
            f"(g{i} >= {INTEGER_LIMIT}L OR g{i} <= -{INTEGER_LIMIT}L) AS b{i}" if whole else f"b{i}"
            for i, whole in enumerate(plain)
        ),
    )
    metrics: dict[str, str] = {}
    for what in "nb":
        metrics |= {f"{what}{i}": f"count_if({what}{i})" for i in range(arity)}
    kept, figures = keeper.keep(encoded, metrics, "values of a DataFrame to ids")
    if any(figures[f"b{i}"] for i, whole in enumerate(plain) if whole):
        return encode_frame(dictionary, keeper, data, types, any_size=True)
    _check_values(data.columns, types, figures)
    texts = [i for i, whole in enumerate(plain) if not whole]
    if texts:
        dictionary.note(union([kept.select(f"c{i} AS id", f"t{i} AS text") for i in texts]))
    columns = [f"c{i}" for i in range(arity)]
    return defer(arity, kept.select(*columns).totals(columns, "1L AS m"), True)


def _check_kinds(names: Sequence[str], kinds: Sequence[DataType]) -> None:
    for name, kind in zip(names, kinds, strict=True):
        if not isinstance(kind, _KINDS):
            raise InputError(
                f"column {name} of the DataFrame has the type {kind.simpleString()}, which no value of a fact has; "
                "cast it to a string"
            )


def _check_values(names: Sequence[str], types: Sequence[str], figures: dict[str, int]) -> None:
    for i, (name, type_) in enumerate(zip(names, types, strict=True)):
        if figures[f"n{i}"]:
            raise InputError(
                f"column {name} of the DataFrame: a value is missing in {figures[f'n{i}']:,} rows"
            )
        if figures[f"b{i}"]:
            what = f"no {type_}" if type_ not in ("", "any") else "no values a fact can have"
            raise InputError(
                f"column {name} of the DataFrame: the values of {figures[f'b{i}']:,} rows are {what}"
            )


def _schema(kinds: Sequence[DataType], plain: Sequence[bool]) -> str:
    fields = []
    for i, whole in enumerate(plain):
        if whole:
            fields.append(f"g{i} {kinds[i].simpleString()}")
        else:
            fields += [f"c{i} BIGINT", f"t{i} STRING", f"n{i} BOOLEAN", f"b{i} BOOLEAN"]
    return ", ".join(fields)


class _Encoder:
    """Batches of values into batches with, for each value, its id, its text if it has one; missing; bad."""

    def __init__(self, plain: Sequence[bool], types: Sequence[str], clashes: Mapping[str, int]) -> None:
        self.plain, self.types, self.clashes = plain, types, dict(clashes)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns: dict[str, pa.Array] = {}
            for i, (whole, type_) in enumerate(zip(self.plain, self.types, strict=True)):
                values = batch.column(i)
                if whole:
                    columns[f"g{i}"] = values
                    continue
                terms = TermTable()
                ids = column_ids(terms, values, type_)
                missing = values.is_null().to_numpy(zero_copy_only=False)
                bad = (ids == BAD) & ~missing
                texts = terms.texts()
                named = ids >= 0
                store_ids = ids.copy()
                store_ids[named] = text_ids(texts, self.clashes)[ids[named]]
                columns[f"c{i}"] = pa.array(store_ids, mask=ids == BAD)
                columns[f"t{i}"] = texts.take(pa.array(np.maximum(ids, 0), mask=~named))
                columns[f"n{i}"] = pa.array(missing)
                columns[f"b{i}"] = pa.array(bad)
            yield pa.record_batch(columns)
