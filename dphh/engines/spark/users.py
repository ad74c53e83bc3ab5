"""Whose row it is, as Spark's SQL."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NullType,
    StringType,
    VarcharType,
)

from dphh.corpus import Corpus
from dphh.engines.spark.rows import identifier
from dphh.errors import CorpusError
from dphh.rows.user import NO_USERS

#: Types of groups, besides text: their values are written alike everywhere.
PLAIN = (IntegralType, BooleanType, DateType, NullType)


def user_sql(corpus: Corpus, types: Mapping[str, DataType]) -> str:
    """The id of the row's user as text: all later steps see this text alone. Several columns make
    one text of lengths in bytes and values; NULL if one of the values is NULL."""
    texts = []
    for option, column in corpus.columns_of_user:
        text, kind = identifier(column), types[column]
        if not is_text(kind) and not isinstance(kind, (*PLAIN, DecimalType)):
            raise CorpusError(
                NO_USERS.format(option=option, column=column, kind=kind.simpleString())
            )
        texts.append(f"checked({text})" if is_text(kind) else f"CAST({text} AS STRING)")
    if isinstance(corpus.user, str):
        return texts[0]
    spelled = [f"CAST(octet_length({text}) AS STRING), ':', {text}" for text in texts]
    return f"concat({', '.join(spelled)})"


def is_text(kind: DataType) -> bool:
    return isinstance(kind, (StringType, VarcharType))
