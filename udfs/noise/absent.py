"""Draws the spurious grams of a level: valid grams that pass by noise and that no user holds.

DPNE. Its histogram H_k contains every valid gram, most of them with weight 0. They are too many to
list, and leaving them out would reveal which valid grams some user keeps. So their number is drawn
from Binomial(|V_k| - |supp H_k|, P[noise >= rho]), they are drawn uniformly from V_k without
supp H_k, and their scores from the noise given that it reaches rho. This is exactly the output of
Algorithm 1 of the paper (its Appendix A does the same). Candidate keys are drawn before it is known
which of them some user keeps. A query of the level drops the kept ones
(`sql/ngrams/released_grams.sql`), so that kept keys never leave that query.

The forecast ladder. In both rounds every valid gram gets noise, held or not. A gram that no user
holds is called absent. Its weight is 0, so its two noised weights are two independent draws of the
noise. The rounds use only its bin in round 1, its sign in round 2 and, if it passes, its key and
both noised weights. So, for each class:

    bins: Multinomial(absent grams of the class, P[noise in bin]);
    nonpositive of a cell (a class and a bin): Binomial(number in the bin, P[noise <= 0]);
    passing, for a threshold t > 0: Binomial(number - nonpositive, P[noise >= t] / P[noise > 0]);
    which: keys drawn uniformly from the class, without replacement, among those no user holds;
    noised weights: the noise given its bin, and the noise given that it reaches t.

A late round goes on with those that did not pass. Of a cell, the nonpositive ones fall into the
bins of round 2 by the noise's law given that it is 0 or below, the others by its law given that it
is above 0 and below t. A cell of the late round is a class and both bins; nonpositive, passing and
which are drawn for it in the same way.

This is the same joint distribution as adding noise to every absent gram. Thresholds are above 0
(`tails_by_signs` of the mechanism), so a gram with a negative weight never passes.

The numbers of absent grams are private: they depend on how many valid grams some user holds.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dphh.udfs.arrays import Integers, lists_of
from dphh.udfs.noise.binomials import (
    draw_binomial,
    draw_binomial_of_any_size,
    draw_multinomial,
)
from dphh.udfs.noise.randomness import Randomness, uniform_below
from dphh.udfs.noise.sampler import draw_noise_at_least
from dphh.udfs.noise.table import TABLE_ONE, Bins, rounded_gaussian


class KeysByIndex(Protocol):
    """V_k, the valid grams: how many, and their keys by index. They are never listed."""

    def __len__(self) -> int: ...

    def keys(self, indices: Integers) -> Integers: ...


class KeysByClass(Protocol):
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
    valid: KeysByClass,
    class_number: int,
    cells: Integers,
    absent: Integers,
    nonpositive: Integers,
    thresholds: Integers,
    law: Bins,
    purpose: str,
    cells_of_class: int,
) -> pa.StructArray:
    """Draws how many absent grams of a class pass, their cells and noised weights, and candidate
    keys: rows (position, key, cell, first, second). `nonpositive` says how many of a cell have
    noise of 0 or below in this round. In a late round, whose cells have two bins, `first` is 0, as
    it is for held grams: nothing that is released depends on more than its bin."""
    noise, name = law.noise, f"{purpose}/spurious {class_number}"
    is_late, positive = cells_of_class > len(law.starts), noise.survival(1)
    nothing = np.empty(0, dtype=np.int64)
    drawn = [(nothing, nothing, nothing)]
    columns = (column.tolist() for column in (cells, absent, nonpositive, thresholds))
    for cell, grams, not_above_0, threshold in zip(*columns, strict=True):
        if not grams or threshold > noise.reach:  # none can pass, so nothing is drawn
            continue
        assert threshold > 0
        named = f"{name} {cell - class_number * cells_of_class}"
        tail = Fraction(noise.survival(threshold), positive)
        passing = draw_binomial_of_any_size(randomness, grams - not_above_0, tail, named)
        if not passing:
            continue
        second = draw_noise_at_least(randomness, noise.sigma, threshold, passing, named)
        first = np.zeros(passing, dtype=np.int64)
        if not is_late:
            start, after = law.range_of_bin(cell % len(law.starts))
            first = draw_noise_at_least(randomness, noise.sigma, start, passing, named, after)
        drawn.append((np.full(passing, cell), first, second))
    cell_of, first, second = map(np.concatenate, zip(*drawn, strict=True))
    keys = nothing
    if passed := len(cell_of):
        size, all_absent = int(valid.sizes[class_number]), int(absent.sum())
        indices = draw_candidate_indices(randomness, size, all_absent, passed, f"{name}/keys")
        keys = valid.keys(class_number, indices)
    return rows_of_candidates(keys, cell=cell_of, first=first, second=second)


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


# Functions over Arrow columns. A column has one value a class or a cell, which are few.


def absent_by_cell(
    randomness: Randomness, classes: Any, absent_counts: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_cells(class, grams, sigma, purpose)`: how many of a class's absent grams fall
    into each cell of round 1; `grams` says how many absent grams each class has."""
    law = Bins(sigma)
    by_bin = [
        draw_multinomial(
            randomness, grams, law.noise_probability_units, f"{purpose}/absent {class_number}"
        )
        for class_number, grams in zip(classes.to_pylist(), absent_counts.to_pylist(), strict=True)
    ]
    cells = np.add.outer(classes.to_numpy() * len(law.starts), np.arange(len(law.starts)))
    columns = [cells.ravel(), np.array(by_bin).ravel()]
    pairs = pa.StructArray.from_arrays([*map(_int64_array, columns)], ["cell", "grams"])
    return lists_of(np.full(len(by_bin), len(law.starts)), pairs)


def absent_nonpositive(
    randomness: Randomness, cells: Any, absent_counts: Any, sigma: int, purpose: str
) -> pa.Array:
    """`dphh_absent_nonpositive(cell, grams, sigma, purpose)`: how many of a cell's absent grams
    have noise of 0 or below in round 2; `grams` says how many absent grams each cell has."""
    at_most_zero = 1 - Fraction(rounded_gaussian(sigma).survival(1), TABLE_ONE)
    drawn = []
    for cell, grams in zip(cells.to_pylist(), absent_counts.to_pylist(), strict=True):
        name = f"{purpose}/absent signs {cell}"
        drawn.append(
            draw_binomial_of_any_size(randomness, grams, at_most_zero, name) if grams else 0
        )
    return _int64_array(drawn)


def spurious_of_level(
    randomness: Randomness,
    kept_count: Any,
    valid: KeysByIndex,
    sigma: int,
    threshold: int,
    purpose: str,
) -> pa.Array:
    """`dphh_spurious(kept, valid, sigma, threshold, purpose)`, in a query of one row. Of all valid
    grams but the `kept` ones that some user keeps, draws how many reach the threshold,
    their noised weights, and candidate keys for them: rows (position, key, noisy)."""
    absent = len(valid) - kept_count[0].as_py()
    tail = rounded_gaussian(sigma).tail_upper_bound(threshold)
    number = draw_binomial(randomness, absent, tail, f"{purpose}/spurious number")
    name = f"{purpose}/spurious scores"
    noisy = draw_noise_at_least(randomness, sigma, threshold, number, name)
    keys = noisy
    if number:
        name = f"{purpose}/spurious keys"
        keys = valid.keys(draw_candidate_indices(randomness, len(valid), absent, number, name))
    return lists_of(np.array([len(keys)]), rows_of_candidates(keys, noisy=noisy))


def spurious_of_classes(
    randomness: Randomness,
    classes: Any,
    cells: Any,
    valid: KeysByClass,
    bins: int,
    sigma: int,
    purpose: str,
) -> pa.Array:
    """`dphh_spurious_of_class(class, cells, valid, bins, sigma, purpose)`: the spurious grams of
    each class (`draw_spurious_of_class`); `cells` are its (cell, grams, nonpositive, threshold), of
    `bins` that a class has."""
    law, nothing, drawn = Bins(sigma), np.empty(0, dtype=np.int64), []
    names = "cell", "grams", "nonpositive", "threshold"
    for class_number, unsorted in zip(classes.to_pylist(), cells.to_pylist(), strict=True):
        rows = sorted([row[name] for name in names] for row in unsorted)
        cell, absent, nonpositive, thresholds = np.array(rows, dtype=np.int64).T
        of_cells = cell, absent, nonpositive, thresholds
        drawn.append(
            draw_spurious_of_class(randomness, valid, class_number, *of_cells, law, purpose, bins)
        )
    none = rows_of_candidates(nothing, cell=nothing, first=nothing, second=nothing)
    lengths = np.array([len(each) for each in drawn], np.int64)
    return lists_of(lengths, pa.concat_arrays([none, *drawn]))


def absent_undecided(
    randomness: Randomness,
    cells: Any,
    absent_counts: Any,
    nonpositive_counts: Any,
    passed_counts: Any,
    thresholds: Any,
    sigma: int,
    purpose: str,
) -> pa.Array:
    """`dphh_absent_undecided(cell, grams, nonpositive, passed, threshold, sigma, purpose)`: for
    each cell of round 1, its absent grams that round 2 did not release, by the bin of their noised
    weight in round 2: lists of (cell, grams), where cell = cell of round 1 * bins + bin.

    Their noise is known to be 0 or below, or above 0 and below the threshold, so each of the two
    groups is divided by the noise's law in that range.
    """
    law, noise, found = Bins(sigma), rounded_gaussian(sigma), []
    columns = cells, absent_counts, nonpositive_counts, passed_counts, thresholds
    bins, units_within = len(law.starts), cache(law.units_within)
    for cell, grams, nonpositive, passed, threshold in zip(
        *(column.to_pylist() for column in columns), strict=True
    ):
        name = f"{purpose}/undecided {cell}"
        at_most_0 = units_within(-noise.reach, 0)
        below = draw_multinomial(randomness, nonpositive, at_most_0, f"{name}/below")
        under = units_within(1, min(threshold - 1, noise.reach))
        above = draw_multinomial(randomness, grams - nonpositive - passed, under, f"{name}/above")
        found += [
            (cell * bins + at_bin, count)
            for at_bin, count in enumerate(map(sum, zip(below, above, strict=True)))
        ]
    pairs = pa.StructArray.from_arrays(
        [_int64_array([pair[i] for pair in found]) for i in (0, 1)], ["cell", "grams"]
    )
    return lists_of(np.full(len(cells), bins), pairs)


def _int64_array(values: Any) -> pa.Array:
    return pa.array(values, pa.int64())
