"""`sql/rows/gather_texts.sql`: passes every text of the corpus and its user to the gathering."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.names import spelled_users
from dphh.engines.polars.queries.set_union import of_users
from dphh.udfs.kernel.gathering import Gathering

#: Types of user ids that are 64-bit numbers.
NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def gather_texts(tokens_of_rows: pl.LazyFrame, gathering: Gathering) -> pl.LazyFrame:
    """Passes texts in any order to `udfs/kernel/gathering.py`, which numbers the words and lays out
    whole users. A user is identified by a number or by a name; if equal user ids may have different
    spellings, by the number of the user's first row, and the name comes along."""

    key, name = _key_and_name(tokens_of_rows.collect_schema()["user_id"])
    rows = tokens_of_rows.with_row_index("row")
    texts = rows.select("tokens", "group_name", key=key, name=name)
    handed = of_users(gathering.add, pl.Int32, "key", "name", "tokens", "group_name")
    return texts.select(texts=handed).sum()


def _key_and_name(kind: pl.DataType) -> tuple[pl.Expr, pl.Expr]:
    user = pl.col("user_id")
    if kind in NUMBERS:
        number = pl.UInt64 if kind == pl.UInt64 else pl.Int64
        return user.cast(number), pl.lit(None, pl.String)
    if kind == pl.String or kind.is_integer():
        return pl.lit(None, pl.Int64), user.cast(pl.String)
    # Equal values may have different spellings, so the user's first row identifies the user.
    first = pl.col("row").first().over(user).cast(pl.Int64)
    name = user.map_batches(_user_ids_as_text, return_dtype=pl.String, is_elementwise=True)
    return pl.when(user.is_not_null()).then(first), name


def _user_ids_as_text(users: pl.Series) -> pl.Series:
    return pl.Series(spelled_users(users), dtype=pl.String)
