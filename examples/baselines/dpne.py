"""DPNE (Kim et al. 2021, Algorithm 1) over n-grams as rows, by either pruning, for its Figure 4.

- "both": a longer gram is valid if its first and its last k - 1 tokens were released.
- "single": its first k - 1 tokens and its last token.

`dphh.ngrams(method="dpne")` runs the first. Its prices hold for both: what is valid depends on
releases alone, and every valid gram takes part. Not for publication: spurious grams are chosen by
NumPy's generator; it makes no Release and asks no ledger.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from baselines.dpsu import drawn, grams_of, noised, passed, texts_of
from dphh import Corpus, Plan
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.udfs.noise.randomness import Randomness, SystemRandomness
from dphh.udfs.noise.sampler import draw_noise_at_least
from dphh.udfs.noise.table import rounded_gaussian

Pruning = Literal["both", "single"]


class Valid:
    """V_k by index: pairs of a beginning and an ending that agree in the tokens they share."""

    def __init__(self, below: pl.Series, words: pl.Series, pruning: Pruning) -> None:
        self.begins, self.ends = below, below if pruning == "both" else words
        self.length = len(below[0]) + 1
        shared = self.length - 2 if pruning == "both" else 0
        texts = pl.concat([self.begins.list.tail(shared), self.ends.list.head(shared)])
        _, overlap = np.unique(texts.list.join("\x1f").to_numpy(), return_inverse=True)
        left, right = overlap[: len(self.begins)], overlap[len(self.begins) :]
        sizes = np.bincount(right, minlength=overlap.max() + 1)
        self._order = np.argsort(right, kind="stable")
        self._starts = (np.cumsum(sizes) - sizes)[left]
        self._after = np.cumsum(sizes[left])

    def __len__(self) -> int:
        return int(self._after[-1])

    def at(self, indices: np.ndarray) -> pl.Series:
        """The valid grams of these indices, from 0 to len - 1."""
        left = np.searchsorted(self._after, indices, side="right")
        before = np.where(left > 0, self._after[left - 1], 0)
        right = self._order[self._starts[left] + indices - before]
        pairs = pl.DataFrame({"begin": self.begins.gather(left), "end": self.ends.gather(right)})
        gram = pl.col("begin").list.concat(pl.col("end").list.tail(1))
        return pairs.select(tokens=gram).to_series()

    def among(self, grams: pl.DataFrame) -> pl.DataFrame:
        """Of users' grams, the valid ones."""
        end = pl.col("tokens").list.tail(len(self.ends[0]))
        parts = grams.with_columns(begin=pl.col("tokens").list.head(self.length - 1), end=end)
        for part, released in (("begin", self.begins), ("end", self.ends)):
            parts = parts.join(released.to_frame(part), on=part, how="semi")
        return parts.select("user", "tokens")


def found_by(
    plan: Plan, corpus: Corpus, pruning: Pruning, *, randomness: Randomness | None = None
) -> pl.DataFrame:
    """What the levels of this plan of DPNE find: level, tokens, score."""
    source = randomness or SystemRandomness()
    random = np.random.default_rng(source.random_words(4, "dpne/spurious"))
    base, *above = plan.levels
    texts = texts_of(corpus)
    found = [drawn(grams_of(texts, 1), base, source)]
    for planned in above:
        assert isinstance(planned, PrunedLevel)
        below, words = found[-1]["tokens"], found[0]["tokens"]
        if below.is_empty():
            break
        valid = Valid(below, words, pruning)
        threshold = spurious_threshold(planned, len(below), len(valid))
        level = replace(planned, threshold_grid=threshold)
        kept = noised(valid.among(grams_of(texts, level.level)), level, source)
        spurious = spurious_grams(valid, kept, level, source, random)
        found.append(passed(pl.concat([kept, spurious]), level))
    return pl.concat(found)


def spurious_grams(
    valid: Valid,
    kept: pl.DataFrame,
    level: PrunedLevel,
    source: Randomness,
    random: np.random.Generator,
) -> pl.DataFrame:
    """tokens, noisy: of the valid grams that no user keeps, those whose noise passes."""
    assert level.threshold_grid is not None
    passes = float(rounded_gaussian(level.sigma_grid).tail_upper_bound(level.threshold_grid))
    number = random.binomial(len(valid) - len(kept), passes)
    chosen = kept.select("tokens").clear()
    while len(chosen) < number:
        more = valid.at(random.integers(len(valid), size=number - len(chosen)))
        fresh = more.to_frame().join(kept, on="tokens", how="anti")
        chosen = pl.concat([chosen, fresh]).unique(maintain_order=True)
    purpose = f"dpne {level.level}/noise"
    noise = draw_noise_at_least(source, level.sigma_grid, level.threshold_grid, number, purpose)
    return chosen.with_columns(noisy=pl.Series(noise, dtype=pl.Int64))
