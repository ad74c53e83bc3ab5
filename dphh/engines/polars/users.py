"""Whose row it is, and whether it counts, as Polars expressions."""

from __future__ import annotations

import polars as pl

from dphh.corpus import Corpus
from dphh.engines.polars.conditions import kept
from dphh.errors import CorpusError
from dphh.sources.finding import NO_UNITS


def unit_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The unit that a row belongs to. Several values become one text that determines each of them;
    NULL if one of them is NULL."""
    if isinstance(corpus.user, str):
        return user_expression(corpus.user, schema[corpus.user])
    parts: list[pl.Expr] = []
    for option, column in corpus.columns_of_user:
        if not is_plain(schema[column]):
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=schema[column]))
        text = pl.col(column).cast(pl.String)
        parts += [text.str.len_bytes().cast(pl.String), pl.lit(":"), text]
    return pl.concat_str(parts, ignore_nulls=False)


def counts_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The condition for rows that are read: they have content and meet the corpus's condition."""
    holds = pl.col(corpus.content.column).is_not_null()
    if corpus.content.where is not None:
        holds &= kept(corpus.content.where, schema)
    return holds


def user_expression(column: str, kind: pl.DataType) -> pl.Expr:
    """The user column, with categorical values as text: their numbers, in order of appearance, must
    not be hashed or sorted."""
    user = pl.col(column)
    return user.cast(pl.String) if isinstance(kind, (pl.Categorical, pl.Enum)) else user


def is_plain(kind: pl.DataType) -> bool:
    """Whether all engines spell the values of this type alike."""
    plain = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)
    return kind.is_integer() or isinstance(kind, plain)
