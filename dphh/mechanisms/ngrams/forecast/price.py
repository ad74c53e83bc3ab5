"""The price of the forecast ladder of `ngrams`. Twice DPNE's n-grams at DPNE's price.

Level 1: three rounds after DP-SIPS, the later ones with weights that depend on the earlier ones'
noised weights; or, if the first finds next to nothing, one round instead of the later ones.
Levels k >= 2: in round 1 each user spreads a little evenly over the valid grams they hold; what it
shows says how round 2 and, after all levels, a late round are best weighed, and where their
thresholds stand (`two_rounds.py`, `late_rounds.py`). Each user pays from a purse of their own.

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. All rounds of all
levels are Gaussian releases, each chosen by earlier outputs alone. What a user adds follows from
the user's rows and earlier outputs, and the squares, over the noise's, never sum past 1/sigma*^2:
together one Gaussian of sigma* (individual Gaussian filter: Feldman & Zrnic 2021; Koskela, Tobaben
& Honkela 2022), at 3/4 of delta. Level 1's rounds charge all users alike; its thresholds have the
other quarter. Both directions; docs/ngrams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isqrt, log2

from dphh.errors import UsageError
from dphh.level import Level
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.ngrams.forecast.purses import (
    FIRST_OF_TWO_ROUNDS_PART,
    THRESHOLDS_DELTA_SHARE,
    UNLISTED_WORDS_DELTA_SHARES,
    WORD_ROUND_DELTA_SHARES,
    WORD_ROUND_PARTS,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel, ListedWordsLevel
from dphh.mechanisms.set_union.levels import (
    ReweighedLevel,
    SetUnionLevel,
    round_level,
    threshold_delta,
)
from dphh.mechanisms.terms import (
    FINDING_PROBABILITY,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
    forecast_draws_delta,
    users_needed,
)
from dphh.price import Finds
from dphh.prior import Prior
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.privacy.set_union import (
    LARGEST_GRID_SIGMA,
    delta_for_weights,
    grid_bits,
    threshold_for_weights,
)
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.forecast import norm_on_grid, round_1_weight

FILTER_THEOREM = (
    "each chosen by earlier outputs, to which no user adds more than one budget of 1/sigma^2 "
    "(individual Gaussian filter, Feldman & Zrnic 2021; Koskela, Tobaben & Honkela 2022; Balle & "
    "Wang 2018); integer thresholds from the rounded Gaussian's own tail; both directions"
)
THEOREM_WITHOUT_PRIOR = (
    "forecast ladder (docs/ngrams.md): rounds of set union for words, whose weights "
    "follow earlier rounds (after DP-SIPS: Swanberg et al. 2023; docs/items.md), three Gaussian "
    f"rounds over the valid grams for every longer length, {FILTER_THEOREM}"
)
THEOREM_WITH_PRIOR = (
    "forecast ladder with a prior (docs/prior.md): two Gaussian rounds over the words of a list, "
    "where other words have thresholds, and three over the valid grams for every longer length, "
    f"{FILTER_THEOREM}"
)


def spurious_words_caveat(printed_share: str) -> str:
    """The caveat on spurious words with a prior. Only words of its list can be spurious: others
    have thresholds, and one that no user holds has no row."""
    return (
        "of the released words of your list, the expected number that no user holds is at most 1, "
        f"or {printed_share} times the number of listed words that round 1 predicts will be found, "
        "whichever is larger"
    )


#: The largest sigma, in grid units, whose table of noise has a moderate size.
_LARGEST_SIGMA_GRID = 2**15
#: If longer n-grams follow, a user's norm in round 1 of the words is at least 2^this grid units. An
#: even share of mu^2 is 21 times its square, and round 1 of longer n-grams takes a quarter of that:
#: a norm of 18 units or more, enough for a weight above 0 on a gram and on a count.
_LEAST_GRID_BITS_OF_WORD_ROUND_1 = 3


def price_forecast(
    epsilon: float,
    delta: float,
    max_n: int,
    max_items: int,
    spurious: float,
    counting: CountsOptions,
    prior: Prior | None = None,
) -> Priced:
    # With a prior, level 1 has two rounds. Other levels have three.
    delta_shares = WORD_ROUND_DELTA_SHARES if prior is None else UNLISTED_WORDS_DELTA_SHARES
    draws_delta = checked_arithmetic_delta(
        len(delta_shares) * arithmetic_delta(max_items, epsilon)
        + (max_n - 1 if prior is None else max_n) * forecast_draws_delta(epsilon)
        + counting.arithmetic_delta(epsilon),
        epsilon,
        delta,
    )
    gaussian_delta = (1 - THRESHOLDS_DELTA_SHARE) * delta - draws_delta
    sigma_with_counts = gaussian_sigma(epsilon, gaussian_delta)
    # Above words users have purses, and what finding leaves of them pays for counts.
    within_purses = max_n > 1
    sigma = sigma_with_counts if within_purses else counting.sigma_of_finding(sigma_with_counts)
    threshold_deltas = [share * (THRESHOLDS_DELTA_SHARE * delta) for share in delta_shares]
    words: tuple[SetUnionLevel | ListedWordsLevel, ...]
    if prior is None:
        words = rounds = words_levels(sigma, threshold_deltas, max_n, max_items)
        deltas = [threshold_delta(level) for level in rounds]
        # This also pays for the one round that may replace rounds 2 and 3.
        deltas[-1] = threshold_deltas[-1]
    else:
        listed, deltas = listed_words_level(
            sigma, threshold_deltas, max_n, max_items, len(prior), spurious
        )
        words = (listed,)
    levels: tuple[Level, ...] = (
        *words,
        *(
            ForecastLevel(level, sigma, words[0].sigma_grid, spurious)
            for level in range(2, max_n + 1)
        ),
    )
    events: tuple[Event, ...] = (
        GaussianEvent(sigma, note="all rounds of all levels"),
        *(
            DeltaEvent(of_round, note=f"new words over the threshold, round {number}")
            for number, of_round in enumerate(deltas, start=1)
        ),
        *(() if within_purses else counting.counts_events(sigma_with_counts)),
        DeltaEvent(draws_delta, note="draws' distance from the exact noise"),
    )
    shared_out = (
        ("Gaussian curve of all rounds together", gaussian_delta),
        ("new words over the thresholds of level 1", THRESHOLDS_DELTA_SHARE * delta),
        ("draws' distance from the exact noise", draws_delta),
    )
    return Priced(levels, events, shared_out)


def words_levels(
    total_sigma: float, threshold_deltas: Sequence[float], max_n: int, max_items: int
) -> tuple[SetUnionLevel, ...]:
    """The rounds of level 1 without a prior, after DP-SIPS: later weights depend on earlier noised
    weights. They have an even share of the budget. `total_sigma`: that of all rounds together.
    `threshold_deltas`: the most that the threshold of each round may cost.

    Each round has half the noise of the one before it, on a grid twice as fine: one table of noise
    serves them all, and the longer n-grams too.
    """
    sigma, bits = _sigma_in_users_and_grid_bits_of_word_round_1(total_sigma, max_n, max_items)
    return tuple(
        round_level(
            ReweighedLevel if index else SetUnionLevel,
            bits + index,
            sigma / 2**index,
            max_items,
            delta,
            index + 1,
        )
        for index, delta in enumerate(threshold_deltas)
    )


def listed_words_level(
    total_sigma: float,
    threshold_deltas: Sequence[float],
    max_n: int,
    max_items: int,
    listed: int,
    spurious: float,
) -> tuple[ListedWordsLevel, list[float]]:
    """Level 1 with a prior, and the delta that each of its two thresholds costs. Both rounds
    together have an even share, on the grid of level 1 without a prior. The thresholds hold
    for unlisted words, because all new words of a user have equal weights."""
    sigma, bits = _sigma_in_users_and_grid_bits_of_word_round_1(total_sigma, max_n, max_items)
    noise = rounded_gaussian(ceil(sigma * 2**bits))
    first, second = (
        norm_on_grid(total_sigma / (part / max_n) ** 0.5, noise.sigma)
        for part in (FIRST_OF_TWO_ROUNDS_PART, 1 - FIRST_OF_TWO_ROUNDS_PART)
    )
    # Pairs: how many new words a user has, and the most that the user adds to each.
    numbers = range(1, max_items + 1)
    of_first = [(t, round_1_weight(first**2, t)) for t in numbers]
    of_second = [(t, isqrt(second**2 // t)) for t in numbers]
    delta_1, delta_2 = threshold_deltas
    level = ListedWordsLevel(
        level=1,
        listed=listed,
        max_items=max_items,
        total_sigma=total_sigma,
        sigma_grid=noise.sigma,
        first_unit=first,
        second_unit=second,
        first_threshold_grid=threshold_for_weights(noise, of_first, delta_1),
        second_threshold_grid=threshold_for_weights(noise, of_second, delta_2),
        spurious=spurious,
    )
    return level, [
        delta_for_weights(noise, of_first, level.first_threshold_grid),
        delta_for_weights(noise, of_second, level.second_threshold_grid),
    ]


def _sigma_in_users_and_grid_bits_of_word_round_1(
    total_sigma: float, max_n: int, max_items: int
) -> tuple[float, int]:
    """The sigma of round 1 of the words, in users, and the bits of its grid: as many as a table of
    moderate size allows, but enough for a weight above 0 on each of `max_items` words, and on
    longer n-grams."""
    (sigma,) = split_sigma(total_sigma, [WORD_ROUND_PARTS[0] / max_n])
    grid_bits(sigma, max_items)  # refuses noise that needs too large a table
    needed = (max_items - 1).bit_length() + 1 >> 1
    if max_n > 1:
        needed = max(needed, _LEAST_GRID_BITS_OF_WORD_ROUND_1)
        most = LARGEST_GRID_SIGMA / 2**_LEAST_GRID_BITS_OF_WORD_ROUND_1
        if sigma > most:
            raise UsageError(
                f"epsilon: with {max_n} lengths the noise of the first round is sigma = "
                f"{sigma:,.0f} users; above {most:,.0f}, a user's weight is too small for the "
                "integer grid. Give a larger epsilon, or a smaller max_n"
            )
    return sigma, max(floor(log2(_LARGEST_SIGMA_GRID / sigma)), needed)


#: How many different words a user is assumed to hold. The number does not come from the data.
ASSUMED_WORDS_OF_USER = 30


def users_needed_for_words(levels: Sequence[Level]) -> Finds:
    """How many users a word needs. What a longer n-gram needs depends on the releases below it."""
    if isinstance(levels[0], ListedWordsLevel):
        return _users_needed_for_unlisted_words(levels[0])

    def needed_in_round(level: SetUnionLevel, words_held: int = 1) -> int:
        return users_needed([[[level]]], [words_held])

    first, *_, last = (level for level in levels if isinstance(level, SetUnionLevel))
    many = min(ASSUMED_WORDS_OF_USER, last.max_items)
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=needed_in_round(last),
        users_by_length=((1, needed_in_round(last)),),
        # The last round has at least about a third of a user's words left to weigh.
        users_of_many=(
            many,
            needed_in_round(last, max(1, many // 3)),
            needed_in_round(last, many),
        ),
        note=(
            "a word, where each of these users holds only that word; if nearly all words are "
            f"found early, those of fewer than {needed_in_round(first):,} users may be left out to "
            "save budget for longer n-grams; no number of users is promised for longer n-grams"
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
            "a word that the prior's list lacks, where each of these users holds only that word; "
            "words of the list need fewer users, but no number is promised"
        ),
    )
