"""DPSU (Gopi et al. 2020) over whole n-grams: the baselines of DPNE's paper, for comparison.

- "all": one set union over the n-grams of all lengths; a user counts for the sum of Delta_k.
- "even": one for each length, the budget shared out evenly.
- "single": one for the longest length alone, with the whole budget.

Not for publication: it makes no Release and asks no ledger. What they find beside `dphh.ngrams` is
in docs/dpne.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from dphh import Corpus
from dphh.engines import open_session
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.levels import spelled_keys
from dphh.mechanisms.released_rows import whole
from dphh.mechanisms.set_union.rounds import price_rounds
from dphh.privacy.events import Event
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness, SystemRandomness
from dphh.udfs.kernel.reading import Reading

Method = Literal["all", "even", "single"]


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
    rounds, events, _ = price_rounds(epsilon, delta, shares, caps, Counting())
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
    baseline: Baseline,
    corpus: Corpus,
    *,
    randomness: Randomness | None = None,
    threads: int | None = None,
) -> pl.DataFrame:
    """What it finds: level, tokens, and the noised weight as a score."""
    together = baseline.method == "all"
    source = randomness or SystemRandomness()
    session = open_session("duckdb", corpus, source, Limits(None, threads))
    passed: Any = None
    tables = []
    try:
        for level in baseline.levels:
            if passed is None or not together:
                last = baseline.levels[-1].level if together else level.level
                session.hold(Reading(lengths=(level.level, last)))
                passed = session.draw(level, f"ngrams/dpsu-{baseline.method} {level.level}")
            _, tokens, chosen = spelled_keys(passed.column("key"), level.level, "")
            noisy = whole(passed.column("noisy"), pa.int64()).filter(chosen)
            found = pl.DataFrame({"tokens": pl.from_arrow(tokens), "noisy": pl.from_arrow(noisy)})
            tables.append(
                found.select(
                    pl.lit(level.level).alias("level"),
                    pl.col("tokens").cast(pl.List(pl.String)),
                    score=pl.col("noisy") / 2**level.grid_bits,
                )
            )
    finally:
        session.close()
    return pl.concat(tables)
