"""What is known of users' purses: noised numbers of users, by how far they can climb and by what
part of a purse they have left. Purses, their mean, and how many are empty are private.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphh.udfs.arrays import Floats
from dphh.udfs.rules.forecast import ONE_PART, PURSE_PARTS


class PursesSeen:
    """`counts`: noised numbers of users, PURSE_PARTS for each number of levels that a user can
    climb. `full`: what a purse has at most. `likely`: what all users are taken to have where the
    numbers tell nothing; what all have, if it is `full`."""

    def __init__(self, counts: Floats, full: float, likely: float) -> None:
        self.counts = counts.reshape(-1, PURSE_PARTS)
        middles = (np.arange(PURSE_PARTS) + 0.5) / PURSE_PARTS * full
        self.purses = np.repeat(middles[None, :], len(self.counts), axis=0)
        if self.counts.sum() == 0 or likely == full:
            self.counts = np.maximum(self.counts.sum(1, keepdims=True), float(counts.sum() == 0))
            self.purses = np.full_like(self.counts, likely)

    def mean(self, *, less: float = 0.0, least_climb: int = 0) -> float:
        """The mean purse of users who can climb at least so far, after a round took `less`."""
        return self.mean_spent([ONE_PART] * len(self.counts), less=less, least_climb=least_climb)

    def mean_spent(self, parts: Sequence[int], *, less: float = 0.0, least_climb: int = 0) -> float:
        """What they spend on average if users spend these parts, in ONE_PARTs, by how far they can
        climb."""
        counts = self.counts[least_climb:]
        if counts.sum() == 0:
            counts = np.ones_like(counts)
        left = np.maximum(self.purses[least_climb:] - less, 0)
        spent = left * (np.asarray(parts)[least_climb:, None] / ONE_PART)
        return max(float((counts * spent).sum() / counts.sum()), 1.0)

    def after_spending(self, parts: Sequence[int], usual: float) -> None:
        """Take away what a round took: `usual` of these parts."""
        self.purses *= 1 - usual * np.asarray(parts)[:, None] / ONE_PART
