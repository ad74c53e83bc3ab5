"""What whole users add to a level's sums: their distinct keys, bounded and weighed. One kernel.

Every engine asks it, with blocks of whole users: rows of lists in DuckDB and Polars
(`whole_users.py`), blocks in Spark (`spark_ladder.py`). A user's part hangs on the user's own keys
and name, on what was released before and on the level's salt: not on who else is in the block, and
not on which attempt of a task asks.

Pairs of user and key are one integer each, and distinct by sorting it: NumPy's sort is vectorised,
and lets go of the interpreter's lock, so that blocks are sorted side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.privacy.set_union import weights
from dphh.udfs.hashes import Integers, Words, mixed, of_numbers

#: Places that are sorted at a time: they stay in the processor's cache.
PIECE = 1 << 18
#: Bits of the place by which an over-full user's keys are chosen.
_PLACE = 40
#: Of sums that are kept in memory: some tens of MB.
ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Held:
    """Distinct keys of whole users, one user after the other, each user's ascending."""

    #: For each pair, the number of its user in the block, and the key.
    owner: Integers
    keys: Integers
    #: For each user, how many keys (t), and a number that hangs on the user's name.
    number: Integers
    lots: Integers


class Weigh(Protocol):
    """How much users give to each of the keys that they hold, in integers; nothing where 0.

    Whatever the rule, it looks at one user at a time and keeps that user's L2 norm within what was
    priced.
    """

    def __call__(self, held: Held) -> Integers: ...


@dataclass(frozen=True, eq=False)
class Evenly:
    """The weighted Gaussian policy (Gopi et al. 2020): floor(2^b / sqrt(t)) for each of t keys.

    An over-full user keeps `max_items` keys: those whose place, a hash of key, user and salt, lies
    below the user's (max_items + 1)st smallest; fewer where places are equal.
    """

    #: The weight of who holds t keys; at the last place, max_items, of that many or more.
    weights: Integers
    salt: int
    #: A hash of each key, by what it is and not by what number it happens to have.
    hashed: Callable[[Integers], Words] = of_numbers

    def __call__(self, held: Held) -> Integers:
        max_items = len(self.weights) - 1
        weight = self.weights[np.minimum(held.number, max_items)][held.owner]
        over_full = held.number > max_items
        if over_full.any():
            over = np.flatnonzero(over_full[held.owner])
            owner = held.owner[over]
            users = mixed(of_numbers(held.lots), self.salt)
            places = mixed(self.hashed(held.keys[over]) ^ users[owner])
            keep = below_cut(owner, places >> np.uint64(64 - _PLACE), max_items)
            weight[over[~keep]] = 0
        return weight


def evenly(
    max_items: int, grid_bits: int, salt: int, hashed: Callable[[Integers], Words] = of_numbers
) -> Evenly:
    """By a level's parameters."""
    return Evenly(_weights(grid_bits, max_items), salt, hashed)


@lru_cache(maxsize=64)
def _weights(grid_bits: int, max_items: int) -> Integers:
    return np.array([0, *weights(grid_bits, max_items)], dtype=np.int64)


def contributions(
    lots: Integers, lengths: Integers, keys: Integers, weigh: Weigh
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """(user, key, weight), of some users at a time, in their order: what each adds to each key.

    `keys` are the users' one after the other, `lengths` of each; -1 is none, and what is held
    several times is held once.
    """
    for first, last, start, end in _pieces(lengths, keys):
        of_piece = keys[start:end]
        there = of_piece >= 0
        owner = np.repeat(np.arange(last - first), lengths[first:last])
        if not there.all():
            of_piece, owner = of_piece[there], owner[there]
        held = distinct(owner, of_piece, lots[first:last])
        weight = weigh(held)
        some = weight > 0
        yield held.owner[some] + first, held.keys[some], weight[some]


def distinct(owner: Integers, keys: Integers, lots: Integers) -> Held:
    """Each pair of user and key once. Users by number, and keys, must fit 64 bits together."""
    bits = np.uint64(int(keys.max(initial=0)).bit_length())
    pairs = (owner.view(np.uint64) << bits) | keys.astype(np.int64, copy=False).view(np.uint64)
    pairs.sort()
    new = np.empty(len(pairs), dtype=np.bool_)
    new[:1] = True
    np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
    pairs = pairs[new]
    owners = (pairs >> bits).view(np.int64)
    found = (pairs & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)
    return Held(owners, found, np.bincount(owners, minlength=len(lots)), lots)


def below_cut(owner: Integers, places: Words, cap: int) -> NDArray[np.bool_]:
    """Which of these over-full users' keys lie below their owner's (cap + 1)st smallest place.

    `owner` is ascending. At most `cap` of a user's keys do, fewer where places are equal.
    """
    start = np.flatnonzero(np.diff(owner, prepend=-1))
    number = np.repeat(np.arange(len(start)), np.diff(start, append=len(owner)))
    in_order = (number.astype(np.uint64) << np.uint64(_PLACE)) | places
    sought = in_order.copy()
    sought.sort()
    return in_order < sought[start + cap][number]


def _pieces(lengths: Integers, keys: Integers) -> Iterator[tuple[int, int, int, int]]:
    """Whole users, about PIECE places at a time, and few enough to be numbered beside a key."""
    ends = np.cumsum(lengths)
    bits = int(keys.max(initial=0)).bit_length()
    most = 1 << min(64 - bits, 64 - _PLACE, 62)
    first = 0
    while first < len(lengths):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + PIECE, side="right"))
        last = min(max(last, first + 1), first + most, len(lengths))
        yield first, last, before, int(ends[last - 1])
        first = last


def summed(keys: Integers, weight: Integers) -> tuple[Integers, Integers]:
    """What the users of a block add together: each key once, with its sum."""
    order = np.argsort(keys, kind="stable")
    keys, weight = keys[order], weight[order]
    start = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    return keys[start], np.add.reduceat(weight, start) if len(start) else weight[:0]


class Sums:
    """Contributions of block after block, added up as far as memory goes."""

    def __init__(self, rows: int = ROWS) -> None:
        self.rows = rows
        self._parts: list[pa.Table] = []
        self._count = 0

    def with_more(self, made: pa.RecordBatch) -> Iterator[pa.Table]:
        """Takes it in. What comes out is not kept: many keys, each seen too seldom to add up."""
        self._parts.append(pa.Table.from_batches([made]))
        self._count += made.num_rows
        if self._count > self.rows:
            added = self._added()
            if added.num_rows > self.rows // 2:
                yield added
            else:
                self._parts, self._count = [added], added.num_rows

    def left(self) -> Iterator[pa.Table]:
        if self._parts:
            yield self._added()

    def _added(self) -> pa.Table:
        parts, self._parts, self._count = self._parts, [], 0
        added = pa.concat_tables(parts).group_by("key").aggregate([("weight", "sum")])
        return added.select(["key", "weight_sum"]).rename_columns(["key", "weight"])
