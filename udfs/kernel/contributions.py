"""What whole users add to a level's sums: their distinct keys, bounded and weighed. One kernel.

Every engine asks it, with blocks of whole users: rows of lists in DuckDB and Polars
(`whole_users.py`), blocks in Spark (`spark_ladder.py`). A user's part hangs on the user's own keys
and name, on what was released before and on the level's salt: not on who else is in the block, and
not on which attempt of a task asks.

Pairs of key and user are one integer each, and distinct by sorting it: NumPy's sort is vectorised,
and lets go of the interpreter's lock, so that blocks are sorted side by side. In this order a key's
users stand together, so what they add to it is summed as they stand. Numbers of places are taken
by `take`, and never by a mask: where a mask is as good as random, each turn that the processor
guesses wrong costs as much as sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.privacy.following import WHOLE
from dphh.privacy.forecast_rounds import shared_out
from dphh.privacy.set_union import weights
from dphh.udfs.text.hashes import Integers, Words, mixed, of_numbers

#: Places that are looked at together: what is made of them stays in the processor's cache, and in
#: memory that the process has.
PIECE = 1 << 16
#: Bits of the place by which an over-full user's keys are chosen.
_PLACE = 40
#: Of these, bits of the weight, where the largest are chosen: as many as WHOLE has.
_WEIGHT = 16
#: Of sums that are kept in memory: some tens of MB.
ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Held:
    """Distinct pairs of key and user, ascending by key and then by user."""

    #: For each pair the key, and the number of its user among those here.
    keys: Integers
    owner: Integers
    #: For each user, how many keys (t), and a number that hangs on the user's name.
    number: Integers
    lots: Integers


class Weigh(Protocol):
    """How much users give to each of the keys that they hold, in integers.

    Whatever the rule, it looks at one user at a time and keeps that user's L2 norm within what was
    priced. A rule that has `list_sizes(number)` has users give to keys below 0 as well, by how many
    keys they hold: (key, weight) for each who holds something.

    A key to which a user gives 0 leaves no trace: its sum is what it was, and noise and threshold
    of a level ask for sums alone. A rule whose `keeps_zeros` is true names such keys all the same,
    since a later step asks which keys somebody holds.
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
    #: Whether later rounds ask which keys somebody holds.
    keeps_zeros: bool = False

    def __call__(self, held: Held) -> Integers:
        max_items = len(self.weights) - 1
        weight = self.weights.take(held.number, mode="clip").take(held.owner)
        over_full = held.number > max_items
        if over_full.any():
            over = np.flatnonzero(over_full.take(held.owner))
            owner = held.owner.take(over)
            places = places_of(held, over, self.salt, self.hashed)
            number = held.number * over_full
            weight[over] = self.weights[-1] * below_cut(owner, places, number, max_items)
        return weight


def places_of(held: Held, over: Integers, salt: int, hashed: Callable[[Integers], Words]) -> Words:
    """Where these pairs stand in their user's own order, in _PLACE bits."""
    users = mixed(of_numbers(held.lots), salt)
    places = mixed(hashed(held.keys.take(over)) ^ users.take(held.owner.take(over)))
    places >>= np.uint64(64 - _PLACE)
    return places


@dataclass(frozen=True, eq=False)
class Followed:
    """floor(unit w / |w|_2) to each of t keys, w being what earlier rounds' noise made of each.

    An over-full user keeps `max_items` keys: those of the largest w, and among equal ones by place.
    Every key that somebody holds has its w: it had its noise in every earlier round, whoever held
    it and whether or not anybody gave it something. So w is never a matter of who else holds a key.
    """

    unit: int
    max_items: int
    salt: int
    #: w of each key, from 1 to WHOLE, and 0 of what nobody held.
    w: Integers
    hashed: Callable[[Integers], Words] = of_numbers
    keeps_zeros: bool = True

    def __call__(self, held: Held) -> Integers:
        w = self.w.take(held.keys)
        if not w.all():
            raise RuntimeError("dphh: an item that a round reads was not there in the one before")
        over_full = held.number > self.max_items
        if over_full.any():
            over = np.flatnonzero(over_full.take(held.owner))
            owner = held.owner.take(over)
            places = places_of(held, over, self.salt, self.hashed) >> np.uint64(_WEIGHT)
            places |= (WHOLE - w.take(over)).view(np.uint64) << np.uint64(_PLACE - _WEIGHT)
            number = held.number * over_full
            w[over] *= below_cut(owner, places, number, self.max_items)
        return shared_out(self.unit, w, held.owner, len(held.number))


def evenly(
    max_items: int,
    grid_bits: int,
    salt: int,
    hashed: Callable[[Integers], Words] = of_numbers,
    keeps_zeros: bool = False,
) -> Evenly:
    """By a level's parameters."""
    return Evenly(_weights(grid_bits, max_items), salt, hashed, keeps_zeros)


@lru_cache(maxsize=64)
def _weights(grid_bits: int, max_items: int) -> Integers:
    return np.array([0, *weights(grid_bits, max_items)], dtype=np.int64)


def contributions(
    lots: Integers, lengths: Integers, keys: Integers, weigh: Weigh
) -> tuple[Integers, Integers]:
    """(key, weight): what these users add together; a key stands once for every PIECE or so.

    `keys` are the users' one after the other, `lengths` of each: numbers below 2^31, or pairs of
    such, left * 2^32 + right. -1 is none, and what is held several times is held once.
    """
    parts = [
        part
        for first, last, start, end in _pieces(lengths, keys)
        for part in _of_piece(lots[first:last], lengths[first:last], keys[start:end], weigh)
    ]
    nothing = np.empty(0, dtype=np.int64)
    found, weights = (np.concatenate([nothing, *(part[i] for part in parts)]) for i in range(2))
    return found, weights


def _of_piece(
    lots: Integers, lengths: Integers, keys: Integers, weigh: Weigh
) -> Iterator[tuple[Integers, Integers]]:
    users = np.repeat(np.arange(len(lots), dtype=np.uint32), lengths)
    held_keys, owner = distinct(keys, users)
    held = Held(held_keys, owner, np.bincount(owner, minlength=len(lots)), lots)
    yield summed(held.keys, weigh(held), getattr(weigh, "keeps_zeros", False))
    list_sizes = getattr(weigh, "list_sizes", None)
    if list_sizes is not None:
        sizes, weights = list_sizes(held.number)
        order = np.argsort(sizes)
        yield summed(sizes[order], weights[order])


def distinct(first: Any, second: Any) -> tuple[Integers, Integers]:
    """Each pair of numbers once, ascending by the first and then by the second.

    A first number of -1 is none. It may be a pair itself, left * 2^32 + right. All together must
    fit 64 bits; in 32, sorting takes half.
    """
    beside = int(second.max(initial=0)).bit_length()
    pairs, largest, for_right = _narrow(first, 32 - beside)
    kind = pairs.dtype.type
    pairs <<= kind(beside)
    pairs |= second.astype(kind, copy=False)
    pairs.sort()
    pairs = pairs[: np.searchsorted(pairs, kind(largest + 1) << kind(beside))]  # none comes last
    pairs = pairs.take(starts(pairs))
    two = (pairs & kind((1 << beside) - 1)).astype(np.int64)
    one = (pairs >> kind(beside)).astype(np.int64)
    if for_right < 32:
        one = (one >> for_right << 32) | (one & ((1 << for_right) - 1))
    return one, two


def _narrow(keys: Any, room: int) -> tuple[Any, int, int]:
    """The same numbers in 32 bits if they take no more than `room`, or else in 64; the largest
    of them, -1 being larger; and how many bits the right one of a pair has now."""
    largest = int(keys.max(initial=0))
    if largest + 1 < 2**room:
        return keys.astype(np.uint32), largest, 32
    if largest >> 32:
        halves = keys.view(np.int32)
        left, right = halves[1::2], halves[::2]
        for_right = int(right.max()).bit_length()
        squeezed = (largest >> 32 << for_right) + (1 << for_right)
        if squeezed < 2**room:
            pairs = left.view(np.uint32) << np.uint32(for_right)
            pairs |= right.view(np.uint32)
            return pairs, squeezed - 1, for_right
    return keys.astype(np.uint64), largest, 32


def starts(ascending: Any) -> Integers:
    """Where each number stands first."""
    new = np.empty(len(ascending), dtype=np.bool_)
    new[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def below_cut(owner: Integers, places: Words, number: Integers, cap: int) -> NDArray[np.bool_]:
    """Which of these over-full users' keys lie below their owner's (cap + 1)st smallest place.

    At most `cap` of a user's keys do, fewer where places are equal.
    """
    in_order = (owner.view(np.uint64) << np.uint64(_PLACE)) | places
    sought = np.sort(in_order)
    start = np.cumsum(number) - number
    cuts = sought.take(start + cap, mode="clip")
    below: NDArray[np.bool_] = in_order < cuts.take(owner)
    return below


def _pieces(lengths: Integers, keys: Integers) -> Iterator[tuple[int, int, int, int]]:
    """Whole users, about PIECE places at a time, and few enough to be numbered beside a key. Each
    user's part is made of that user alone and sums are integers: how users are cut changes none."""
    ends = np.cumsum(lengths)
    first = before = 0
    while first < len(lengths):
        last = max(int(np.searchsorted(ends, before + PIECE, side="right")), first + 1)
        bits = int(keys[before : ends[last - 1]].max(initial=0)).bit_length()
        last = min(last, first + (1 << min(63 - bits, 64 - _PLACE)))
        end = int(ends[last - 1])
        yield first, last, before, end
        first, before = last, end


def summed(
    keys: Integers, weight: Integers, keeps_zeros: bool = False
) -> tuple[Integers, Integers]:
    """Of ascending keys each once, with its sum; without those of weight 0 unless they are kept."""
    if not keeps_zeros:
        some = np.flatnonzero(weight != 0)
        keys, weight = keys.take(some), weight.take(some)
    first = starts(keys)
    return keys.take(first), np.add.reduceat(weight, first) if len(first) else weight


class Sums:
    """Contributions of block after block, added up as far as memory goes: integers, so in whatever
    parts and order. Keys of sum 0 stay where a rule names them."""

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
