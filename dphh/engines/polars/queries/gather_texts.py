"""`sql/rows/gather_texts.sql`: passes every text of the corpus and its user to the gathering."""

from __future__ import annotations

import polars as pl

from dphh.engines.polars.queries.set_union import of_users
from dphh.udfs.kernel.gathering import Gathering


def gather_texts(tokens_of_rows: pl.LazyFrame, gathering: Gathering) -> pl.LazyFrame:
    """Passes texts in any order to `udfs/kernel/gathering.py`, which numbers users and words and
    lays out whole users."""
    handed = of_users(gathering.add, pl.Int32, "user_id", "tokens", "group_name")
    return tokens_of_rows.select(texts=handed).sum()
