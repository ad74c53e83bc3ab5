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

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from dphh.privacy.forecast_rounds import Bins, bins
from dphh.privacy.rounded_gaussian import ONE
from dphh.udfs.draws.binomials import draw_binomial_of_any_size, draw_multinomial
from dphh.udfs.draws.noise import draw_above, draw_between
from dphh.udfs.draws.randomness import Randomness, uniform_below
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.text.hashes import Integers


class Classes(Protocol):
    """The valid grams of a level by class."""

    @property
    def sizes(self) -> Integers: ...

    def keys(self, group: int, indices: Integers) -> Integers: ...


def bins_of_class(
    group: int, absent: int, law: Bins, randomness: Randomness, purpose: str
) -> list[int]:
    """How many of a class's absent grams fall into each bin of round 1's noise."""
    return draw_multinomial(randomness, absent, law.probability_units, f"{purpose}/absent {group}")


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
    valid: Classes,
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
    size, number, of_absent = int(valid.sizes[group]), int(passing.sum()), sum(absent.tolist())
    indices = proposed(size, number, of_absent, randomness, f"{purpose}/spurious {group}/keys")
    columns = np.repeat(np.arange(len(passing)), passing)
    keys = valid.keys(group, indices)
    return Lifted(keys, columns, np.concatenate(first), np.concatenate(second))


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


class AbsentFunctions(NamedTuple):
    """The draws for absent grams as functions over Arrow columns, of one row for each class or
    row: so the rows are few."""

    bins: Any
    negatives: Any
    lifted_of_class: Any


def absent_functions(randomness: Randomness) -> AbsentFunctions:
    def absent_bins(groups: Any, grams: Any, sigma: int, purpose: str) -> pa.Array:
        """`dphh_absent_bins(class, grams, sigma, purpose)`: how many of a class's absent grams fall
        into each bin of round 1."""
        law = bins(sigma)
        fallen = [
            bins_of_class(group, absent, law, randomness, purpose)
            for group, absent in zip(groups.to_pylist(), grams.to_pylist(), strict=True)
        ]
        columns = [np.tile(np.arange(len(law.starts)), len(fallen)), np.array(fallen).ravel()]
        pairs = pa.StructArray.from_arrays([*map(_numbers, columns)], ["bin", "grams"])
        return lists_of(np.full(len(fallen), len(law.starts)), pairs)

    def negatives(groups: Any, columns: Any, grams: Any, sigma: int, purpose: str) -> pa.Array:
        """`dphh_absent_negatives(class, bin, grams, sigma, purpose)`: how many of a row's absent
        grams are at 0 or below in round 2."""
        law = bins(sigma)
        rows = zip(*(column.to_pylist() for column in (groups, columns, grams)), strict=True)
        return _numbers(
            [
                negatives_of_row(group, column, absent, law, randomness, purpose)
                for group, column, absent in rows
            ]
        )

    def lifted(groups: Any, rows: Any, valid: Classes, sigma: int, purpose: str) -> pa.Array:
        """`dphh_lifted_grams_of_class(class, rows, valid, sigma, purpose)`: `lifted_of_class`, of
        the (bin, grams, negatives, threshold) of a class's rows."""
        law, made = bins(sigma), []
        for group, unsorted in zip(groups.to_pylist(), rows.to_pylist(), strict=True):
            of_class = sorted(unsorted, key=lambda row: row["bin"])
            absent, negatives, thresholds = (
                np.array([row[name] for row in of_class], dtype=np.int64)
                for name in ("grams", "negatives", "threshold")
            )
            drawn = lifted_of_class(
                valid, group, absent, negatives, thresholds, law, randomness, purpose
            )
            made.append(drawn.by_position())
        return lists_of(np.array([len(each) for each in made], np.int64), pa.concat_arrays(made))

    return AbsentFunctions(absent_bins, negatives, lifted)


def _numbers(values: Any) -> pa.Array:
    return pa.array(values, pa.int64())
