"""What all prices share: the unit and adjacency; the checks of common options; the part of delta
for draws whose distribution is not exactly the one that proofs assume; and how many users an item
needs to be found: a plan's own number, of users who hold nothing else, and that of
`plan.detection(profile)`, of users who hold as much as a profile assumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, isfinite, nextafter
from typing import Any, NamedTuple

import numpy as np

from dphh.errors import UsageError
from dphh.level import Noise
from dphh.prior import Prior, PriorOption
from dphh.privacy.accounting import compose
from dphh.privacy.events import Event
from dphh.privacy.search import least_whole
from dphh.udfs.rules.weights import weight
from dphh.wording.options import check_whole, is_number


class Priced(NamedTuple):
    """What a method plans for a budget."""

    #: Each a `Level` of the method's own kind.
    levels: tuple[Any, ...]
    #: They state what the levels cost.
    events: tuple[Event, ...]
    #: How delta is divided: for what, and how much.
    delta_shares: tuple[tuple[str, float], ...]


UNIT = "a user: all rows of one value of the user column"
ADJACENCY = "add or remove one user"
#: A plan says how many users an item needs in order to be found with this probability.
FINDING_PROBABILITY = Fraction(9, 10)
LARGEST_EPSILON = 100.0
#: Far above what the shortcut in `dphh.udfs.rules.votes` may add to a delta, and what floats hold.
LEAST_DELTA = 1e-100
#: What a price and a ledger say of the part of delta for the noise's arithmetic.
NOISE_TABLE_NOTE = "noise table's distance from the exact Gaussian"
BUDGET_HELP = {
    "epsilon": "The privacy budget: 1 is strict, 8 is weak.",
    "delta": "Probability on top of epsilon: well below 1 / users.",
}


def check_budget(epsilon: float, delta: float, epsilon_option: str = "epsilon") -> None:
    for name, value in ((epsilon_option, epsilon), ("delta", delta)):
        if not is_number(value) or not isfinite(value):
            raise UsageError(f"{name}: found {value!r}; give a number")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise UsageError(
            f"{epsilon_option}: found {epsilon:g}; give a number above 0, such as 1.0, "
            f"and at most {LARGEST_EPSILON:g}: a larger one protects no one"
        )
    if not LEAST_DELTA <= delta < 1:
        raise UsageError(
            f"delta: found {delta:g}; give a number between {LEAST_DELTA:g} and 1, "
            "well below one over the number of users, such as 1e-8"
        )


def check_max_items(max_items: int) -> None:
    advice = ", about as many different items as a typical user holds"
    check_whole("max_items", max_items, advice=advice)


def checked_prior(prior: PriorOption | None, text: str | None, is_public: bool) -> Prior | None:
    """The prior that a verb was given. Refuses one that is not a `Prior`, and options of a prior
    that is not given."""
    if prior is None and (text is not None or is_public):
        raise UsageError("prior_text, prior_is_public: found no prior; give prior= too")
    if not isinstance(prior, Prior | None):
        raise UsageError(
            f"prior: found a {type(prior).__name__}; a saved plan has only the digest of its "
            "prior, not the words, so make the plan again"
        )
    return prior


def checked_arithmetic_delta(arithmetic: float, epsilon: float, delta: float) -> float:
    """`arithmetic`, the part of delta for the noise's arithmetic; refused unless it is small."""
    if arithmetic >= delta / 4:
        if 8 * arithmetic >= 1:
            raise UsageError(
                f"epsilon: found {epsilon:g}, at which the noise's guarantee cannot be proved at "
                "any delta; give a smaller epsilon, such as 1"
            )
        raise UsageError(
            f"epsilon, delta: found ({epsilon:g}, {delta:g}); at this epsilon the guarantee is "
            f"proved down to delta {8 * arithmetic:.1e}: give a larger delta or a smaller epsilon"
        )
    return arithmetic


# Shares, noise and thresholds that are given by hand.

#: The most rounds of a set union, the largest number, and the least epsilon that a plan states.
MOST_ROUNDS, MOST_BY_HAND, LEAST_EPSILON_BY_HAND = 20, 1_000_000, 1e-6
#: What delta is for where noise and thresholds are given by hand.
DELTA_BY_HAND = "the noise and new items, as they were given by hand"


def checked_by_hand(
    lists: Mapping[str, Any], numbers: Mapping[str, Any], counts: range, advice: str
) -> dict[str, Any]:
    """What is given of these options, as numbers that are written in one way. `counts`, and
    `advice` in words: how many numbers a list may have."""
    by_hand: dict[str, Any] = {}
    for option, given in lists.items():
        if given is not None:
            is_list = isinstance(given, (list, tuple)) and len(given) in counts
            if not is_list or not all(map(_is_positive, given)):
                raise UsageError(f"{option}: found {given!r}; give {advice}")
            by_hand[option] = tuple(map(float, given))
    for option, given in numbers.items():
        if given is not None:
            if not _is_positive(given):
                raise UsageError(
                    f"{option}: found {given!r}; give a number of users above 0, at most "
                    f"{MOST_BY_HAND:,}"
                )
            by_hand[option] = float(given)
    return by_hand


def _is_positive(value: Any) -> bool:
    return is_number(value) and 0 < value <= MOST_BY_HAND


def stated_epsilon(
    by_hand: Mapping[str, Any], events: Sequence[Event], epsilon: float, delta: float
) -> float:
    """The epsilon that was asked for. With noise or a threshold by hand it is what they cost at
    delta; they are refused if that is more."""
    if by_hand.keys().isdisjoint(("sigma", "threshold")):
        return epsilon
    least = compose(events).epsilon(delta)
    if least > epsilon:
        dearer = f"give epsilon={ceil(least * 1e4) / 1e4:g}, or " if least < LARGEST_EPSILON else ""
        raise UsageError(
            f"sigma, threshold: at delta {delta:g} these cost more than epsilon {epsilon:g}; "
            f"{dearer}give more noise or a higher threshold"
        )
    return max(least, LEAST_EPSILON_BY_HAND)


# The part of delta for draws that are not exactly those of the proofs.

#: A bound on the distance, in total variation, between a draw from the noise's table and from the
#: exact noise.
LARGEST_TABLE_DISTANCE = Fraction(1, 2**232)


def delta_of_distance(distance: Fraction, epsilon: float) -> float:
    """The delta for draws whose distribution is within this distance, in total variation, of the
    exact one: (1 + e^epsilon) times the distance, as both neighbours' draws are replaced."""
    scale = 1 + Fraction(2.718281828459046) ** (int(epsilon) + 1)
    return nextafter(float(distance * scale), 1.0)


def arithmetic_delta(max_items: int, epsilon: float) -> float:
    """The delta for the table's distance from the exact Gaussian, in one level.

    Only the counts that differ between two neighbours, at most D0 of them, need the exact noise;
    the other draws have the same distribution.
    """
    return delta_of_distance(max_items * LARGEST_TABLE_DISTANCE, epsilon)


def spurious_draws_delta(epsilon: float) -> float:
    """The delta for the draws of a level's spurious grams, out of at most 2^62 valid ones.

    Separate noise for each gram would be 2^62 table draws; the distance of the binomial, which
    draws how many pass, is below 2^-212 (`draw_binomial`).
    """
    return delta_of_distance(2**62 * LARGEST_TABLE_DISTANCE + Fraction(1, 2**212), epsilon)


def forecast_draws_delta(epsilon: float) -> float:
    """The delta for the distance of a level's draws from the exact distributions, in all rounds.

    At most 2^62 valid grams with separate noise would be 2^64 table draws in three rounds. There
    are at most 2^22 cells, whose binomials and conditional draws are within 2^-150 each.
    """
    return delta_of_distance(2**64 * LARGEST_TABLE_DISTANCE + Fraction(2**25, 2**150), epsilon)


# How many users an item needs.

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
