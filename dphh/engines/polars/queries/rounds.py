"""The noised weights that the rounds of a set union have output for each word so far."""

from __future__ import annotations

import polars as pl


def told_so_far(noised: pl.LazyFrame, before: pl.LazyFrame | None, parts: int) -> pl.LazyFrame:
    """(key, told) of each word that some user held in the last round: the sum over rounds of the
    noised weight times the round's parts."""
    of_last = noised.select("key", told=parts * pl.col("noisy"))
    if before is None:
        return of_last
    joined = of_last.join(before, on="key", how="left", suffix="_before")
    return joined.select("key", told=pl.col("told") + pl.col("told_before").fill_null(0))
