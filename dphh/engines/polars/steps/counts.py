"""Counts of public keys: `sql/counts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dphh.engines.polars.steps import step
from dphh.engines.polars.steps.set_union import histogram

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost


@step
def counts_level(
    host: PolarsHost, *, weighing: Any, sigma: int, purpose: str
) -> dict[str, pl.DataFrame]:
    """A user adds one user's weight to each key held, or less if they hold more than max_items.
    What each of their keys then lost is added once, to the octave of the number of keys that they
    hold. Every key has noise."""
    contribution = host.call("counted", "lengths", "ids", weighing)
    sums = histogram(host.table("counted_users").select(contribution=contribution))
    every = host.table("asked").join(sums, on="key", how="left", maintain_order="left")
    added = host.collect("counts_level", every.with_columns(pl.col("weight").fill_null(0)))
    return {"noised": host.noised(added, sigma, purpose)}


@step
def counts_drawn(host: PolarsHost) -> pl.LazyFrame:
    return host.table("noised").select("key", "noisy")
