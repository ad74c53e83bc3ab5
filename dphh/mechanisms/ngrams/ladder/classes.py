"""Groups valid grams into classes by the weight that the level below forecasts for them.

Every released gram of the level below has a mass, about the sum of its holders' plain weights. For
a pair (l, r) that overlaps in o, independence would give the mass mass[l] mass[r] / mass[o]. In
steps of LOG_STEP nats its logarithm is a_l + b_r, with

    a = floor((ln mass - ln mass[suf] / 2) / LOG_STEP),
    b = floor((ln mass - ln mass[pre] / 2) / LOG_STEP),

where suf and pre are the gram without its first and without its last token. For a word, both are
the empty gram, whose mass is that of all words. The class is the sum a_l + b_r, and the forecast is
the middle of the class. Everything here depends on releases only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc

from dphh.mechanisms.ngrams.ladder.rungs import (
    GRAM_NUMBER_BITS,
    RIGHT_MASK,
    Ladder,
    Rung,
    ValidGrams,
)
from dphh.prior import Prior
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.kernel.positions import KeyIndex

#: The width of one step of forecasts and of lifts, as a difference of natural logarithms.
LOG_STEP = 0.5
#: A smaller lift is set to this.
LEAST_LIFT = 0.04
#: The lifts that classes distinguish, in steps. A lift between two of them counts as the lower one.
LIFTS: Integers = np.array([-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 10, 12])


@dataclass(frozen=True, eq=False)
class LiftCounts:
    """A public text's counts, from which the lifts of the next level's valid grams follow. A lift
    is a gram's count in the text, relative to the count expected by chance.

    For a pair (l, r) that overlap in o, its public counts let expect E = n_l n_r / n_o. If the text
    has the pair c times, the lift is (c + 1) / (E + 1), and LEAST_LIFT at least. Logarithms are in
    steps, as those of forecasts are, so E is a function of e_l + e_r, and the lift of a pair that
    the text lacks is a function of that sum alone. All of it is made from releases and the prior.
    Classes tell lifts apart. Whether lifts are used is decided after round 1, so a text on other
    things buries no gram.
    """

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


_LEAST_FORECAST_MASS = 1e-3


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the classes: each part is treated as one class with one forecast."""

    #: For each class, the number of the part that it belongs to.
    part_of_class: Integers
    forecasts: Floats

    def sums_of_parts(self, class_values: Any) -> Any:
        """For each part, the sum of the values of its classes."""
        sums = np.zeros((len(self.forecasts), *class_values.shape[1:]), class_values.dtype)
        np.add.at(sums, self.part_of_class, class_values)
        return sums


@dataclass(frozen=True, eq=False)
class ValidClasses:
    """V_k by class, counted and indexed without listing it.

    A bundle is all pairs of one overlap whose left grams have one step a, and whose right grams one
    step b, so that all its pairs have one class. With a prior, the left grams of a bundle also have
    one step e of their public counts, and its right grams one step f; and each pair that the public
    text has is moved to the class that its own count gives it.
    """

    #: What each gram of the level below adds to a pair's class, as its left and as its right gram.
    left: Integers
    right: Integers
    #: The forecast mass of each class.
    forecasts: Floats
    #: The bundles, in the order of their classes. The bundles of class c end at `ends[c]`.
    bundles: ValidGrams
    ends: Integers
    public: PublicClasses
    #: With a prior: two partitions, by the forecast times the lift and by the forecast alone. All
    #: grams of a class have one lift (`LiftCounts`).
    partitions: tuple[Partition, ...] = ()

    @property
    def sizes(self) -> Integers:
        """How many valid grams each class has."""
        sizes: Integers = np.diff(np.r_[0, self.bundles.cumulative][self.ends], prepend=0)
        classes = len(sizes)
        moved_in = np.bincount(self.public.classes, minlength=classes)
        return sizes + moved_in - np.bincount(self.public.classes_before, minlength=classes)

    def __len__(self) -> int:
        return len(self.bundles)

    def classes_of(self, keys: Integers) -> Integers:
        one, other = keys >> GRAM_NUMBER_BITS, keys & RIGHT_MASK
        class_number: Integers = self.left[one] + self.right[other]
        class_number += self.public.shifts[self.public.left[one] + self.public.right[other]]
        if len(self.public.keys):
            at = np.searchsorted(self.public.keys, keys).clip(max=len(self.public.keys) - 1)
            class_number = np.where(
                self.public.keys[at] == keys, self.public.classes[at], class_number
            )
        return class_number

    def keys(self, class_number: int, indices: Integers) -> Integers:
        """The keys of the valid grams of one class that have these indices, from 0 to size - 1."""
        start, end = (
            int(np.r_[0, self.bundles.cumulative][np.r_[0, self.ends][class_number + i]])
            for i in (0, 1)
        )
        # First the pairs of the class's bundles that keep this class, then those moved to it.
        away = np.sort(self.public.places[self.public.classes_before == class_number]) - start
        stay = end - start - len(away)
        here = self.public.keys[self.public.classes == class_number]
        within = np.minimum(indices, max(stay - 1, 0))
        within = within + np.searchsorted(away - np.arange(len(away)), within, side="right")
        keys = np.empty(len(indices), dtype=np.int64)
        keys[indices < stay] = self.bundles.keys(start + within[indices < stay])
        keys[indices >= stay] = here[indices[indices >= stay] - stay]
        return keys


@dataclass(frozen=True, eq=False)
class PublicClasses:
    """How a prior changes the classes of pairs."""

    #: e and f: for each gram, the steps of its public count as a left and as a right gram.
    left: Integers
    right: Integers
    #: What e + f adds to the class of a pair that the public text lacks.
    shifts: Integers
    #: Pairs that the text has, ascending; their classes; the classes that they would have if the
    #: text lacked them; and where they stand among the valid grams of all bundles.
    keys: Integers
    classes: Integers
    classes_before: Integers
    places: Integers

    @classmethod
    def unchanged(cls, grams: int) -> PublicClasses:
        """No pair's class is changed. `grams`: how many left, and how many right, grams exist."""
        nothing, zeros = np.empty(0, dtype=np.int64), np.zeros(grams, dtype=np.int64)
        return cls(zeros, zeros, np.zeros(1, np.int64), nothing, nothing, nothing, nothing)


def _steps_of_pieces(masses: Floats, overlap_masses: Floats) -> Integers:
    """floor((ln mass - ln overlap_mass / 2) / LOG_STEP), for each gram as a piece of a pair."""
    own = np.log(np.maximum(masses, _LEAST_FORECAST_MASS))
    overlap = np.log(np.maximum(overlap_masses, _LEAST_FORECAST_MASS))
    steps: Integers = np.floor((own - overlap / 2) / LOG_STEP).astype(np.int64)
    return steps


def _public_steps(
    lift: LiftCounts | None, suf: Integers, pre: Integers
) -> tuple[Integers, Integers, int, Integers]:
    """The steps of public counts: e of left and f of right grams, each from 0 on; the lowest e + f
    before that; and what e + f adds to the class of a pair that the public text lacks."""
    nothing = np.zeros(len(suf), dtype=np.int64)
    if lift is None:
        return nothing, nothing, 0, np.zeros(1, dtype=np.int64)
    own, before = lift.counts.astype(np.float64), lift.counts_before.astype(np.float64)
    e, f = _steps_of_pieces(own, before[suf]), _steps_of_pieces(own, before[pre])
    lowest = int(e.min(initial=0) + f.min(initial=0))
    e, f = e - e.min(initial=0), f - f.min(initial=0)
    sums = np.arange(int(e.max(initial=0) + f.max(initial=0)) + 1) + lowest
    return e, f, lowest, lift_index(sums, np.zeros(1, dtype=np.int64))


def valid_classes(
    below: Rung, masses: Floats, masses_before: Floats, lift: LiftCounts | None = None
) -> ValidClasses:
    """The valid grams of level k in classes, from the released grams of level k - 1, their masses,
    and the masses of level k - 2.

    For k = 2, `masses_before` is one number: the mass of all words.
    """
    words = below.level == 1
    nothing = np.zeros(len(below), dtype=np.int64)
    suf = nothing if words else below.keys & RIGHT_MASK
    pre = nothing if words else below.keys >> GRAM_NUMBER_BITS
    a = _steps_of_pieces(masses, masses_before[suf])
    b = _steps_of_pieces(masses, masses_before[pre])
    lowest = int(a.min(initial=0) + b.min(initial=0))
    a, b = a - a.min(initial=0), b - b.min(initial=0)
    e, f, lowest_expected, shifts = _public_steps(lift, suf, pre)

    wide, high = int(max(a.max(initial=0), b.max(initial=0))) + 1, len(shifts)
    ending, beginning = np.lexsort((e, a, suf)), np.lexsort((f, b, pre))
    end_key = ((suf * wide + a) * high + e)[ending]
    begin_key = ((pre * wide + b) * high + f)[beginning]
    end_keys, end_starts, end_counts = np.unique(end_key, return_index=True, return_counts=True)
    begin_keys, begin_starts, begin_counts = np.unique(
        begin_key, return_index=True, return_counts=True
    )
    # Each left gram makes pairs with all right grams of its overlap, which stand together.
    overlap = end_keys // (wide * high)
    first = np.searchsorted(begin_keys, overlap * wide * high)
    meets = np.searchsorted(begin_keys, (overlap + 1) * wide * high) - first
    one = np.repeat(np.arange(len(end_keys)), meets)
    begins_at = np.cumsum(meets) - meets
    other = np.arange(len(one)) - np.repeat(begins_at, meets) + first[one]
    lifts = 1 if lift is None else len(LIFTS)
    class_number = lifts * (end_keys[one] // high % wide + begin_keys[other] // high % wide)
    class_number = class_number + shifts[end_keys[one] % high + begin_keys[other] % high]

    keys, counts = (nothing[:0],) * 2 if lift is None else (lift.keys, lift.counts_of_keys)
    ends, begins = keys >> GRAM_NUMBER_BITS, keys & RIGHT_MASK
    sums, foretold = e[ends] + f[begins], lifts * (a[ends] + b[begins])
    moved = foretold + shifts[sums]
    listed = foretold + lift_index(sums + lowest_expected, counts)
    classes = int(max(class_number.max(initial=0), listed.max(initial=0))) + 1
    partitions = () if lift is None else _two_partitions(classes, lowest)
    order = np.argsort(class_number, kind="stable")
    sizes = (end_counts[one] * begin_counts[other])[order]
    cumulative = np.cumsum(sizes)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    at_end, at_begin = np.empty_like(ending), np.empty_like(beginning)
    at_end[ending], at_begin[beginning] = np.arange(len(ending)), np.arange(len(beginning))
    of_end = np.searchsorted(end_keys, ((suf * wide + a) * high + e)[ends])
    of_begin = np.searchsorted(begin_keys, ((pre * wide + b) * high + f)[begins])
    bundle = rank[begins_at[of_end] + of_begin - first[of_end]]
    within = (at_end[ends] - end_starts[of_end]) * begin_counts[of_begin]
    within += at_begin[begins] - begin_starts[of_begin]
    places = np.r_[0, cumulative][bundle] + within
    one, other, class_number = one[order], other[order], class_number[order]
    return ValidClasses(
        left=lifts * a,
        right=lifts * b,
        forecasts=np.exp(LOG_STEP * (np.arange(classes) // lifts + lowest + 1)),
        bundles=ValidGrams(
            ending, beginning, end_starts[one], begin_starts[other], begin_counts[other], cumulative
        ),
        ends=np.searchsorted(class_number, np.arange(classes), side="right"),
        public=PublicClasses(e, f, shifts, keys, listed, moved, places),
        partitions=partitions,
    )


def _two_partitions(classes: int, lowest_step: int) -> tuple[Partition, ...]:
    """Two partitions of the classes: by the forecast times the lift, and by the forecast alone. A
    class number encodes the forecast's step and the index of the lift."""
    steps, places = np.divmod(np.arange(classes), len(LIFTS))
    partitions = []
    for by_lift in (LIFTS, np.zeros_like(LIFTS)):
        foretold = steps + by_lift[places]
        least, most = int(foretold.min()), int(foretold.max())
        forecasts = np.exp(LOG_STEP * (np.arange(least, most + 1) + lowest_step + 1))
        partitions.append(Partition(foretold - least, forecasts))
    return tuple(partitions)
