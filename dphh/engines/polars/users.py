"""Whose row it is, and whether it counts, as Polars expressions."""

from __future__ import annotations

import polars as pl

from dphh.corpus import Corpus
from dphh.engines.polars.conditions import kept
from dphh.errors import CorpusError
from dphh.rows.user import NO_USERS, columns_of

#: Types of groups, besides whole numbers: their values are written alike everywhere.
_PLAIN = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)


def user_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The id of the row's user as text: all later steps see this text alone. Several columns make
    one text that determines the value of each; NULL if one of them is NULL."""
    for option, column in corpus.columns_of_user:
        if not is_plain(kind := schema[column]) and not _is_decimal(kind):
            raise CorpusError(NO_USERS.format(option=option, column=column, kind=kind))
    if isinstance(corpus.user, str):
        return pl.col(corpus.user).cast(pl.String)
    parts: list[pl.Expr] = []
    for column in corpus.user:
        text = pl.col(column).cast(pl.String)
        parts += [text.str.len_bytes().cast(pl.String), pl.lit(":"), text]
    return pl.concat_str(parts, ignore_nulls=False)


def counts_expression(corpus: Corpus, schema: pl.Schema) -> pl.Expr:
    """The condition for rows that are read: they have content and, if others are to be dropped, a
    user; and they meet the corpus's condition."""
    holds = pl.col(corpus.content.column).is_not_null()
    if corpus.content.null_users == "drop":
        holds &= pl.all_horizontal(pl.col(each).is_not_null() for each in columns_of(corpus.user))
    if corpus.content.where is not None:
        holds &= kept(corpus.content.where, schema)
    return holds


def _is_decimal(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.Decimal) and (kind.precision or 0) <= 38  # it reads no longer ones


def is_plain(kind: pl.DataType) -> bool:
    """Whether all engines spell the values of this type alike."""
    return kind.is_integer() or isinstance(kind, _PLAIN)
