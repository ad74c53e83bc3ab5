"""Groups valid grams into classes by the weight that the level below forecasts for them.

Every released gram of the level below has a mass, about the sum of its holders' plain weights. For
a pair (l, r) that overlaps in o, independence would give the mass mass[l] mass[r] / mass[o]. In
steps of STEP nats its logarithm is a_l + b_r, with

    a = floor((ln mass - ln mass[suf] / 2) / STEP),  b = floor((ln mass - ln mass[pre] / 2) / STEP),

where suf and pre are the gram without its first and without its last token. For a word, both are
the empty gram, whose mass is that of all words. The class is the sum a_l + b_r, and the forecast is
the middle of the class. Everything here depends on releases only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphh.ladder.rungs import PAIR, Integers, Rung

Floats = NDArray[np.float64]
STEP = 0.5
_RIGHT = np.int64(2**PAIR - 1)
_LEAST_MASS = 1e-3


@dataclass(frozen=True, eq=False)
class ValidClasses:
    """V_k (pruning "both") by class, counted and indexed without listing it.

    A block is an overlap o, a step a of the grams that end in o and a step b of those that begin
    with o: all its pairs belong to one class.
    """

    #: Class of a pair: left[l] + right[r].
    left: Integers
    right: Integers
    #: Forecast mass of each class.
    forecasts: Floats
    #: Grams ordered by (suf, a), and by (pre, b).
    ending: Integers
    beginning: Integers
    #: Blocks ordered by class: where both sides start in these orders, and the right side's size.
    starts_ending: Integers
    starts_beginning: Integers
    begins: Integers
    #: Valid grams of all blocks up to and including each; the blocks of class c end at `ends[c]`.
    cumulative: Integers
    ends: Integers

    @property
    def sizes(self) -> Integers:
        """How many valid grams each class has."""
        sizes: Integers = np.diff(np.r_[0, self.cumulative][self.ends], prepend=0)
        return sizes

    def __len__(self) -> int:
        return int(self.cumulative[-1]) if len(self.cumulative) else 0

    def of(self, keys: Integers) -> Integers:
        group: Integers = self.left[keys >> PAIR] + self.right[keys & _RIGHT]
        return group

    def keys(self, group: int, indices: Integers) -> Integers:
        """The keys of the valid grams of a class at these indices, from 0 to size - 1."""
        first = self.ends[group - 1] if group else 0
        indices = indices + (self.cumulative[first - 1] if first else 0)
        block = np.searchsorted(self.cumulative, indices, side="right")
        before = np.where(block > 0, self.cumulative[block - 1], 0)
        within = indices - before
        left = self.ending[self.starts_ending[block] + within // self.begins[block]]
        right = self.beginning[self.starts_beginning[block] + within % self.begins[block]]
        return (left << PAIR) | right


def valid_classes(below: Rung, masses: Floats, masses_before: Floats) -> ValidClasses:
    """The classes of V_k, from the released grams of level k - 1 and their masses (`masses`), and
    the masses of level k - 2. For k = 2, `masses_before` is one number: the mass of all words.
    """
    words = below.level == 1
    nothing = np.zeros(len(below), dtype=np.int64)
    suf = nothing if words else below.keys & _RIGHT
    pre = nothing if words else below.keys >> PAIR
    own = np.log(np.maximum(masses, _LEAST_MASS))
    shared = np.log(np.maximum(masses_before, _LEAST_MASS)) / 2
    a = np.floor((own - shared[suf]) / STEP).astype(np.int64)
    b = np.floor((own - shared[pre]) / STEP).astype(np.int64)
    lowest = a.min(initial=0) + b.min(initial=0) if len(below) else 0
    a, b = a - a.min(initial=0), b - b.min(initial=0)
    classes = int(a.max(initial=0) + b.max(initial=0)) + 1

    ending, beginning = np.lexsort((a, suf)), np.lexsort((b, pre))
    end_key = suf[ending] * classes + a[ending]
    begin_key = pre[beginning] * classes + b[beginning]
    end_groups, end_starts, end_counts = np.unique(end_key, return_index=True, return_counts=True)
    begin_groups, begin_starts, begin_counts = np.unique(
        begin_key, return_index=True, return_counts=True
    )
    # Pair every group of ends with the groups of begins of the same overlap, which are contiguous.
    overlap = end_groups // classes
    first = np.searchsorted(begin_groups, overlap * classes)
    meets = np.searchsorted(begin_groups, (overlap + 1) * classes) - first
    one = np.repeat(np.arange(len(end_groups)), meets)
    other = np.arange(len(one)) - np.repeat(np.cumsum(meets) - meets, meets) + first[one]
    group = end_groups[one] % classes + begin_groups[other] % classes
    order = np.argsort(group, kind="stable")
    one, other, group = one[order], other[order], group[order]
    return ValidClasses(
        left=a,
        right=b,
        forecasts=np.exp(STEP * (np.arange(classes) + lowest + 1)),
        ending=ending,
        beginning=beginning,
        starts_ending=end_starts[one],
        starts_beginning=begin_starts[other],
        begins=begin_counts[other],
        cumulative=np.cumsum(end_counts[one] * begin_counts[other]),
        ends=np.searchsorted(group, np.arange(classes), side="right"),
    )
