"""DPNE's ladder: positions of valid grams, and one level of set union over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from dphh.engines.polars.steps import step
from dphh.engines.polars.steps.set_union import histogram

if TYPE_CHECKING:
    from dphh.engines.polars.host import PolarsHost

Tables = dict[str, pl.LazyFrame]
IDS = pl.List(pl.Int32)


@step
def positions_of_words(host: PolarsHost, *, released: Any, single: bool) -> Tables:
    """The positions of valid grams of two words: at each position the key of the pair that begins
    there, or -1. A pair is valid if both words were released; they are adjacent in one text.
    Positions that can be in no pair are dropped. With pruning on a single side all positions stay,
    together with the released words, in which longer grams end."""
    grams = host.call("numbers_of_words", "ids", released)
    positions = host.table("users").select("user_hashes", "lengths", grams=grams)
    ends = pl.col("grams") if single else pl.lit(None, IDS)
    return {"next_positions": _candidates(host, positions.with_columns(ends=ends), 1)}


@step
def positions_of_grams(host: PolarsHost, *, released: Any, ahead: int) -> Tables:
    """The positions of the next level's valid grams. A gram is valid if its pieces were released:
    its first k - 1 tokens, and either its last k - 1 (pruning on both sides: a released gram one
    position ahead) or its last one (on a single side: a released word k - 1 positions ahead)."""
    grams = host.call("numbers_of_grams", "keys", released)
    positions = host.table("positions").select("user_hashes", "lengths", "ends", grams=grams)
    return {"next_positions": _candidates(host, positions, ahead)}


def _candidates(host: PolarsHost, positions: pl.LazyFrame, ahead: int) -> pl.LazyFrame:
    found = host.call("pairs", "lengths", "grams", "ends", ahead)
    return positions.select("user_hashes", "ends", pairs=found).unnest("pairs")


@step
def other_words(host: PolarsHost, *, others: int) -> Tables:
    """Level 1 with a list: (word, key) of the words that it lacks, whose keys are from `others`
    on."""
    ids = pl.Series(range(len(host.words)), dtype=pl.Int64)
    words = pl.LazyFrame({"word": host.spelled(ids), "key": others + ids})
    listed = host.table("listed").with_columns(pl.col("word").cast(pl.String))
    return {"other_words": words.join(listed, on="word", how="anti")}


@step
def keys_by_list(host: PolarsHost) -> pl.LazyFrame:
    """(key, value): of each word its number in the list, or the key that it got."""
    words = [host.table(name).select("word", "key") for name in ("listed", "other_words")]
    return pl.concat(words).select(key=pl.col("word").cast(pl.String), value="key")


@step
def positions_of_listed(
    host: PolarsHost, *, keys: Any, others: int, max_items: int, salt: int
) -> Tables:
    """Level 1 with a list: which words users count for, by their keys. All that the list has, and
    of others `max_items`, the first in an order that is the user's own. The same in both rounds."""
    listed = host.call(
        "keys_of_words", "user_hashes", "lengths", "ids", keys, others, max_items, salt
    )
    return {"positions": host.table("users").select("user_hashes", "lengths", keys=listed)}


@step
def grams_level(
    host: PolarsHost,
    *,
    max_items: int,
    grid_bits: int,
    salt: int,
    sigma: int,
    purpose: str,
    **_: Any,
) -> dict[str, pl.DataFrame]:
    """A level above the first: the same set union, over the valid grams that users hold."""
    contribution = host.call(
        "contributions_of_grams", "user_hashes", "lengths", "keys", max_items, grid_bits, salt
    )
    sums = histogram(host.table("positions").select(contribution=contribution))
    return {"noised": host.noised(host.collect("grams_level", sums), sigma, purpose)}


@step
def lifted(
    host: PolarsHost, *, valid: Any, sigma: int, threshold: int, purpose: str
) -> dict[str, pl.DataFrame]:
    """(position, key, noisy): valid grams that no user keeps and that noise lifts to rho_k."""
    kept = pa.array([host.tables["noised"].height])
    drawn = host.functions["lifted"].body(kept, valid, sigma, threshold, purpose)
    return {"lifted": pl.Series(drawn.flatten()).struct.unnest()}


@step
def released_grams(host: PolarsHost, *, threshold: int) -> pl.LazyFrame:
    """The release of a level of DPNE: every valid gram, held or absent, whose noised weight reaches
    rho_k."""
    noised, lifted = host.table("noised"), host.table("lifted")
    unkept = (
        lifted.join(noised, on="key", how="anti")
        .sort("position")
        .select("key", position=pl.int_range(pl.len()))
    )
    spurious = unkept.join(lifted.select("position", "noisy"), on="position").filter(
        pl.col("noisy").is_not_null()
    )
    passed = noised.filter(pl.col("noisy") >= threshold)
    return pl.concat([passed.select("key", "noisy"), spurious.select("key", "noisy")])
