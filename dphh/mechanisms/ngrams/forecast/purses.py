"""What is known of users' purses: noised numbers of users, by how far they can climb and by what
part of a purse they have left. Purses, their mean, and how many are empty are private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dphh.level import FoundCounts
from dphh.mechanisms.counts.of_found import FINDS_OF_USER
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.privacy.set_union import LARGEST_GRID_SIGMA
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.rules.forecast import (
    MEAN_LIST_SIZES,
    ONE_PART,
    PURSE_PARTS,
    Reserve,
    Spending,
    count_weight,
)

#: What part of a whole mu^2 is kept for counts at most.
MOST_KEPT = 0.7
#: How many sigmas of a count's noise weigh as much as a user whom bounding removes from all finds.
#: Of more, users keep for fewer finds: each takes more of a purse, and fewer are found.
SIGMAS_A_BOUNDED_USER = 6
#: As many finds as this part of users hold at most, and no more, are counted by the share `counts`.
PART_OF_USERS = 0.9


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


def weights_of_bins(spending: Spending) -> Integers:
    """What each user who spends enough adds, in round 1, to each of the bins of users."""
    return np.concatenate(
        [
            np.full(bins, count_weight(spending.first * part))
            for part, bins in spending.kinds_of_bins
        ]
    )


def users_by_kind(users: Floats, spending: Spending) -> list[Floats]:
    """The numbers of users that `first_round` returns, by kind of bins."""
    return np.split(users, np.cumsum([bins for _, bins in spending.kinds_of_bins])[:-1])


def most_kept(level: ForecastLevel | ListedWordsLevel, purse: int) -> float:
    """The part of a whole mu^2 that users keep for counts at most: MOST_KEPT or, if it is less, of
    `purse`, what words left of the whole, the same part. So who holds any number of finds spends
    something in round 1 of level 2, and is counted there."""
    assert isinstance(level, ForecastLevel)
    return min((purse / level.whole) ** 2, MOST_KEPT)


def reserve_for_counts(
    level: ForecastLevel | ListedWordsLevel, purse: int, counting: FoundCounts, in_full: int
) -> Reserve:
    """What users keep for being counted, in the units of their purses, where a whole mu^2 counts a
    user in full for `in_full` finds. `purse`: what words left of the whole."""
    assert isinstance(level, ForecastLevel)
    each = int(level.whole / in_full * (1 + 2**-30)) + 1
    most = int(most_kept(level, purse) * in_full)
    return Reserve(each, counting.max_items, max(most, counting.max_items))


def finds_in_full(
    planned: int, now: int, users: Floats, level: ForecastLevel | ListedWordsLevel, purse: int
) -> int:
    """For how many finds a whole mu^2 counts a user in full, where `users` are expected to hold
    so many finds, by the bins of list sizes. `now`, or more: then each find takes less of a purse,
    and its count has more noise.

    A plan keeps the share `counts` of a whole purse for FINDS_OF_USER finds, `planned` finds for a
    whole one. At level 2, which all users with a pair see, so much is kept for the number of finds
    that PART_OF_USERS stay below. Where intervals are narrower with more noise still, as fewer
    users are bounded, that decides.
    """
    sizes = MEAN_LIST_SIZES
    so_far = np.cumsum(users)
    many = sizes[np.searchsorted(so_far, PART_OF_USERS * so_far[-1])] if level.level == 2 else 0
    choices = planned * 2.0 ** (np.arange(41) / 4)
    part_added = np.sqrt(np.minimum(most_kept(level, purse) * choices[:, None] / sizes, 1))
    bounded = ((1 - part_added) * users).sum(1)
    narrowest = choices[
        np.argmin(SIGMAS_A_BOUNDED_USER * level.total_sigma * np.sqrt(choices) + bounded)
    ]
    most = (LARGEST_GRID_SIGMA / 2 / level.total_sigma) ** 2
    return max(now, int(min(max(planned * many / FINDS_OF_USER, narrowest), most)))


def mean_freed(users: Floats, before: Reserve, after: Reserve) -> float:
    """How much more than `before` users may spend on average, who keep `after`."""
    finds = MEAN_LIST_SIZES.astype(np.int64)
    freed = before.of_users(finds) - after.of_users(finds)
    return float((users * freed).sum() / max(users.sum(), 1.0))


def counted_in_full(counting: FoundCounts, in_full: int) -> FoundCounts:
    """How what is found is counted, with the noise that this takes."""
    more = (in_full / counting.within_purses) ** 0.5
    sigma = counting.relative_sigma * more
    return replace(counting, within_purses=in_full, relative_sigma=sigma)
