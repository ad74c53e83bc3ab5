"""The lift of valid grams in a public text: their count, relative to the count expected by chance.

For a pair (l, r) that overlap in o, its public counts let expect E = n_l n_r / n_o. If the text
has the pair c times, the lift is (c + 1) / (E + 1), and LEAST_LIFT at least. Logarithms are in
steps, as those of forecasts are (`classes.py`), so E is a function of e_l + e_r, and the lift of a
pair that the text lacks is a function of that sum alone. All of it is made from releases and the
prior. Classes tell lifts apart. Whether lifts are used is decided after round 1, so a text on other
things buries no gram.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow.compute as pc

from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS, Ladder
from dphh.prior import Prior
from dphh.udfs.arrays import Integers
from dphh.udfs.kernel.positions import KeyIndex

#: The width of one step of forecasts and of lifts, as a difference of natural logarithms.
LOG_STEP = 0.5
#: A smaller lift is set to this.
LEAST_LIFT = 0.04
#: The lifts that classes distinguish, in steps. A lift between two of them counts as the lower one.
LIFTS: Integers = np.array([-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 10, 12])


@dataclass(frozen=True, eq=False)
class LiftCounts:
    """A public text's counts, from which the lifts of the next level's valid grams follow."""

    #: Public counts of the grams of the top rung, and of those of the rung below it: for words, the
    #: number of all words.
    counts: Integers
    counts_before: Integers
    #: Valid pairs that the public text has, ascending, and how often.
    keys: Integers
    counts_of_keys: Integers


def lift_index(expected_steps: Integers, pair_counts: Integers) -> Integers:
    """The index in LIFTS of each pair's lift, from e_l + e_r and the pair's public count."""
    lift = (pair_counts + 1) / (np.exp(LOG_STEP * (expected_steps + 1)) + 1)
    steps = np.floor(np.log(np.maximum(lift, LEAST_LIFT)) / LOG_STEP).astype(np.int64)
    places: Integers = np.searchsorted(LIFTS, steps, side="right") - 1
    return places


def lift_counts(prior: Prior, ladder: Ladder) -> LiftCounts:
    """The prior's counts for the level above this ladder."""
    top = ladder.top.level
    keys, counts = _prior_grams_of_released_parts(prior, ladder, top + 1)
    before = np.array([prior.total]) if top == 1 else _public_counts(prior, ladder, top - 1)
    order = np.argsort(keys)
    return LiftCounts(_public_counts(prior, ladder, top), before, keys[order], counts[order])


def _public_counts(prior: Prior, ladder: Ladder, length: int) -> Integers:
    """The count in the public text of each released gram of this length."""
    keys, counts = _prior_grams_of_released_parts(prior, ladder, length)
    released = ladder.rungs[length - 1].keys
    found = np.zeros(len(released), dtype=np.int64)
    places = KeyIndex(released).indices(keys)
    found[places[places >= 0]] = counts[places >= 0]
    return found


def _prior_grams_of_released_parts(
    prior: Prior, ladder: Ladder, length: int
) -> tuple[Integers, Integers]:
    """The prior's grams of this length whose parts were released: their keys, and counts. The key
    of a word is its number."""
    if length > len(prior.grams):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    released = ladder.vocabulary
    numbers = pc.index_in(prior.vocabulary.cast(released.type), value_set=released).fill_null(-1)
    number_of_word = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    parts = [number_of_word[column] for column in prior.grams[length - 1].T]
    some = np.flatnonzero(np.all([part >= 0 for part in parts], axis=0))
    parts, counts = [part[some] for part in parts], prior.counts[length - 1][some]
    for rung in ladder.rungs[1 : length - 1]:
        released_keys = KeyIndex(rung.keys)
        parts = [
            released_keys.indices((left << GRAM_NUMBER_BITS) | right).astype(np.int64)
            for left, right in pairwise(parts)
        ]
        some = np.flatnonzero(np.all([part >= 0 for part in parts], axis=0))
        parts, counts = [part[some] for part in parts], counts[some]
    return (parts[0] if length == 1 else (parts[0] << GRAM_NUMBER_BITS) | parts[1]), counts
