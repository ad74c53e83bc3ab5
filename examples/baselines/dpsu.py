"""DPSU (Gopi et al. 2020) over whole n-grams: the baselines of DPNE's paper, for comparison.

- "all": one set union over the n-grams of all lengths; a user counts for the sum of Delta_k.
- "even": one for each length, the budget shared out evenly.
- "single": one for the longest length alone, with the whole budget.

Not for publication: it makes no Release and asks no ledger. What they find beside `dphh.ngrams` is
in docs/ngrams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from dphh import Corpus
from dphh.engines import open_host
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.set_union.levels import SetUnionLevel, price_rounds
from dphh.privacy.events import Event
from dphh.reader.rows import Limits
from dphh.udfs.noise.randomness import Randomness, SystemRandomness
from dphh.udfs.noise.sampler import draw_rounded_gaussian
from dphh.udfs.rules.weights import weight

Method = Literal["all", "even", "single"]
OnGrid = SetUnionLevel | PrunedLevel


@dataclass(frozen=True)
class Baseline:
    method: Method
    levels: tuple[SetUnionLevel, ...]
    #: What one run costs, to be composed.
    events: tuple[Event, ...]


def priced(
    method: Method, *, max_n: int, epsilon: float, delta: float, max_items: int | Sequence[int]
) -> Baseline:
    """max_items: Delta_k, how many n-grams a user counts for: one number, or one a length."""
    bounds = [max_items] * max_n if isinstance(max_items, int) else [*max_items]
    shares = [1 / max_n] * max_n if method == "even" else [1.0]
    caps = {"all": [sum(bounds)], "even": bounds, "single": bounds[-1:]}[method]
    rounds, events, _ = price_rounds(epsilon, delta, shares, caps, CountsOptions())
    lengths = [max_n] if method == "single" else [*range(1, max_n + 1)]
    drawn = rounds * max_n if method == "all" else rounds
    levels = tuple(
        SetUnionLevel(
            level=length,
            max_items=each.max_items,
            grid_bits=each.grid_bits,
            sigma_grid=each.sigma_grid,
            threshold_grid=each.threshold_grid,
        )
        for length, each in zip(lengths, drawn, strict=True)
    )
    return Baseline(method, levels, events)


def found_by(
    baseline: Baseline, corpus: Corpus, *, randomness: Randomness | None = None
) -> pl.DataFrame:
    """What it finds: level, tokens, and the noised weight as a score."""
    source = randomness or SystemRandomness()
    texts = texts_of(corpus)
    if baseline.method == "all":
        lengths = [level.level for level in baseline.levels]
        held = pl.concat([grams_of(texts, length) for length in lengths])
        return drawn(held, baseline.levels[0], source)
    return pl.concat(
        [drawn(grams_of(texts, level.level), level, source) for level in baseline.levels]
    )


def texts_of(corpus: Corpus) -> pl.DataFrame:
    """user, and the tokens of one text."""
    host: Any = open_host("duckdb", corpus, SystemRandomness(), Limits())
    try:
        host.open()
        rows = host.con.sql(
            "SELECT user_id AS user, tokens_of(content) AS tokens FROM rows_of_corpus"
        ).pl()
    finally:
        host.close()
    there = pl.col("tokens").list.eval(pl.element().filter(pl.element() != ""))
    return rows.drop_nulls().with_columns(there)


def grams_of(texts: pl.DataFrame, length: int) -> pl.DataFrame:
    """user, and an n-gram of this length that the user holds; each once."""
    places = pl.int_ranges(pl.col("tokens").list.len().cast(pl.Int64) - length + 1)
    at = texts.with_columns(place=places).explode("place").drop_nulls()
    gram = at.select("user", tokens=pl.col("tokens").list.slice(pl.col("place"), length))
    return gram.unique(maintain_order=True)  # so that equal seeds draw the same


def drawn(held: pl.DataFrame, level: SetUnionLevel, source: Randomness) -> pl.DataFrame:
    """The weighted Gaussian of DPSU: noised sums that reach the threshold."""
    return passed(noised(held, level, source), level)


def noised(held: pl.DataFrame, level: OnGrid, source: Randomness) -> pl.DataFrame:
    """tokens, noisy: a user of n grams, at most max_items of them and those at random, gives
    1 / sqrt(n) to each; the sums take noise."""
    purpose = f"dpsu {level.level}"
    order = pl.Series("draw", source.random_words(len(held), f"{purpose}/sample"))
    kept = held.with_columns(order).filter(
        pl.col("draw").rank("ordinal").over("user") <= level.max_items
    )
    given = [0, *(weight(level.grid_bits, n) for n in range(1, level.max_items + 1))]
    number = pl.len().over("user")
    sums = (
        kept.with_columns(weight=number.replace_strict(range(len(given)), given))
        .group_by("tokens", maintain_order=True)
        .agg(pl.col("weight").sum())
    )
    noise = draw_rounded_gaussian(source, level.sigma_grid, len(sums), f"{purpose}/noise")
    return sums.select("tokens", noisy=pl.col("weight") + pl.Series(noise))


def passed(noisy: pl.DataFrame, level: OnGrid) -> pl.DataFrame:
    """level, tokens, score of what reaches the threshold."""
    return noisy.filter(pl.col("noisy") >= level.threshold_grid).select(
        level=pl.col("tokens").list.len().cast(pl.Int32),
        tokens="tokens",
        score=pl.col("noisy") / 2**level.grid_bits,
    )
