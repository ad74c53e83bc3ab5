"""The price of the forecast ladder of `ngrams`. Twice DPNE's n-grams at DPNE's price.

Level 1: three rounds of DP-SIPS, the later ones with weights that depend on the earlier ones'
noised weights; or, if the first finds next to nothing, one round instead of the later ones.
Levels k >= 2: round 1 gives every user the weight 1/sqrt(n) on each of the n valid grams they hold;
its noised weights are public and say how round 2's norm is best spent, and where its thresholds
stand (`dphh.mechanisms.ngrams.forecast.climb`).

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. All rounds of all
levels are Gaussian mechanisms of L2 sensitivity 1, each chosen by earlier outputs alone, whose
1/sigma^2 never sum past 1/sigma*^2: together one Gaussian of sigma* (Smith & Thakurta 2022), at
3/4 of delta. Level 1's thresholds have the other quarter. Both directions; docs/ngrams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isqrt, log2

from dphh.errors import UsageError
from dphh.levels.level import Level
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel
from dphh.levels.set_union import ReweighedLevel, SetUnionLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.shares import (
    NEW_WORDS_DELTA_SHARE,
    ONE_ROUND_PART,
    ROUND_PARTS,
    UNLISTED_WORDS_DELTA_SHARES,
    WORDS_DELTA_SHARES,
    Shares,
)
from dphh.mechanisms.set_union.rounds import least_threshold, threshold_delta
from dphh.mechanisms.terms import FINDING_PROBABILITY, LevelsAndCost, checked_spare_delta
from dphh.price import Finds
from dphh.prior import Prior
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.forecast_rounds import forecast_draws_delta, norm_on_grid, round_1_weight
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.privacy.rounded_gaussian import RoundedGaussian, rounded_gaussian
from dphh.privacy.set_union import (
    LARGEST_GRID_SIGMA,
    arithmetic_delta,
    delta_for_weights,
    grid_bits,
    threshold_for_weights,
    users_needed,
)

FILTER_THEOREM = (
    "each chosen by earlier outputs, within one budget of 1/sigma^2 (Gaussian filter, Smith & "
    "Thakurta 2022; Dong, Roth & Su 2019; Balle & Wang 2018); integer thresholds from the rounded "
    "Gaussian's own tail; both directions"
)
THEOREM = (
    "forecast ladder (docs/ngrams.md): rounds of set union for words, whose weights "
    "follow earlier rounds (after DP-SIPS: Swanberg et al. 2023; docs/items.md), two Gaussian "
    f"rounds over the valid grams for every longer length, {FILTER_THEOREM}"
)
THEOREM_WITH_LIST = (
    "forecast ladder with a prior (docs/prior.md): two Gaussian rounds for every length, "
    "over the words of a list, where other words have thresholds, and over the valid grams, "
    f"{FILTER_THEOREM}"
)


def spurious_words_caveat(share: str) -> str:
    """The caveat on spurious words. Only listed words can be spurious: other words have
    thresholds, and one that no user holds has no row."""
    return (
        "of the released words of your list, the expected number that no user holds is at most 1, "
        f"or {share} times the number of listed words that round 1 predicts will be found, "
        "whichever is larger"
    )


#: The largest sigma, in grid units, whose table of noise has a moderate size.
_LARGEST_SIGMA_GRID = 2**15
#: With longer n-grams, a user's norm in the words' round 1 is at least 2^this grid units. Rounds of
#: longer n-grams have no less than LEAST_PART of an even share, so a user's norm there is 12 units
#: or more: enough to weigh something on a list of grams, and for the list's size
#: (`list_size_weight`).
_LEAST_BITS = 3


@dataclass(frozen=True)
class LadderBudget:
    """The budget of a run: the sigma to which all rounds compose, and delta."""

    sigma: float
    #: The sigma to which all rounds and the counts of what is found compose.
    total: float
    #: The part of delta for the noise, and for draws' distance from the exact noise.
    rounds: float
    #: The part of delta for level 1's thresholds.
    new_words: float
    #: The part of `rounds` for draws' distance from the exact noise.
    spare: float


def ladder_budget(
    epsilon: float,
    delta: float,
    max_n: int,
    max_items: int,
    counting: Counting,
    with_list: bool = False,
) -> LadderBudget:
    """The budget at (epsilon, delta). `with_list`: level 1 is drawn in two rounds, as longer
    n-grams are."""
    words = len(UNLISTED_WORDS_DELTA_SHARES) if with_list else len(ROUND_PARTS)
    spare = checked_spare_delta(
        words * arithmetic_delta(max_items, epsilon)
        + (max_n if with_list else max_n - 1) * forecast_draws_delta(epsilon)
        + counting.arithmetic_delta(epsilon),
        epsilon,
        delta,
    )
    rounds, new_words = (1 - NEW_WORDS_DELTA_SHARE) * delta, NEW_WORDS_DELTA_SHARE * delta
    total = gaussian_sigma(epsilon, rounds - spare)
    return LadderBudget(counting.sigma_of_finding(total), total, rounds, new_words, spare)


def price_forecast(
    epsilon: float,
    delta: float,
    max_n: int,
    max_items: int,
    spurious: float,
    counting: Counting,
    prior: Prior | None = None,
) -> LevelsAndCost:
    budget = ladder_budget(epsilon, delta, max_n, max_items, counting, prior is not None)
    words: tuple[SetUnionLevel | ListedWordsLevel, ...]
    if prior is None:
        words = rounds = words_levels(budget, max_n, max_items)
        new = [threshold_delta(level) for level in rounds]
        # For the last round, or for the one round that may replace rounds 2 and 3.
        new[-1] = WORDS_DELTA_SHARES[-1] * budget.new_words
    else:
        listed = listed_words_level(budget, max_n, max_items, len(prior), spurious)
        words, new = (listed,), [*delta_of_unlisted_words(listed)]
    levels: tuple[Level, ...] = (
        *words,
        *(
            ForecastLevel(level, budget.sigma, words[0].sigma_grid, spurious)
            for level in range(2, max_n + 1)
        ),
    )
    events: tuple[Event, ...] = (
        GaussianEvent(budget.sigma, "all rounds of all levels"),
        *(
            DeltaEvent(each, f"new words over the threshold, round {index}")
            for index, each in enumerate(new, start=1)
        ),
        *counting.events(budget.total),
        DeltaEvent(budget.spare, "draws' distance from the exact noise"),
    )
    shared_out = (
        ("Gaussian curve of all rounds together", budget.rounds - budget.spare),
        ("new words over the thresholds of level 1", budget.new_words),
        ("draws' distance from the exact noise", budget.spare),
    )
    return levels, events, shared_out


def words_levels(budget: LadderBudget, max_n: int, max_items: int) -> tuple[SetUnionLevel, ...]:
    """Level 1 without a list: DP-SIPS, its later weights by earlier noise, within an even share.

    Each round has half the noise of the one before it, on a grid twice as fine: one table of noise
    serves them all, and the longer n-grams too.
    """
    sigma, bits = _grid_of_round_1(budget, max_n, max_items)
    noise = rounded_gaussian(ceil(sigma * 2**bits))
    return tuple(
        _level_of_words_round(
            ReweighedLevel if index else SetUnionLevel,
            budget,
            noise,
            bits + index,
            part,
            max_items,
            index + 1,
        )
        for index, part in enumerate(WORDS_DELTA_SHARES)
    )


def listed_words_level(
    budget: LadderBudget, max_n: int, max_items: int, listed: int, spurious: float
) -> ListedWordsLevel:
    """Level 1 with a list: two rounds with an even share, on the grid of one without a list. A
    user's new words have equal weights, so a threshold for these holds."""
    sigma, bits = _grid_of_round_1(budget, max_n, max_items)
    noise = rounded_gaussian(ceil(sigma * 2**bits))
    shares = Shares(1.0, 1, max_n)
    first, second = (
        norm_on_grid(budget.sigma / share**0.5, noise.sigma)
        for share in (shares.first_round_share(), shares.even())
    )
    of_first, of_second = _new_words_weights(first, second, max_items)
    part_1, part_2 = UNLISTED_WORDS_DELTA_SHARES
    return ListedWordsLevel(
        level=1,
        listed=listed,
        max_items=max_items,
        total_sigma=budget.sigma,
        sigma_grid=noise.sigma,
        first_unit=first,
        second_unit=second,
        first_threshold_grid=threshold_for_weights(noise, of_first, part_1 * budget.new_words),
        second_threshold_grid=threshold_for_weights(noise, of_second, part_2 * budget.new_words),
        spurious=spurious,
    )


def delta_of_unlisted_words(level: ListedWordsLevel) -> tuple[float, float]:
    """The delta that the threshold of each of the two rounds costs."""
    first, second = _new_words_weights(level.first_unit, level.second_unit, level.max_items)
    noise = rounded_gaussian(level.sigma_grid)
    return (
        delta_for_weights(noise, first, level.first_threshold_grid),
        delta_for_weights(noise, second, level.second_threshold_grid),
    )


#: Pairs: how many new words a user has, and the most that the user adds to each.
WeightsByNewWords = list[tuple[int, int]]


def _new_words_weights(
    first_unit: int, second_unit: int, max_items: int
) -> tuple[WeightsByNewWords, WeightsByNewWords]:
    """For both rounds, what a user adds to each new word."""
    numbers = range(1, max_items + 1)
    return (
        [(t, round_1_weight(first_unit, t)) for t in numbers],
        [(t, isqrt(second_unit**2 // t)) for t in numbers],
    )


def _grid_of_round_1(budget: LadderBudget, max_n: int, max_items: int) -> tuple[float, int]:
    """Round 1's sigma, and the bits of its grid: as many as a table of moderate size allows, and at
    least so many that a user of `max_items` words, or of longer n-grams, weighs something."""
    (sigma,) = split_sigma(budget.sigma, [ROUND_PARTS[0] / max_n])
    grid_bits(sigma, max_items)  # refuses noise that needs too large a table
    needed = (max_items - 1).bit_length() + 1 >> 1
    if max_n > 1:
        needed = max(needed, _LEAST_BITS)
        if sigma * 2**_LEAST_BITS > LARGEST_GRID_SIGMA:
            raise UsageError(
                f"epsilon: with {max_n} lengths the noise of the first round is sigma = "
                f"{sigma:,.0f} users; above {LARGEST_GRID_SIGMA / 2**_LEAST_BITS:,.0f}, a user's "
                "weight is too small for the integer grid. Give a larger epsilon, or a smaller "
                "max_n"
            )
    return sigma, max(floor(log2(_LARGEST_SIGMA_GRID / sigma)), needed)


def words_in_one_round(budget: LadderBudget, max_n: int, max_items: int) -> SetUnionLevel:
    """The round that replaces the second and third one if the first round finds very few words."""
    (sigma,) = split_sigma(budget.sigma, [share_of_one_round(max_n) / max_n])
    bits = _grid_of_round_1(budget, max_n, max_items)[1] + len(ROUND_PARTS) - 1
    noise = rounded_gaussian(ceil(sigma * 2**bits))
    delta, number = WORDS_DELTA_SHARES[-1], len(ROUND_PARTS)
    return _level_of_words_round(SetUnionLevel, budget, noise, bits, delta, max_items, number)


def share_of_one_round(max_n: int) -> float:
    """The part of an even share for the one round that replaces rounds 2 and 3. With max_n = 1 it
    is all that round 1 left."""
    return min(ONE_ROUND_PART, max_n - ROUND_PARTS[0])


def may_stop_rounds(new: int, near: int, words: int) -> bool:
    """Whether level 1 stops after a later round: few words are new and near the threshold, so
    few are left to find.

    `new`, `near`: of the last round, how many words were released, and how many of these at less
    than twice the threshold.
    """
    return words > 5 * near and words >= 2 * new


def _level_of_words_round(
    kind: type[SetUnionLevel],
    budget: LadderBudget,
    noise: RoundedGaussian,
    bits: int,
    part: float,
    max_items: int,
    index: int,
) -> SetUnionLevel:
    threshold = least_threshold(kind, noise, bits, max_items, part * budget.new_words)
    return kind(1, max_items, bits, noise.sigma, threshold, index)


#: How many different words a person is assumed to hold. The number does not come from the data.
MANY_WORDS = 30


def users_needed_for_words(levels: Sequence[Level]) -> Finds:
    """How many users a word needs. What a longer n-gram needs depends on the releases below it."""

    if isinstance(levels[0], ListedWordsLevel):
        return _users_needed_for_unlisted_words(levels[0])

    def needed(level: SetUnionLevel, held: int = 1) -> int:
        noise = rounded_gaussian(level.sigma_grid)
        return users_needed(noise, level.grid_bits, level.threshold_grid, held, FINDING_PROBABILITY)

    first, *_, last = (level for level in levels if isinstance(level, SetUnionLevel))
    many = min(MANY_WORDS, last.max_items)
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=needed(last),
        users_by_length=((1, needed(last)),),
        # Of words that people hold, at most two thirds or so are found before the last round.
        users_of_many=(many, needed(last, max(1, many // 3)), needed(last, many)),
        note=(
            "a word, where each of these users holds that word alone; if nearly all words are "
            f"found early, those of fewer than {needed(first):,} users may be left out to save "
            "budget for longer n-grams; no number of users is promised for longer n-grams"
        ),
    )


def _users_needed_for_unlisted_words(level: ListedWordsLevel) -> Finds:
    """How many users an unlisted word needs, if each holds no other word and so gives it the whole
    norm of round 2."""
    worst_luck = rounded_gaussian(level.sigma_grid).largest_with_tail_at_least(FINDING_PROBABILITY)
    users = max(1, -((worst_luck - level.second_threshold_grid) // level.second_unit))
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=users,
        users_by_length=((1, users),),
        note=(
            "a word that the prior's list lacks, where each of these users holds that word alone; "
            "words of the list need fewer users, but no number is promised"
        ),
    )
