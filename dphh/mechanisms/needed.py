"""How many users an item needs to be found: a plan's own number, of users who hold nothing else,
and `plan.detection(profile)`, of users who hold as much as a profile assumes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from dphh.level import Noise
from dphh.mechanisms.terms import FINDING_PROBABILITY
from dphh.privacy.search import least_whole
from dphh.udfs.rules.weights import weight

#: The ways that a run may find the items of one length: each is some rounds, any of which may. A
#: round is a level at which users weigh items, with its threshold.
Ways = Sequence[Sequence[Any]]
#: More users than there are people.
NO_NUMBER = 1 << 40


def users_needed(ways_by_length: Sequence[Ways], held_by_length: Sequence[int]) -> int:
    """How many users an item of the last length needs, if each of them holds so many items of each
    length; NO_NUMBER if no number is enough.

    An item of k tokens is found if all its pieces are: k - j + 1 of length j, each missed with its
    own probability, so their sum bounds the failure. A run misses a piece if all of its rounds do,
    so the round that is least likely to miss it gives a bound; and the run may go the worst way.
    """
    longest = len(ways_by_length)

    def is_found_by(users: int) -> bool:
        by_length = zip(range(longest), ways_by_length, held_by_length, strict=True)
        missed = sum(
            (longest - shorter)
            * max(min(_missed_by(level, users, held) for level in rounds) for rounds in ways)
            for shorter, ways, held in by_length
        )
        return missed <= 1 - FINDING_PROBABILITY

    return least_whole(is_found_by, 0) if is_found_by(NO_NUMBER) else NO_NUMBER


def _missed_by(level: Any, users: int, held: int) -> Fraction:
    """The probability that an item which `users` users hold stays below the threshold. For a user
    who holds more than `max_items`, a random choice of that many counts."""
    own = weight(level.grid_bits, min(held, level.max_items))
    if held <= level.max_items:
        noise: Noise = level.noise
        return 1 - noise.tail_lower_bound(level.threshold_grid - users * own)
    from scipy.stats import binom  # slow to import

    share = level.max_items / held
    low, high = binom.ppf([1e-9, 1 - 1e-9], users, share)
    step = max(1, ceil((high - low) / 2000))
    counted = np.arange(int(low), int(high) + step, step)
    # A number in `counted` stands for all numbers up to the next one, which are not smaller: so the
    # probability of finding the item is underestimated (except for the 1e-9 below the first one).
    mass = np.diff(np.concatenate([[0.0], binom.cdf(counted[1:] - 1, users, share), [1.0]]))
    return Fraction(float(mass @ level.chances_to_miss(counted * own)))
