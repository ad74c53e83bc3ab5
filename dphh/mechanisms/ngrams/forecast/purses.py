"""How the levels share mu^2, and how users divide their purses. Both follow from public numbers,
which decide what is found; the promise holds for any such numbers. Public about purses are only
noised numbers of users, by how far they can climb and by the part of a purse that they have left.
Purses, their mean, and how many are empty are private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from dphh.counting import FoundCounts
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

#: The share of the run's delta for level 1's thresholds; the Gaussian rounds have the rest. A half
#: would be best for words alone. But the Gaussian rounds' delta lowers the noise of all lengths,
#: and only level 1 has thresholds.
THRESHOLDS_DELTA_SHARE = 0.25
#: Without a prior, level 1 has three rounds. For each: its part of an even share of mu^2, and its
#: share of the thresholds' delta. Each has half the noise of the one before it.
WORD_ROUND_PARTS = (1 / 21, 4 / 21, 16 / 21)
WORD_ROUND_DELTA_SHARES = (0.02, 0.03, 0.95)
#: If round 1 of these finds very few words, one round replaces rounds 2 and 3. It gets this part of
#: an even share of mu^2, a little more than DPNE gets for half the delta.
ONE_ROUND_PART = 1.05
#: With a prior, level 1 has two rounds, each with a threshold for unlisted words. For each round:
#: its share of the thresholds' delta.
UNLISTED_WORDS_DELTA_SHARES = (0.05, 0.95)
#: Round 1 of a level gets this part of an even share of mu^2.
FIRST_OF_TWO_ROUNDS_PART = 0.25
#: The part of a level's allowed spurious grams that its first two rounds may release.
SPURIOUS_PART_OF_TWO_ROUNDS = 0.8
#: How the finds per gram of the level below are expected to change: on the level of the key they
#: are this factor times those on the level below it. The last factor is for all levels above 4.
FIND_RATE_FACTORS = {3: 0.25, 4: 0.35}
FIND_RATE_FACTOR_ABOVE_4 = 0.65
#: A gain is how often finds double where what users spend doubles: from LEAST_GAIN to 1.
LEAST_GAIN = 0.05
#: A gram of a later level is worth (gain / GAIN_OF_EQUAL_WORTH)^2 grams that this level's round 2
#: would find with twice as much, from LEAST_WORTH_OF_LATER_GRAM to 1: where twice as much finds
#: little more, nothing much is gained by keeping it either.
GAIN_OF_EQUAL_WORTH = 0.35
LEAST_WORTH_OF_LATER_GRAM = 0.1
#: A later level is worth this part of the level at hand, at least.
LEAST_WORTH_OF_LATER_LEVEL = 0.02
#: A level gets at least this part of what it would have if the purse were divided evenly over the
#: levels that the user can climb.
LEAST_OF_EVEN = 0.6
#: Where more finds more, a user keeps a part of a level's share for its late round, the more the
#: larger the share: of a share p round 2 gets 1 - KEPT_PER_GAIN gain p, LEAST_PART_OF_ROUND_2 at
#: least.
KEPT_PER_GAIN = 1.4
LEAST_PART_OF_ROUND_2 = 0.5
#: What a user spends on being counted before the late rounds, as a part of a whole mu^2.
LATE_PURSES_PART = 0.002

#: What part of a whole mu^2 is kept for counts at most.
MOST_KEPT = 0.7
#: How many sigmas of a count's noise weigh as much as a user whom bounding removes from all finds.
#: Of more, users keep for fewer finds: each takes more of a purse, and fewer are found.
SIGMAS_A_BOUNDED_USER = 6
#: As many finds as this part of users hold at most, and no more, are counted by the share `counts`.
PART_OF_USERS = 0.9


def one_round_part(max_n: int) -> float:
    """The part of an even share for the one round that replaces rounds 2 and 3 of level 1. With
    max_n = 1 it is all that round 1 left."""
    return min(ONE_ROUND_PART, max_n - WORD_ROUND_PARTS[0])


def gain_of(finds: float, finds_at_twice: float) -> float:
    return min(max(log2(max(finds_at_twice, 1.0) / max(finds, 1.0)), LEAST_GAIN), 1.0)


def parts_of_round_2(
    level: int, levels: int, finds: float, finds_at_twice: float, below: int
) -> list[float]:
    """The part of a purse that round 2 takes, by how many levels further up the user can climb.

    `finds` are expected if users spend what is left in equal parts on this level and all later
    ones, `finds_at_twice` if they spend twice that. `below`: the grams of the level below.
    """
    gain = gain_of(finds, finds_at_twice)
    later_gram = min(max((gain / GAIN_OF_EQUAL_WORTH) ** 2, LEAST_WORTH_OF_LATER_GRAM), 1.0)
    here = max(finds * gain, 1e-9)
    rate, later, worths = finds / max(below, 1), finds, [here]
    for longer in range(level + 1, levels + 1):
        rate *= FIND_RATE_FACTORS.get(longer, FIND_RATE_FACTOR_ABOVE_4)
        later *= rate
        worths.append(max(later_gram * later, LEAST_WORTH_OF_LATER_LEVEL * here))
    by_worth = enumerate(parts_by_climb(worths))
    parts = [max(part, LEAST_OF_EVEN / (climb + 1)) for climb, part in by_worth]
    return [part * max(1 - KEPT_PER_GAIN * gain * part, LEAST_PART_OF_ROUND_2) for part in parts]


def parts_by_climb(worths: Sequence[float]) -> list[float]:
    """The part that the first of several levels gets, by how many of the further ones a user can
    climb to. `worths`: of the level and of those above it, in order."""
    return [worths[0] / sum(worths[: climb + 1]) for climb in range(len(worths))]


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
