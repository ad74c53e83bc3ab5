"""The two rounds of a level of the forecast ladder, over the sums that an engine makes.

An engine gives, for a rule, what all its users add to each key, without noise: (keys, sums). Noise
is drawn here, once for each sum, and only then is anything counted or compared. Everything in a
`TwoRounds` is private but what its three verbs return
(`dphh.mechanisms.ngrams.forecast.climb.Rounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.mechanisms.ngrams.forecast.climb import FirstRound, Passed
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.ngrams.ladder.rungs import Integers
from dphh.privacy.forecast_rounds import LIST_SIZES, Bins
from dphh.udfs.draws.absent import Classes, bins_of_class, lifted_of_class, negatives_of_row
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram

Rule = PlainWeights | WeightsByGram
#: What users add to each key, by a rule; round 1's list sizes at negative keys.
Sums = Callable[[Rule], tuple[Integers, Integers]]


class TwoRounds:
    def __init__(self, sums: Sums, randomness: Randomness, purpose: str) -> None:
        self._sums, self._randomness, self._purpose = sums, randomness, purpose

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound:
        self._valid, self._law = valid, law
        keys, sums = _ascending(*self._sums(PlainWeights(unit)))
        sizes = np.searchsorted(keys, 0)
        # A bin of list sizes in which nobody stands is 0, and gets its noise like any other.
        lists = np.zeros(len(LIST_SIZES), dtype=np.int64)
        lists[-1 - keys[:sizes]] = sums[:sizes]
        lists = self._noised(-1 - np.arange(len(lists)), lists, "list sizes")

        self._shape = len(valid.forecasts), len(law.starts)
        # Every valid gram that anybody holds, also where all that users gave it comes to 0.
        self._keys = keys[sizes:]
        self._first = self._noised(self._keys, sums[sizes:], "round 1")
        group = valid.of(self._keys)
        self._row = group * self._shape[1] + law.of(self._first)
        # Held and absent grams of a class come to its size, which is public. Who comes may turn an
        # absent gram into one that is held; it had its noise before, and has it still.
        supported = np.bincount(group, minlength=self._shape[0])
        self._absent = absent_bins(valid.sizes - supported, law, self._randomness, self._purpose)
        return FirstRound(self._by_row(self._row) + self._absent, lists)

    def second_round(self, weights: Integers, unit: int) -> Integers:
        self._held = Released(self._keys)
        rule = WeightsByGram(unit, self._held, weights.ravel()[self._row])
        keys, sums = _ascending(*self._sums(rule))
        # Users may have given a gram nothing; then it is not among the sums. Its sum is 0, and it
        # gets its noise like any other.
        second = np.zeros(len(self._keys), dtype=np.int64)
        second[self._held.positions(keys)] = sums
        self._second = self._noised(self._keys, second, "round 2")
        self._negatives = absent_negatives(self._absent, self._law, self._randomness, self._purpose)
        return self._by_row(self._row[self._second <= 0]) + self._negatives

    def passed(self, thresholds: Integers) -> Passed:
        kept = np.flatnonzero(self._second >= thresholds.ravel()[self._row])
        drawn = spurious_grams(
            self._valid,
            self._absent,
            self._negatives,
            thresholds,
            lambda keys: self._held.positions(keys) >= 0,
            self._law,
            self._randomness,
            self._purpose,
        )
        keys = np.concatenate([self._keys[kept], drawn.keys])
        order = np.argsort(keys)  # which grams are held must not show
        return Passed(
            keys[order],
            np.concatenate([self._row[kept] % self._shape[1], drawn.bins])[order],
            np.concatenate([self._first[kept], drawn.first])[order],
            np.concatenate([self._second[kept], drawn.second])[order],
        )

    def close(self) -> None:
        """Nothing is kept but in this object."""

    def _noised(self, keys: Integers, sums: Integers, what: str) -> Integers:
        named = pa.array(keys).cast(pa.string()) if self._randomness.is_test else None
        purpose = f"{self._purpose}/{what}"
        sigma = self._law.noise.sigma
        return sums + draw_rounded_gaussian(self._randomness, sigma, len(sums), purpose, named)

    def _by_row(self, rows: Integers) -> Integers:
        return np.bincount(rows, minlength=self._shape[0] * self._shape[1]).reshape(self._shape)


def _ascending(keys: Integers, sums: Integers) -> tuple[Integers, Integers]:
    order = np.argsort(keys)
    return keys[order], sums[order]


# Grams that nobody holds, over all classes at once: what the queries draw row by row


#: Tells for each key whether some user holds it.
Held = Callable[[Integers], Any]


@dataclass(frozen=True)
class Spurious:
    """Spurious grams: their keys, bins and noised weights of both rounds."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers


def absent_bins(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """The bins of `absent[c]` absent grams of each class c, as counts by (class, bin)."""
    of_classes = enumerate(absent.tolist())
    return np.array(
        [bins_of_class(*of_class, law, randomness, purpose) for of_class in of_classes],
        dtype=np.int64,
    )


def absent_negatives(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """How many of the absent grams of each (class, bin) are at 0 or below in round 2."""
    numbers = [
        negatives_of_row(group, column, int(absent[group, column]), law, randomness, purpose)
        for group, column in np.ndindex(*absent.shape)
    ]
    return np.array(numbers, dtype=np.int64).reshape(absent.shape)


def spurious_grams(
    valid: Classes,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams that pass `thresholds`, which are by (class, bin)."""
    nothing = np.empty(0, dtype=np.int64)
    parts = [(nothing, nothing, nothing, nothing)]
    for group, rows in enumerate(zip(absent, negatives, thresholds, strict=True)):
        lifted = lifted_of_class(valid, group, *rows, law, randomness, purpose)
        if len(lifted.bins):
            keys = lifted.proposed[~held(lifted.proposed)][: len(lifted.bins)]
            parts.append((keys, lifted.bins, lifted.first, lifted.second))
    return Spurious(*map(np.concatenate, zip(*parts, strict=True)))
