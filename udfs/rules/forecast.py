"""The forecast ladder's rules: what a user spends and adds in the rounds of a level, in integers.

**Each user has a purse**: the squared norm that the user may still add, in units of the noise's
grid. One table of noise serves all rounds of a run, so a squared norm of 1 costs the same in each.
A round takes from a purse what it allots to the user, and the user's weights of the round have a
squared norm of at most that. A user who holds no valid gram of a level spends nothing on it.

Round 1: equal weights; a count of users by bins of how many grams they hold; one of users by their
purse and by how far they can climb; and, in runs that count what they find, one by bins of how many
finds they are expected to hold. Later rounds: weights by the cells of the grams, scaled
to what the user is allotted. Each user is looked at alone: what a user spends depends on the user's
own keys and purse, and on public numbers (`Spending`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.udfs.arrays import (
    Integers,
    all_in_first_row,
    lengths_of,
    lists_of,
    one_array,
    sums_of_runs,
    values_of,
)
from dphh.udfs.kernel.contributions import (
    HeldKeys,
    distinct_of_users,
    first_occurrences,
    pieces_of_users,
    sums_by_key,
)
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.rules.weights import floor_roots, weights_in_proportion

#: In round 1, this part of what a user spends, 1 / COUNTS_DIVISOR of the squared norm, goes to the
#: bin of the user's list size; as much to the cell of the user's purse; the rest to the grams.
COUNTS_DIVISOR = 100
#: Where finds are counted, so many of these parts of the rest go to the bin of expected finds.
PARTS_FOR_FINDS = 5
#: The least list size of each bin of list sizes.
LIST_SIZE_BIN_STARTS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**i for i in range(5, 15)])
#: About the mean list size in each bin.
MEAN_LIST_SIZES = LIST_SIZE_BIN_STARTS * np.where(LIST_SIZE_BIN_STARTS > 4, 1.15, 1.0)
#: Purses are counted by which part of a full purse they have left.
PURSE_PARTS = 8
#: Parts of a purse are multiples of 1 / ONE_PART.
ONE_PART = 1 << 15
#: Each weight g of a later round must be below this. Those of plans are below 3,500.
WEIGHTS_BELOW = 1 << 12


def norm_on_grid(sigma_in_users: float, sigma_grid: int) -> int:
    """A user's L2 norm in grid units, such that noise of sigma_grid units is noise of so many users
    or a little more."""
    return int(sigma_grid / sigma_in_users * (1 - 2**-40))


def round_1_weight(squared_norm: int, grams_held: int) -> int:
    """What a user of so many grams, who spends `squared_norm`, adds to each in round 1."""
    return isqrt(squared_norm * (COUNTS_DIVISOR - 2) // (COUNTS_DIVISOR * grams_held))


def count_weight(squared_norm: int) -> int:
    """What such a user adds in round 1 to the bin of the list size, and to the purse's cell."""
    return isqrt(squared_norm // COUNTS_DIVISOR)


def bins_of_list_sizes(list_sizes: Integers) -> Integers:
    return np.searchsorted(LIST_SIZE_BIN_STARTS, list_sizes, side="right") - 1


@dataclass(frozen=True)
class Reserve:
    """What users keep for being counted, in whole finds: a user keeps `least`, or more for what is
    expected to be found of what the user holds, up to `most`. A find costs `each` of a purse.

    In twentieths, of what a user keeps for each: `found`, of the finds so far; `undecided`, of the
    grams that the level has not decided; `longer`, of those that the user may hold on the levels
    above. They say how many are expected to be found, with some room.
    """

    each: int
    least: int
    most: int
    found: int = 23
    undecided: int = 10
    longer: int = 4

    def expected(self, finds: Integers, undecided: Integers, longer: Integers) -> Integers:
        """How many finds users will hold, with some room."""
        return (finds * self.found + undecided * self.undecided + longer * self.longer) // 20

    def of_users(self, expected: Integers) -> Integers:
        kept: Integers = self.each * np.clip(expected, self.least, self.most)
        return kept


@dataclass(frozen=True)
class Spending:
    """Public numbers that say what each user spends in the rounds of a level.

    `full`: what is left of a purse at the level's start, at most. `first`: what round 1 takes.
    `parts`: which part of a purse, in ONE_PARTs, a later round may take, by how many levels further
    up the user can climb; so their number is one more than the levels above. `saturation`: a user
    whose g have squares that sum to less spends that much less.
    """

    full: int
    first: int
    parts: tuple[int, ...] = (ONE_PART,)
    saturation: int = 0
    #: The level. In a late round, `late`, a user can climb to the highest level on which the user
    #: held a valid gram.
    level: int = 1
    late: bool = False
    #: What users keep; None: nothing.
    reserve: Reserve | None = None
    #: What they keep from round 2 on, if round 1 has changed it.
    later_reserve: Reserve | None = None

    def expected(self, finds: Integers, undecided: Integers, longer: Integers) -> Integers:
        """How many finds users will hold; 0 where finds are not counted."""
        if self.reserve is None:
            return np.zeros_like(finds)
        return self.reserve.expected(finds, undecided, longer)

    def to_spend(self, purses: Integers, expected: Integers, *, later: bool = False) -> Integers:
        """What is left of purses beside the reserve."""
        reserve = self.later_reserve or self.reserve if later else self.reserve
        if reserve is None:
            return purses
        free: Integers = np.maximum(purses - reserve.of_users(expected), 0)
        return free

    def of_round_1(self, purses: Integers, holds: Any) -> Integers:
        return np.where(holds, np.minimum(self.first, purses), 0)

    def of_later_round(self, purses: Integers, climbs: Integers, squares: Integers) -> Integers:
        """What users spend whose g have these sums of squares. 0 where no g is above 0."""
        allotted = purses * np.array(self.parts, dtype=np.int64)[climbs] // ONE_PART
        if not self.saturation:
            return np.where(squares > 0, allotted, 0)
        part = np.minimum(squares, self.saturation)
        return allotted * part // self.saturation

    def bins_of_users(
        self,
        spent: Integers,
        purses: Integers,
        sizes: Integers,
        climbs: Integers,
        expected: Integers,
    ) -> list[tuple[Integers, Integers]]:
        """How users are counted in round 1: for each kind of bins, the squared norm that each user
        spends on it, and the user's bin."""
        lists, cells, *_ = (bins for _, bins in self.kinds_of_bins)
        bins_by_kind = (
            bins_of_list_sizes(sizes),
            lists + self.cells_of_purses(purses, climbs),
            lists + cells + bins_of_list_sizes(np.maximum(expected, 1)),
        )
        kinds = zip(self.kinds_of_bins, bins_by_kind, strict=False)
        return [(spent * part // COUNTS_DIVISOR, bins) for (part, _), bins in kinds]

    @property
    def kinds_of_bins(self) -> tuple[tuple[int, int], ...]:
        """The kinds of bins of users in round 1: by list size, by purse and, where finds are
        counted, by expected finds. For each, how many hundredths of what a user spends go to it,
        and how many bins it has."""
        lists, cells = len(LIST_SIZE_BIN_STARTS), PURSE_PARTS * len(self.parts)
        of_finds = () if self.reserve is None else ((PARTS_FOR_FINDS, lists),)
        return (1, lists), (1, cells), *of_finds

    @property
    def parts_for_grams(self) -> int:
        """How many hundredths of what a user spends in round 1 go to the grams."""
        return COUNTS_DIVISOR - sum(part for part, _ in self.kinds_of_bins)

    def cells_of_purses(self, purses: Integers, climbs: Integers) -> Integers:
        """A purse's cell: PURSE_PARTS for each number of levels that the user can climb."""
        part = np.minimum(purses * PURSE_PARTS // max(self.full, 1), PURSE_PARTS - 1)
        return climbs * PURSE_PARTS + part


def levels_to_climb(lengths: Integers, keys: Integers, most: int) -> tuple[Integers, Integers]:
    """How many levels further up each user can climb, `most` at most; and how many grams of these
    levels the user may hold, repeated ones too. A run of r neighbouring valid grams may be one gram
    of a level r - 1 further up."""
    there = keys >= 0
    so_far = np.cumsum(there)
    runs: Any = so_far - np.maximum.accumulate(np.where(there, 0, so_far))
    further = np.clip(runs - 1, 0, most)
    climbs, longer = np.zeros((2, len(lengths)), dtype=np.int64)
    some = np.flatnonzero(lengths > 0)  # every text ends with -1, so no run spans two users
    if len(some):
        starts = (np.cumsum(lengths) - lengths)[some]
        climbs[some] = np.maximum.reduceat(further, starts)
        longer[some] = np.add.reduceat(further, starts)
    return climbs, longer


@dataclass(frozen=True, eq=False)
class _Purses:
    """The column `purse`, with a number for each user of all rows: what is left, the highest level
    above 1 on which the user held a valid gram, and how many finds the user holds."""

    rest: Integers
    tops: Integers
    finds: Integers
    #: How many users each row has.
    users_of_rows: Integers

    @classmethod
    def of_column(cls, column: Any) -> _Purses:
        lists = one_array(column).flatten()
        rest, tops, finds = (values_of(each).astype(np.int64) for each in lists)
        return cls(rest, tops, finds, lengths_of(lists[0]))

    @classmethod
    def beside(cls, column: Any, lengths: Any) -> _Purses:
        """Each row must have as many purses as users: else a user would spend a neighbour's."""
        purses = cls.of_column(column)
        if not np.array_equal(lengths_of(lengths), purses.users_of_rows):
            raise RuntimeError("a defect, please report: a row has the purses of other users")
        return purses

    def of(self, users: slice) -> _Purses:
        return replace(self, rest=self.rest[users], tops=self.tops[users], finds=self.finds[users])

    def as_column(self) -> pa.Array:
        small = (of.astype(np.int32) for of in (self.tops, self.finds))
        lists = [lists_of(self.users_of_rows, of) for of in (self.rest, *small)]
        return pa.StructArray.from_arrays(lists, ["rest", "tops", "finds"])


def _spent_in_round_1(
    spending: Spending, purses: _Purses, held: HeldKeys, longer: Integers
) -> tuple[Integers, Integers, Integers]:
    """What users of these purses spend in round 1; what they could; and how many finds they are
    expected to hold."""
    expected = spending.expected(purses.finds, held.key_counts, longer)
    free = spending.to_spend(purses.rest, expected)
    return spending.of_round_1(free, held.key_counts > 0), free, expected


def round_1_contributions(lengths: Any, keys: Any, purse: Any, spending: Spending) -> pa.Array:
    """`dphh_round_1_contributions(lengths, keys, purse, spending)`: what the users of all
    these rows add in round 1: to their valid grams; to the key -1 - bin of their list size; and to
    the keys below those, of the cells of their purses.

    Grams of weight 0 stay in the output. Round 2 gives each valid gram the weight of its cell,
    which depends on its noised weight, so every gram that any user holds must be noised here,
    whatever its weight and whatever the purses. If a gram of weight 0 were left out, a new user who
    gives it some weight would change what all its other holders give in round 2.
    """
    rows = one_array(lengths)
    counts, held_keys = values_of(rows), values_of(one_array(keys))
    all_purses = _Purses.beside(purse, rows)
    sums = []
    for users, positions, held in pieces_of_users(counts, held_keys):
        sizes, purses = held.key_counts, all_purses.of(users)
        climbs, longer = levels_to_climb(
            counts[users], held_keys[positions], len(spending.parts) - 1
        )
        spent, free, expected = _spent_in_round_1(spending, purses, held, longer)
        of_grams = spent * spending.parts_for_grams
        each = floor_roots(of_grams // (COUNTS_DIVISOR * np.maximum(sizes, 1)))
        sums.append(sums_by_key(held.keys, each.take(held.owner), keeps_zeros=True))
        counting = np.flatnonzero(sizes > 0)  # a user without a valid gram is counted nowhere
        for square, bins in spending.bins_of_users(spent, free, sizes, climbs, expected):
            keys_of_bins, weights = -1 - bins[counting], floor_roots(square)[counting]
            order = np.argsort(keys_of_bins, kind="stable")
            sums.append(sums_by_key(keys_of_bins[order], weights[order]))
    return all_in_first_row(len(rows), *_concatenated(sums))


def later_round_contributions(
    lengths: Any,
    keys: Any,
    purse: Any,
    g_by_gram: tuple[KeyIndex, Integers],
    spending: Spending,
) -> pa.Array:
    """`dphh_later_round_contributions(lengths, keys, purse, g, spending)`: what the users of all
    these rows add in round 2 or in a late round; and their purses after it (and after round 1,
    which a late round does not have).

    `g_by_gram` has an index of all grams that any user holds, as round 1 noised them, and the g of
    each, so that given earlier outputs g does not depend on who else holds a gram. Grams of weight
    0 may be dropped here, because the round adds noise to all of these grams.
    """
    grams, g_of_grams = g_by_gram
    # Squares of larger weights would overflow, with a million grams from 2^23 on.
    if g_of_grams.max(initial=0) >= WEIGHTS_BELOW:
        raise ValueError(f"no plan has weights of {WEIGHTS_BELOW:,} or more")
    rows = one_array(lengths)
    counts, held_keys = values_of(rows), values_of(one_array(keys))
    all_purses = _Purses.beside(purse, rows)
    sums, after, highest = [], all_purses.rest.copy(), all_purses.tops.copy()
    for users, positions, held in pieces_of_users(counts, held_keys):
        new = first_occurrences(held.keys)  # the pairs of a gram stand side by side
        places = grams.indices(held.keys.take(new))
        if places.min(initial=0) < 0:
            raise RuntimeError("a defect, please report: a round has a gram that round 1 did not")
        g = np.repeat(g_of_grams.take(places), np.diff(new, append=len(held.keys)))
        holds, purses = held.key_counts > 0, all_purses.of(users)
        highest[users] = np.where(holds, np.maximum(purses.tops, spending.level), purses.tops)
        left, undecided = purses.rest, np.bincount(held.owner[g > 0], minlength=len(holds))
        if spending.late:
            climbs = np.maximum(purses.tops - spending.level, 0)
            longer = np.zeros_like(climbs)
        else:
            most = len(spending.parts) - 1
            climbs, longer = levels_to_climb(counts[users], held_keys[positions], most)
            left = left - _spent_in_round_1(spending, purses, held, longer)[0]
        expected = spending.expected(purses.finds, undecided, longer)
        free = spending.to_spend(left, expected, later=True)
        squares = np.bincount(held.owner, g * g, len(holds)).astype(np.int64)
        spent = spending.of_later_round(free, climbs, squares)
        weights = weights_in_proportion(floor_roots(spent), g, held.owner, len(holds))
        sums.append(sums_by_key(held.keys, weights))
        after[users] = left - spent
    return _contributions_and_purse(sums, replace(all_purses, rest=after, tops=highest))


def purse_counts(purse: Any, spending: Spending) -> pa.Array:
    """`dphh_purse_counts(purse, spending)`: every user who held a valid gram of any level spends
    a little on being counted, in the cell of the purse and of the levels from 2 to the top."""
    purses = _Purses.of_column(purse)
    nothing = np.zeros_like(purses.rest)
    free = spending.to_spend(purses.rest, spending.expected(purses.finds, nothing, nothing))
    spent = spending.of_round_1(free, purses.tops > 0)
    counting = np.flatnonzero(purses.tops > 0)
    cells = -1 - spending.cells_of_purses(free, np.maximum(purses.tops - 2, 0))[counting]
    order = np.argsort(cells, kind="stable")
    added = sums_by_key(cells[order], floor_roots(spent)[counting][order])
    return _contributions_and_purse([added], replace(purses, rest=purses.rest - spent))


def caps_of_purses(purse: Any, scale: float) -> pa.Array:
    """`dphh_caps(purse, scale)`: what is left of each purse, on the grid of the counts: rounded
    down, with more than the error of the floats."""
    purses = _Purses.of_column(purse)
    caps = np.floor(purses.rest * (scale * (1 - 2**-40))).astype(np.int64)
    return lists_of(purses.users_of_rows, caps)


def finds_of_users(lengths: Any, grams: Any, purse: Any) -> pa.Array:
    """`dphh_finds(lengths, grams, purse)`: adds to each user's finds how many released grams of
    this level the user holds. `grams` are their numbers at the user's positions, or below 0."""
    rows = one_array(lengths)
    counts, purses = values_of(rows), _Purses.beside(purse, rows)
    numbers = values_of(one_array(grams))
    there = numbers >= 0
    held, _ = distinct_of_users(sums_of_runs(counts, there), numbers.take(np.flatnonzero(there)))
    return replace(purses, finds=purses.finds + held).as_column()


def _contributions_and_purse(sums: list[tuple[Integers, Integers]], after: _Purses) -> pa.Array:
    contributions = all_in_first_row(len(after.users_of_rows), *_concatenated(sums))
    return pa.StructArray.from_arrays(
        [contributions, after.as_column()], ["contributions", "purse"]
    )


def full_purses(user_hashes: Any, purse: int) -> pa.Array:
    """`dphh_full_purses(user_hashes, purse)`: the purses of a row's users before any round."""
    users = lengths_of(one_array(user_hashes))
    full, nothing = (np.full(int(users.sum()), number) for number in (purse, 0))
    return _Purses(full, nothing, nothing, users).as_column()


def _concatenated(sums: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    nothing = np.empty(0, dtype=np.int64)
    found, added = zip((nothing, nothing), *sums, strict=True)
    return np.concatenate(found), np.concatenate(added)
