"""Confidence intervals for the weights behind a release's scores. Free: reads the release only.

An item is seen because its noised weight passed a threshold, so its score is too high on average.
The interval inverts the noise truncated at the threshold (`dphh.privacy.selective`). If a level has
several rounds, the release does not say in which round an item passed. Its interval then contains
those of all rounds that are possible, and covers the truth at least as often as stated. Scores of
the forecast ladder's longer n-grams combine two rounds and a forecast: they have no such interval.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphh.errors import UsageError
from dphh.privacy.counts import checked_confidence
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.selective import weight_intervals
from dphh.report.released import Released

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
#: Kinds of levels whose scores are the noised weights that passed.
PASSED = ("set_union", "alone", "weighed", "pruned")


def weights_of(release: Released, confidence: float) -> pl.DataFrame:
    """Columns level, item, tokens, score, weight_low, weight_high, users_at_least."""
    import polars as pl

    from dphh.report.readable import readable

    checked_confidence(confidence)
    rounds = [level for level in release.manifest["levels"] if level.get("kind") in PASSED]
    if not rounds:
        raise UsageError(
            f"weights: found a release of {release.manifest['verb']}, whose scores are not noised "
            "weights; give a release of items or ngrams"
        )
    frame = pl.DataFrame(release.table).select("level", "item", "tokens", "score")
    # An item that is counted within groups has a row in each, and one score.
    frame = frame.unique(["level", "item"], maintain_order=True)
    scores = frame["score"].to_numpy()
    levels = frame["level"].to_numpy()
    low, high = np.full(len(frame), np.inf), np.full(len(frame), -np.inf)
    for level in rounds:
        here = np.flatnonzero(levels == level["level"])
        passed = _intervals_of_round(level, scores[here], confidence)
        low[here] = np.minimum(low[here], passed[0])
        high[here] = np.maximum(high[here], passed[1])
    unknown = low > high
    if unknown[np.isin(levels, [level["level"] for level in rounds])].any():
        raise UsageError("score: found one that no round can release; load the release again")
    return readable(frame).with_columns(
        pl.Series("weight_low", _null_where_unknown(low, unknown), pl.Float64),
        pl.Series("weight_high", _null_where_unknown(high, unknown), pl.Float64),
        pl.Series("users_at_least", [None if x == np.inf else ceil(x) for x in low], pl.Int64),
    )


def _intervals_of_round(
    level: dict[str, Any], scores: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """The intervals, in whole weights, of the scores that this round may have released."""
    unit, threshold = 2.0 ** level["grid_bits"], level["threshold_grid"]
    grid = scores * unit
    can_be = np.flatnonzero((grid == np.rint(grid)) & (grid >= (threshold or 0)))
    low, high = np.full(len(scores), np.inf), np.full(len(scores), -np.inf)
    if len(can_be):
        noise = rounded_gaussian(level["sigma_grid"])
        ends = weight_intervals(noise, threshold, grid[can_be].astype(np.int64), confidence)
        low[can_be], high[can_be] = ends[0] / unit, ends[1] / unit
    return low, high


def _null_where_unknown(values: Floats, unknown: NDArray[np.bool_]) -> list[float | None]:
    return [None if of else float(value) for value, of in zip(values, unknown, strict=True)]
