"""DPNE: what its levels cost, and how they run.

Differentially private n-gram extraction: Kim, Gopi, Kulkarni & Yekhanin 2021, Algorithm 1.
S_1 comes from DPSU (see `items`). Then, for k = 2..T: V_k, the valid k-grams, are those whose
pieces were released; every user i takes the distinct k-grams of their texts that are valid, U_i,
keeps at most Delta_k of them, and adds 1/sqrt(|U_i|) to H_k[u] for each; S_k = { u in V_k : H_k[u]
+ N(0, sigma_k^2) > rho_k }.

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. Theorem 2.1: level 1
is DPSU at sigma_1, with delta / 2 for new items over rho_1; each further level is a Gaussian
mechanism of L2 sensitivity 1, since V_k is made of released sets and every valid gram takes part,
held by a user or not (the spurious grams of `udfs.noise.absent`). Together they are one
Gaussian of 1/sigma*^2 = sum 1/sigma_k^2 (Dong, Roth & Su 2019), at delta / 2. Both directions.

rho_k for k >= 2 is no matter of privacy: P[noise >= rho_k] <= eta min{1, |S_{k-1}| / |V_k|} keeps
the expected spurious grams of a level below eta |S_{k-1}|. |V_k| is exact (`ladder/rungs.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import SCORED_SCHEMA
from dphh.engines.host import DrawOnce, Host, Lookup
from dphh.level import Level
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.ngrams.ladder.rungs import (
    ValidGrams,
    first_ladder,
    number_positions,
    positions_steps,
    texts_of_grams,
    update_positions,
)
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    GATHER,
    Draws,
    LevelDone,
    as_array,
    integer_columns,
    scored_rows,
    scored_words,
    steps_of,
    words_of_texts,
)
from dphh.mechanisms.set_union.draws import bounding_parameters, draw_words, words_steps
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.mechanisms.terms import (
    DELTA_BY_HAND,
    FINDING_PROBABILITY,
    NOISE_TABLE_NOTE,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
    spurious_draws_delta,
    users_needed,
)
from dphh.price import Finds, Price
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.gaussian import compose_sigmas, gaussian_sigma, split_sigma
from dphh.privacy.set_union import grid_bits, new_item_delta, new_item_threshold
from dphh.udfs.noise.table import rounded_gaussian

#: The number of released words, |S_1|, that a plan assumes where it says how many users a longer
#: gram needs.
ASSUMED_FOUND_WORDS = 10**6

THEOREM = (
    "DPNE Theorem 2.1 (Kim et al. 2021): DPSU for words, a Gaussian mechanism over the valid "
    "grams for every longer length, composed exactly (Dong, Roth & Su 2019; Balle & Wang "
    "2018); integer thresholds from the rounded Gaussian's own tail; both directions"
)


def price_dpne(
    epsilon: float,
    delta: float,
    max_n: int,
    max_items: int,
    spurious: float,
    counting: CountsOptions,
    shares: Sequence[float] | None = None,
    sigma: Sequence[float] | None = None,
    threshold: float | None = None,
) -> Priced:
    """By each length's `shares` of 1/sigma^2. Its `sigma` may be given, and the `threshold` of
    words: then the events may cost more than epsilon and delta (`stated_epsilon`)."""
    spare = checked_arithmetic_delta(
        sum([arithmetic_delta(max_items, epsilon)] * max_n)
        + (max_n - 1) * spurious_draws_delta(epsilon)
        + counting.arithmetic_delta(epsilon),
        epsilon,
        delta,
    )
    if sigma is None:
        shares = shares or [1] * max_n
        total = gaussian_sigma(epsilon, delta / 2 - spare)
        finding = counting.sigma_of_finding(total)
        sigmas = split_sigma(finding, [share / sum(shares) for share in shares])
    else:
        sigmas = tuple(sigma)
        total = counting.sigma_with_counts(compose_sigmas(sigmas))
    bits = grid_bits(max(sigmas), max_items)
    grid = [ceil(each * 2**bits) for each in sigmas]
    noise = rounded_gaussian(grid[0])
    if threshold is None:
        threshold_grid = new_item_threshold(noise, bits, max_items, delta / 2)
    else:
        threshold_grid = ceil(threshold * 2**bits)
    base = SetUnionLevel(1, max_items, bits, grid[0], threshold_grid)
    above = [
        PrunedLevel(
            level=k,
            max_items=max_items,
            grid_bits=bits,
            sigma_grid=grid[k - 1],
            spurious=spurious,
        )
        for k in range(2, max_n + 1)
    ]
    new = new_item_delta(noise, bits, max_items, threshold_grid)
    events: tuple[Event, ...] = (
        GaussianEvent(base.sigma, note="weighted Gaussian, level 1"),
        DeltaEvent(new, note="new words over the threshold, level 1"),
        *(GaussianEvent(x.sigma, note=f"weighted Gaussian, level {x.level}") for x in above),
        *counting.counts_events(total),
        DeltaEvent(spare, note=NOISE_TABLE_NOTE),
    )
    if sigma is not None or threshold is not None:
        return Priced((base, *above), events, ((DELTA_BY_HAND, delta),))
    shared_out = (
        ("Gaussian curve of all levels together", delta / 2 - spare),
        ("new words over the threshold of level 1", delta / 2),
        (NOISE_TABLE_NOTE, spare),
    )
    return Priced((base, *above), events, shared_out)


def spurious_threshold(level: PrunedLevel, grams_below: int, valid_grams: int) -> int:
    """rho_k: the least integer with P[noise >= rho_k] <= eta min{1, |S_{k-1}| / |V_k|}.

    eta is `level.spurious`, |S_{k-1}| is how many grams the level below released, and |V_k| how
    many grams are valid. With no valid gram none can be spurious, and the probability is eta.
    """
    ratio = min(Fraction(1), Fraction(grams_below, valid_grams)) if valid_grams else 1
    noise = rounded_gaussian(level.sigma_grid)
    return noise.smallest_with_tail_at_most(Fraction(level.spurious) * ratio)


def with_assumed_threshold(level: PrunedLevel) -> PrunedLevel:
    """The level with a threshold that its run does not exceed if |S_1| <= ASSUMED_FOUND_WORDS."""
    return replace(level, threshold_grid=spurious_threshold(level, 1, ASSUMED_FOUND_WORDS))


def users_needed_for_grams(levels: Sequence[Level]) -> Finds:
    """How many users who hold nothing but one n-gram make it found, by its length."""
    ways = [
        [[with_assumed_threshold(level) if isinstance(level, PrunedLevel) else level]]
        for level in levels
        if isinstance(level, (SetUnionLevel, PrunedLevel))
    ]
    # No number is promised for lengths at which a user may not count for all pieces of a gram.
    counted = range(
        1, 1 + min(len(ways), *(j + level.max_items for j, [[level]] in enumerate(ways)))
    )
    by_length = tuple(
        (length, users_needed(ways[:length], range(length, 0, -1))) for length in counted
    )
    note = "where each of these users holds only that n-gram"
    if len(ways) > 1:
        note += f", and at most {ASSUMED_FOUND_WORDS:,} words are released"
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=by_length[0][1],
        users_by_length=by_length,
        note=note,
    )


def dpne_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    host.gather("users", words_of_texts(price, marks_ends=True))
    # users (block, user_hashes, lengths, ids, words)
    passed = once("ngrams/level 1", lambda: draw_words(host, base, "ngrams/level 1"))
    keys = as_array(passed.column("key"), pa.string())
    order = pc.sort_indices(keys)
    vocabulary = keys.take(order)
    noisy = as_array(passed.column("noisy"), pa.int64()).take(order)
    yield LevelDone(base, scored_words(vocabulary, noisy, base.grid_bits))

    ladder = first_ladder(vocabulary)
    for planned in above:
        assert isinstance(planned, PrunedLevel)
        valid = ladder.valid_grams()
        threshold = spurious_threshold(planned, len(ladder.top), len(valid))
        level = replace(planned, valid=len(valid), threshold_grid=threshold)
        if len(valid) == 0:  # no gram below was released, so none is valid: no text is read
            yield LevelDone(level, SCORED_SCHEMA.empty_table())
            continue
        number_positions(host, ladder)
        update_positions(host, ladder, keeps_users=price.counting is not None)
        # positions (block, user_hashes, lengths, keys): the valid gram at each position
        purpose = f"ngrams/level {level.level}"
        passed = once(purpose, partial(draw_dpne_level, host, level, valid, purpose))
        keys, noisy = integer_columns(passed, "key", "noisy")
        order = np.argsort(keys)
        ladder = ladder.with_next(keys[order])
        items, tokens = texts_of_grams(ladder.top, vocabulary, host.joiner)
        yield LevelDone(
            level, scored_rows(level.level, items, tokens, noisy[order], level.grid_bits)
        )


def draw_dpne_level(host: Host, level: PrunedLevel, valid: ValidGrams, purpose: str) -> Any:
    """Draw a level above words: an Arrow table (key, noisy) of the valid grams that reach the
    threshold, including those that no user holds."""
    host.run("grams_level", **bounding_parameters(host, level, purpose))
    # noised (key, noisy), of the valid grams that a user keeps
    reached = {"threshold": level.threshold_grid, "purpose": purpose}
    host.run("spurious", valid=Lookup(valid), sigma=level.sigma_grid, **reached)
    # spurious (position, key, noisy), of valid grams that no user keeps
    passed = host.take("released_grams", threshold=level.threshold_grid)
    # (key, noisy), those that reach the threshold, whether or not a user keeps them
    host.drop("noised", "spurious")
    return passed


def dpne_draws(price: Price) -> Draws:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    yield BEFORE_LEVELS, GATHER
    yield "ngrams/level 1", words_steps(base, "ngrams/level 1")
    for level in above:
        purpose = f"ngrams/level {level.level}"
        steps = *positions_steps(level), "grams_level", "spurious", "released_grams"
        yield purpose, steps_of(level, purpose, *steps)
