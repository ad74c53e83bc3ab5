"""Draws the spurious grams of a forecast level: valid grams that pass by noise, held by no user.

In both rounds every valid gram gets noise, held or not, and there are too many valid grams to list.
A gram that no user holds is called absent. Its weight is 0, so its two noised weights are two
independent draws of the noise. The rounds use only its bin in round 1, its sign in round 2 and, if
it passes, its key and both noised weights. So, for each class:

    bins: Multinomial(absent grams of the class, P[noise in bin]);
    nonpositive of a row: Binomial(number in the bin, P[noise <= 0]);
    passing, for a threshold t > 0: Binomial(number - nonpositive, P[noise >= t] / P[noise > 0]);
    which: keys drawn uniformly from the class, without replacement, among those no user holds;
    noised weights: the noise given its bin, and the noise given that it reaches t.

This is the same joint distribution as adding noise to every absent gram. Thresholds are above 0
(`signs.py` of the mechanism), so a gram with a negative weight never passes.

The numbers of absent grams are private: they depend on how many valid grams some user holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dphh.privacy.forecast_rounds import Bins
from dphh.privacy.rounded_gaussian import TABLE_ONE
from dphh.udfs.draws.binomials import draw_binomial_of_any_size, draw_multinomial
from dphh.udfs.draws.noise import draw_noise_above, draw_noise_between
from dphh.udfs.draws.randomness import Randomness, uniform_below
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.text.hashes import Integers


class ValidGramsByClass(Protocol):
    """The valid grams of a level: how many each class has, and their keys by class and index."""

    @property
    def sizes(self) -> Integers: ...

    def keys(self, at_class: int, indices: Integers) -> Integers: ...


def draw_bins(
    at_class: int, absent: int, law: Bins, randomness: Randomness, purpose: str
) -> list[int]:
    """Draws how many of a class's absent grams fall into each bin of round 1."""
    return draw_multinomial(
        randomness, absent, law.noise_probability_units, f"{purpose}/absent {at_class}"
    )


def draw_nonpositive(
    at_class: int, at_bin: int, absent: int, law: Bins, randomness: Randomness, purpose: str
) -> int:
    """Draws how many of a row's absent grams have noise of 0 or below in round 2."""
    if not absent:
        return 0
    at_most_zero = 1 - Fraction(law.noise.survival(1), TABLE_ONE)
    row = at_class * len(law.starts) + at_bin
    return draw_binomial_of_any_size(
        randomness, absent, at_most_zero, f"{purpose}/absent signs {row}"
    )


@dataclass(frozen=True)
class LiftedInClass:
    """The absent grams of a class that pass, drawn before it is known which grams users hold.

    The first absent key of `candidates` gets the first bin and weights, and so on. Any
    assignment has the right distribution, since the candidates are in random order.
    """

    candidates: Integers
    bins: Integers
    first: Integers
    second: Integers


def candidates_in_order(keys: Integers, **lifted: Integers) -> pa.StructArray:
    """(position, key, ...) of each candidate key, in the order drawn, with the columns of what
    noise lifts; spare ones have NULLs."""

    def column(values: Integers) -> pa.Array:
        more = pa.nulls(len(keys) - len(values), pa.int64())
        return pa.concat_arrays([_int64_array(values), more])

    columns = {"position": np.arange(len(keys)), "key": keys, **lifted}
    return pa.StructArray.from_arrays([*map(column, columns.values())], [*columns])


def draw_lifted(
    valid: ValidGramsByClass,
    at_class: int,
    absent: Integers,
    nonpositive: Integers,
    thresholds: Integers,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> LiftedInClass:
    """Draws how many absent grams of a class pass, their noised weights, and candidate keys."""
    noise = law.noise
    positive = noise.survival(1)
    # Nothing is drawn for a threshold beyond the noise table or a row without absent grams.
    passing = np.zeros(len(absent), dtype=np.int64)
    for at_bin in np.flatnonzero((absent > 0) & (thresholds <= noise.reach)).tolist():
        threshold = int(thresholds[at_bin])
        assert threshold > 0
        passing[at_bin] = draw_binomial_of_any_size(
            randomness,
            int(absent[at_bin] - nonpositive[at_bin]),
            Fraction(noise.survival(threshold), positive),
            f"{purpose}/spurious {at_class} {at_bin}",
        )
    nothing = np.empty(0, dtype=np.int64)
    if not passing.any():
        return LiftedInClass(nothing, nothing, nothing, nothing)
    first, second = [], []
    for at_bin in np.flatnonzero(passing).tolist():
        name, number = f"{purpose}/spurious {at_class} {at_bin}", int(passing[at_bin])
        start = int(law.starts[at_bin])
        after = int(law.starts[at_bin + 1]) if at_bin + 1 < len(passing) else noise.reach + 1
        first.append(draw_noise_between(randomness, noise.sigma, start, after, number, name))
        second.append(
            draw_noise_above(randomness, noise.sigma, int(thresholds[at_bin]), number, name)
        )
    size, number, of_absent = int(valid.sizes[at_class]), int(passing.sum()), sum(absent.tolist())
    indices = draw_candidates(
        size, number, of_absent, randomness, f"{purpose}/spurious {at_class}/keys"
    )
    at_bins = np.repeat(np.arange(len(passing)), passing)
    keys = valid.keys(at_class, indices)
    return LiftedInClass(keys, at_bins, np.concatenate(first), np.concatenate(second))


def draw_candidates(
    size: int, number: int, absent: int, randomness: Randomness, purpose: str
) -> Integers:
    """Draws different indices below `size`, in uniformly random order: so many that at least
    `number` of them are among the `absent` ones. The first `number` of these are a uniform choice.

    While fewer than `number` absent grams were drawn, each draw hits a new one with probability at
    least (absent - number + 1) / size. If the mean number of hits is m = 2 number + 710, there are
    fewer than `number` with probability at most exp(-(m - number)^2 / (2 m)) < 2^-256 (Chernoff).
    If that takes `size` draws or more, all numbers are returned in random order, so none is
    missing.
    """
    draws = -(-(2 * number + _SPARE_HITS) * size // (absent - number + 1))
    if draws >= size:
        return _random_permutation(size, randomness, purpose)
    drawn = uniform_below(randomness, size, draws, purpose).astype(np.int64)
    _, first = np.unique(drawn, return_index=True)
    return drawn[np.sort(first)]


#: 4 ln(2^256), rounded up: then too few hits have a probability below 2^-256.
_SPARE_HITS = 710


def _random_permutation(count: int, randomness: Randomness, purpose: str) -> Integers:
    """A uniformly random permutation of the numbers below `count`: sorts random words, drawn again
    until no two are equal."""
    while True:
        words = randomness.random_words(count, purpose)
        order = np.argsort(words)
        if (np.diff(words[order]) > 0).all():
            return order


# Functions over Arrow columns. A column has one value for each class, or for each row (a class and
# a bin): few.


def absent_bins(
    randomness: Randomness, classes: Any, grams: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_bins(class, grams, sigma, purpose)`: how many of a class's absent grams fall
    into each bin of round 1."""
    law = Bins(sigma)
    fallen = [
        draw_bins(at_class, absent, law, randomness, purpose)
        for at_class, absent in zip(classes.to_pylist(), grams.to_pylist(), strict=True)
    ]
    columns = [np.tile(np.arange(len(law.starts)), len(fallen)), np.array(fallen).ravel()]
    pairs = pa.StructArray.from_arrays([*map(_int64_array, columns)], ["bin", "grams"])
    return lists_of(np.full(len(fallen), len(law.starts)), pairs)


def absent_nonpositive(
    randomness: Randomness, classes: Any, at_bins: Any, grams: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_nonpositive(class, bin, grams, sigma, purpose)`: how many of a row's absent
    grams have noise of 0 or below in round 2."""
    law = Bins(sigma)
    rows = zip(*(column.to_pylist() for column in (classes, at_bins, grams)), strict=True)
    return _int64_array(
        [
            draw_nonpositive(at_class, at_bin, absent, law, randomness, purpose)
            for at_class, at_bin, absent in rows
        ]
    )


def lifted_of_classes(
    randomness: Randomness,
    classes: Any,
    rows: Any,
    valid: ValidGramsByClass,
    sigma: int,
    purpose: str,
) -> pa.Array:
    """`dphh_lifted_grams_of_class(class, rows, valid, sigma, purpose)`: `draw_lifted` for each
    class; `rows` are its (bin, grams, nonpositive, threshold)."""
    law, made = Bins(sigma), []
    for at_class, unsorted in zip(classes.to_pylist(), rows.to_pylist(), strict=True):
        of_class = sorted(unsorted, key=lambda row: row["bin"])
        absent, nonpositive, thresholds = (
            np.array([row[name] for row in of_class], dtype=np.int64)
            for name in ("grams", "nonpositive", "threshold")
        )
        drawn = draw_lifted(
            valid, at_class, absent, nonpositive, thresholds, law, randomness, purpose
        )
        weights = {"first": drawn.first, "second": drawn.second}
        made.append(candidates_in_order(drawn.candidates, bin=drawn.bins, **weights))
    return lists_of(np.array([len(each) for each in made], np.int64), pa.concat_arrays(made))


def _int64_array(values: Any) -> pa.Array:
    return pa.array(values, pa.int64())
