"""Whose row it is, as Spark's SQL."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    VarcharType,
)

from dphh.corpus import Corpus
from dphh.engines.spark.rows import identifier
from dphh.errors import CorpusError
from dphh.sources.finding import NO_UNITS

#: Types, besides text, whose values all engines spell alike.
PLAIN = (IntegralType, BooleanType, DateType, NullType)


def user_sql(corpus: Corpus, types: Mapping[str, DataType]) -> str:
    """The unit that a row belongs to. Several values become one text of lengths in bytes and
    values; NULL if one of the values is NULL."""
    parts = []
    for option, column in corpus.columns_of_user:
        text, kind = identifier(column), types[column]
        if is_text(kind):
            text = f"checked({text})"
        if isinstance(corpus.user, str):
            return _spelled_alike(text, kind)
        if not is_text(kind) and not isinstance(kind, PLAIN):
            kind_said = kind.simpleString()
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=kind_said))
        parts.append(text)
    spelled = []
    for part in parts:
        text = f"CAST({part} AS STRING)"
        spelled.append(f"CAST(octet_length({text}) AS STRING), ':', {text}")
    return f"concat({', '.join(spelled)})"


def _spelled_alike(value: str, kind: DataType, depth: int = 0) -> str:
    """The value such that equal ones have one spelling, by which users are told apart: the two
    zeros are one user, and so are all NaNs, also within lists and structs."""
    if isinstance(kind, (FloatType, DoubleType)):
        form = kind.simpleString()
        return f"if(isnan({value}), CAST('NaN' AS {form}), {value} + CAST(0 AS {form}))"
    if isinstance(kind, ArrayType):
        each = f"each{depth}"
        spelled = _spelled_alike(each, kind.elementType, depth + 1)
        return value if spelled == each else f"transform({value}, {each} -> {spelled})"
    if isinstance(kind, StructType):
        parts = [(field, f"{value}.{identifier(field.name)}") for field in kind.fields]
        spelled_parts = [_spelled_alike(part, field.dataType, depth) for field, part in parts]
        if spelled_parts == [part for _, part in parts]:
            return value
        named = [
            f"{part} AS {identifier(field.name)}"
            for (field, _), part in zip(parts, spelled_parts, strict=True)
        ]
        return f"if({value} IS NULL, NULL, struct({', '.join(named)}))"
    return value


def is_text(kind: DataType) -> bool:
    return isinstance(kind, (StringType, VarcharType))
