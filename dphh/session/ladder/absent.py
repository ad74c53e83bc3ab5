"""Draws the spurious grams of a forecast level: valid grams that no user holds but noise lifts.

In both rounds every valid gram gets noise, held or not, and there are too many valid grams to list.
A gram that no user holds is called absent. Its weight is 0, so its two noised weights are two
independent draws of the noise. The rounds use only its bin in round 1, its sign in round 2 and, if
it passes, its key and both noised weights. So, for each class:

    bins: Multinomial(absent grams of the class, P[noise in bin]);
    negatives of a row: Binomial(number in the bin, P[noise <= 0]);
    passing, for a threshold t > 0: Binomial(number - negatives, P[noise >= t] / P[noise > 0]);
    which: keys drawn uniformly from the class, without replacement, among those no user holds;
    noised weights: the noise given its bin, and the noise given that it reaches t.

This is the same joint distribution as adding noise to every absent gram. Thresholds are above 0
(`signs.py` of the mechanism), so a gram with a negative weight never passes.

The numbers of absent grams are private: they depend on how many valid grams some user holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dphh.privacy.forecast_rounds import Bins
from dphh.privacy.rounded_gaussian import ONE
from dphh.session.ladder.classes import ValidClasses
from dphh.session.ladder.rungs import Integers
from dphh.udfs.draws.binomials import draw_binomial_of_any_size, draw_multinomial
from dphh.udfs.draws.noise import draw_above, draw_between
from dphh.udfs.draws.randomness import Randomness, uniform_below

#: Tells for each key whether some user holds it. The answer is private and stays in the engine.
Held = Callable[[Integers], "np.ndarray[tuple[int], np.dtype[np.bool_]]"]


@dataclass(frozen=True)
class Spurious:
    """Spurious grams: their keys, bins and noised weights of both rounds."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers

    @classmethod
    def none(cls) -> Spurious:
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(4)))

    @classmethod
    def joined(cls, parts: list[Spurious]) -> Spurious:
        parts = [cls.none(), *parts]
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("keys", "bins", "first", "second")
            )
        )


def absent_bins(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """The bins of `absent[c]` absent grams of each class c, as counts by (class, bin)."""
    of_classes = enumerate(absent.tolist())
    return np.array(
        [bins_of_class(*of_class, law, randomness, purpose) for of_class in of_classes],
        dtype=np.int64,
    )


def bins_of_class(
    group: int, absent: int, law: Bins, randomness: Randomness, purpose: str
) -> list[int]:
    """How many of a class's absent grams fall into each bin of round 1's noise."""
    return draw_multinomial(randomness, absent, law.shares, f"{purpose}/absent {group}")


def absent_negatives(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """How many of the absent grams of each (class, bin) are at 0 or below in round 2."""
    rows, columns = absent.shape
    return np.array(
        [
            [
                negatives_of_row(
                    group, column, int(absent[group, column]), law, randomness, purpose
                )
                for column in range(columns)
            ]
            for group in range(rows)
        ],
        dtype=np.int64,
    ).reshape(absent.shape)


def negatives_of_row(
    group: int, column: int, absent: int, law: Bins, randomness: Randomness, purpose: str
) -> int:
    if not absent:
        return 0
    at_most_zero = 1 - Fraction(law.noise.survival(1), ONE)
    row = group * len(law.starts) + column
    return draw_binomial_of_any_size(
        randomness, absent, at_most_zero, f"{purpose}/absent signs {row}"
    )


def spurious_grams(
    valid: ValidClasses,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams that pass `thresholds`, which are by (class, bin)."""
    return Spurious.joined(
        [
            spurious_of_class(valid, group, *rows, held, law, randomness, purpose)
            for group, rows in enumerate(zip(absent, negatives, thresholds, strict=True))
        ]
    )


def spurious_of_class(
    valid: ValidClasses,
    group: int,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams of one class that pass, from its numbers and thresholds by bin."""
    lifted = lifted_of_class(valid, group, absent, negatives, thresholds, law, randomness, purpose)
    if not len(lifted.bins):
        return Spurious.none()
    keys = lifted.proposed[~held(lifted.proposed)][: len(lifted.bins)]
    return Spurious(keys, lifted.bins, lifted.first, lifted.second)


@dataclass(frozen=True)
class Lifted:
    """The bins and weights of a class's passing absent grams, before the held grams are known.

    The first absent key of `proposed` gets the first bin and weights, and so on. Any assignment
    has the right distribution, since `proposed` is in random order.
    """

    proposed: Integers
    bins: Integers
    first: Integers
    second: Integers

    def by_position(self) -> pa.StructArray:
        """(position, key, bin, first, second) in the order drawn; spare keys have NULLs."""
        more = pa.nulls(len(self.proposed) - len(self.bins), pa.int64())
        values = {"position": np.arange(len(self.proposed)), "key": self.proposed} | {
            name: pa.concat_arrays([pa.array(some, pa.int64()), more])
            for name, some in (("bin", self.bins), ("first", self.first), ("second", self.second))
        }
        return pa.StructArray.from_arrays(
            [pa.array(v, pa.int64()) for v in values.values()], [*values]
        )


def lifted_of_class(
    valid: ValidClasses,
    group: int,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Lifted:
    """How many absent grams of a class pass, their noised weights, and candidate keys for them."""
    noise = law.noise
    positive = noise.survival(1)
    # Beyond the noise table's reach, and where no gram is absent, none passes: nothing is drawn.
    passing = np.zeros(len(absent), dtype=np.int64)
    for column in np.flatnonzero((absent > 0) & (thresholds <= noise.reach)).tolist():
        threshold = int(thresholds[column])
        assert threshold > 0
        passing[column] = draw_binomial_of_any_size(
            randomness,
            int(absent[column] - negatives[column]),
            Fraction(noise.survival(threshold), positive),
            f"{purpose}/spurious {group} {column}",
        )
    nothing = np.empty(0, dtype=np.int64)
    if not passing.any():
        return Lifted(nothing, nothing, nothing, nothing)
    first, second = [], []
    for column in np.flatnonzero(passing).tolist():
        name, number = f"{purpose}/spurious {group} {column}", int(passing[column])
        start = int(law.starts[column])
        after = int(law.starts[column + 1]) if column + 1 < len(passing) else noise.reach + 1
        first.append(draw_between(randomness, noise.sigma, start, after, number, name))
        second.append(draw_above(randomness, noise.sigma, int(thresholds[column]), number, name))
    proposed = proposed_of_class(
        valid, group, int(passing.sum()), sum(absent.tolist()), randomness, f"{purpose}/spurious"
    )
    columns = np.repeat(np.arange(len(passing)), passing)
    return Lifted(proposed, columns, np.concatenate(first), np.concatenate(second))


def proposed_of_class(
    valid: ValidClasses, group: int, number: int, absent: int, randomness: Randomness, purpose: str
) -> Integers:
    """Keys of a class; the caller takes the first `number` that no user holds."""
    size = int(valid.sizes[group])
    return valid.keys(group, proposed(size, number, absent, randomness, f"{purpose} {group}/keys"))


def proposed(size: int, number: int, absent: int, randomness: Randomness, purpose: str) -> Integers:
    """Numbers below `size` in uniformly random order without repetition, enough to contain `number`
    of the `absent` ones. The first `number` of these are a uniform choice.

    While fewer than `number` absent grams were drawn, each draw hits a new one with probability at
    least (absent - number + 1) / size. If the mean number of hits is m = 2 number + 710, there are
    fewer than `number` with probability at most exp(-(m - number)^2 / (2 m)) < 2^-256 (Chernoff).
    If that takes `size` draws or more, all numbers are returned in random order, so none is
    missing.
    """
    draws = -(-(2 * number + _DRAWS_FOR_CERTAINTY) * size // (absent - number + 1))
    if draws >= size:
        return _in_random_order(size, randomness, purpose)
    drawn = uniform_below(randomness, size, draws, purpose).astype(np.int64)
    _, first = np.unique(drawn, return_index=True)
    return drawn[np.sort(first)]


#: 4 ln(2^256), rounded up.
_DRAWS_FOR_CERTAINTY = 710


def _in_random_order(count: int, randomness: Randomness, purpose: str) -> Integers:
    """A uniformly random permutation of the numbers below `count`: sorts random words, drawn again
    until no two are equal."""
    while True:
        words = randomness.words(count, purpose)
        order = np.argsort(words)
        if (np.diff(words[order]) > 0).all():
            return order
