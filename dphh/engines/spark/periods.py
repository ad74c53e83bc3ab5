"""The unit and the period of a row, as Spark's SQL (`sql/spark/periods.sql`)."""

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
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from dphh.corpus import Corpus
from dphh.engines.spark.rows import identifier
from dphh.errors import CorpusError
from dphh.rows.period import PeriodColumn
from dphh.sources.finding import NO_PERIOD, NO_UNITS
from dphh.sources.near_periods import near_sql

#: Types, besides text, whose values all engines spell alike.
PLAIN = (IntegralType, BooleanType, DateType, NullType)

#: The literal syntax of types whose comparisons let Spark skip row groups. Timestamps without a
#: zone are not among them.
_LITERAL_OF_TYPE: dict[type[DataType], str] = {DateType: "DATE", TimestampType: "TIMESTAMP"}


def user_sql(corpus: Corpus, types: Mapping[str, DataType]) -> str:
    """The unit that a row belongs to. Several values become one text of lengths in bytes and
    values; NULL if one of the values is NULL."""
    parts = []
    for option, column in corpus.columns_of_user:
        text, kind = identifier(column), types[column]
        if is_text(kind):
            text = f"checked({text})"
        if not corpus.unit_is_spelled:
            return _spelled_alike(text, kind)
        if not is_text(kind) and not isinstance(kind, PLAIN):
            kind_said = kind.simpleString()
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=kind_said))
        parts.append(text)
    if corpus.period is not None:
        parts.append(period_sql(corpus.period, types))
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


def counts_sql(corpus: Corpus, types: Mapping[str, DataType]) -> str:
    """The condition for rows that are read: they have content and are in one of the periods. A row
    without a period is kept, so that it is refused like a row with a NULL user id."""
    holds = f"{identifier(corpus.content.column)} IS NOT NULL"
    if corpus.period is None or corpus.periods is None:
        return holds
    period = period_sql(corpus.period, types)
    within = [f"{period} BETWEEN {first} AND {last}" for first, last in corpus.periods]
    kind = type(types[corpus.period.column])
    near = near_sql(
        corpus.period,
        corpus.periods,
        identifier(corpus.period.column),
        _LITERAL_OF_TYPE.get(kind),
        zoned=kind is TimestampType,
    )
    return f"{holds} AND ({' OR '.join([f'{period} IS NULL', *within])}){near}"


def period_sql(period: PeriodColumn, types: Mapping[str, DataType]) -> str:
    """The number of the row's period; NULL if it has none."""
    column, kind = identifier(period.column), types[period.column]
    if period.by == "number":
        if is_text(kind):
            return f"written_number({column})"
        if not isinstance(kind, IntegralType):
            raise CorpusError(NO_PERIOD.format(period=period, kind=kind.simpleString()))
        return f"CAST({column} AS BIGINT)"
    if is_text(kind):
        day = f"written_date({column})"
    elif isinstance(kind, TimestampType):
        day = f"day_in_zone({column}, '{period.zone}')"
    elif isinstance(kind, (DateType, TimestampNTZType)):
        day = f"CAST({column} AS DATE)"
    else:
        raise CorpusError(NO_PERIOD.format(period=period, kind=kind.simpleString()))
    return f"period_by_{period.by}({day})"


def is_text(kind: DataType) -> bool:
    return isinstance(kind, (StringType, VarcharType))
