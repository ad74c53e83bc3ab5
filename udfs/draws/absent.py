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

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dphh.privacy.forecast_rounds import Bins
from dphh.privacy.rounded_gaussian import TABLE_ONE
from dphh.udfs.draws.binomials import draw_binomial_of_any_size, draw_multinomial
from dphh.udfs.draws.noise import draw_noise_at_least
from dphh.udfs.draws.randomness import Randomness, uniform_below
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.text.hashes import Integers


class ValidGramsByClass(Protocol):
    """The valid grams of a level: how many each class has, and their keys by class and index."""

    @property
    def sizes(self) -> Integers: ...

    def keys(self, class_number: int, indices: Integers) -> Integers: ...


def rows_of_candidates(keys: Integers, **drawn: Integers) -> pa.StructArray:
    """Rows (position, key, ...): candidate keys and, not yet paired, columns of spurious grams.

    All is drawn before it is known which grams users hold. Then the first candidate that no user
    holds gets the columns of the first row, the second such candidate those of the second row, and
    so on; further rows have NULLs. Any assignment has the right distribution, since candidates are
    in random order.
    """

    def padded(values: Integers) -> pa.Array:
        more = pa.nulls(len(keys) - len(values), pa.int64())
        return pa.concat_arrays([_int64_array(values), more])

    columns = {"position": np.arange(len(keys)), "key": keys, **drawn}
    return pa.StructArray.from_arrays([*map(padded, columns.values())], [*columns])


def draw_spurious_of_class(
    randomness: Randomness,
    valid: ValidGramsByClass,
    class_number: int,
    absent_by_bin: Integers,
    nonpositive_by_bin: Integers,
    threshold_by_bin: Integers,
    law: Bins,
    purpose: str,
) -> pa.StructArray:
    """Draws how many absent grams of a class pass, their bins and noised weights, and candidate
    keys: rows (position, key, bin, first, second). `nonpositive_by_bin` says how many absent grams
    have noise of 0 or below in round 2."""
    noise = law.noise
    positive = noise.survival(1)
    # Nothing is drawn for a threshold beyond the noise table or a bin without absent grams.
    passing = np.zeros(len(absent_by_bin), dtype=np.int64)
    for at_bin in np.flatnonzero((absent_by_bin > 0) & (threshold_by_bin <= noise.reach)).tolist():
        threshold = int(threshold_by_bin[at_bin])
        assert threshold > 0
        passing[at_bin] = draw_binomial_of_any_size(
            randomness,
            int(absent_by_bin[at_bin] - nonpositive_by_bin[at_bin]),
            Fraction(noise.survival(threshold), positive),
            f"{purpose}/spurious {class_number} {at_bin}",
        )
    nothing = np.empty(0, dtype=np.int64)
    if not passing.any():
        return rows_of_candidates(nothing, bin=nothing, first=nothing, second=nothing)
    first, second = [], []
    for at_bin in np.flatnonzero(passing).tolist():
        name, number = f"{purpose}/spurious {class_number} {at_bin}", int(passing[at_bin])
        start = int(law.starts[at_bin])
        after = int(law.starts[at_bin + 1]) if at_bin + 1 < len(passing) else noise.reach + 1
        first.append(draw_noise_at_least(randomness, noise.sigma, start, number, name, after))
        threshold = int(threshold_by_bin[at_bin])
        second.append(draw_noise_at_least(randomness, noise.sigma, threshold, number, name))
    indices = draw_candidate_indices(
        randomness,
        int(valid.sizes[class_number]),
        sum(absent_by_bin.tolist()),
        int(passing.sum()),
        f"{purpose}/spurious {class_number}/keys",
    )
    return rows_of_candidates(
        valid.keys(class_number, indices),
        bin=np.repeat(np.arange(len(passing)), passing),
        first=np.concatenate(first),
        second=np.concatenate(second),
    )


def draw_candidate_indices(
    randomness: Randomness, valid_count: int, absent_count: int, needed: int, purpose: str
) -> Integers:
    """Draws different indices of valid grams, in uniformly random order: so many that at least
    `needed` of them are of absent grams. The first `needed` of these are a uniform choice.

    While fewer than `needed` absent grams were drawn, each draw hits a new one with probability at
    least (absent_count - needed + 1) / valid_count. If the mean number of hits is m = 2 needed +
    710, there are fewer than `needed` with probability at most exp(-(m - needed)^2 / (2 m)) <
    2^-256 (Chernoff; 710 is 4 ln(2^256), rounded up). If that takes `valid_count` draws or more,
    all indices are returned in random order, so none is missing.
    """
    draws = -(-(2 * needed + 710) * valid_count // (absent_count - needed + 1))
    if draws >= valid_count:
        return _random_permutation(randomness, valid_count, purpose)
    drawn = uniform_below(randomness, valid_count, draws, purpose).astype(np.int64)
    _, first = np.unique(drawn, return_index=True)
    return drawn[np.sort(first)]


def _random_permutation(randomness: Randomness, count: int, purpose: str) -> Integers:
    """A uniformly random permutation of the numbers below `count`: sorts random words, drawn again
    until no two are equal."""
    while True:
        words = randomness.random_words(count, purpose)
        order = np.argsort(words)
        if (np.diff(words[order]) > 0).all():
            return order


# Functions over Arrow columns. A column has one value for each class, or for each row (a class and
# a bin), which are few.


def absent_by_bin(
    randomness: Randomness, classes: Any, absent_counts: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_bins(class, grams, sigma, purpose)`: how many of a class's absent grams fall
    into each bin of round 1; `grams` says how many absent grams each class has."""
    law = Bins(sigma)
    by_bin = [
        draw_multinomial(
            randomness, grams, law.noise_probability_units, f"{purpose}/absent {class_number}"
        )
        for class_number, grams in zip(classes.to_pylist(), absent_counts.to_pylist(), strict=True)
    ]
    columns = [np.tile(np.arange(len(law.starts)), len(by_bin)), np.array(by_bin).ravel()]
    pairs = pa.StructArray.from_arrays([*map(_int64_array, columns)], ["bin", "grams"])
    return lists_of(np.full(len(by_bin), len(law.starts)), pairs)


def absent_nonpositive(
    randomness: Randomness, classes: Any, bins: Any, absent_counts: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_nonpositive(class, bin, grams, sigma, purpose)`: how many of a row's absent
    grams have noise of 0 or below in round 2; `grams` says how many absent grams each row has."""
    law = Bins(sigma)
    at_most_zero = 1 - Fraction(law.noise.survival(1), TABLE_ONE)
    drawn = []
    for class_number, at_bin, grams in zip(
        *(column.to_pylist() for column in (classes, bins, absent_counts)), strict=True
    ):
        name = f"{purpose}/absent signs {class_number * len(law.starts) + at_bin}"
        drawn.append(
            draw_binomial_of_any_size(randomness, grams, at_most_zero, name) if grams else 0
        )
    return _int64_array(drawn)


def spurious_of_classes(
    randomness: Randomness,
    classes: Any,
    bins: Any,
    valid: ValidGramsByClass,
    sigma: int,
    purpose: str,
) -> pa.Array:
    """`dphh_lifted_grams_of_class(class, bins, valid, sigma, purpose)`: the spurious grams of each
    class (`draw_spurious_of_class`); `bins` are its (bin, grams, nonpositive, threshold)."""
    law, drawn = Bins(sigma), []
    for class_number, unsorted in zip(classes.to_pylist(), bins.to_pylist(), strict=True):
        of_class = sorted(unsorted, key=lambda row: row["bin"])
        absent, nonpositive, thresholds = (
            np.array([row[name] for row in of_class], dtype=np.int64)
            for name in ("grams", "nonpositive", "threshold")
        )
        drawn.append(
            draw_spurious_of_class(
                randomness, valid, class_number, absent, nonpositive, thresholds, law, purpose
            )
        )
    return lists_of(np.array([len(each) for each in drawn], np.int64), pa.concat_arrays(drawn))


def _int64_array(values: Any) -> pa.Array:
    return pa.array(values, pa.int64())
