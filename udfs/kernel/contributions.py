"""The kernel: what whole users add to a level's sums (their distinct keys, bounded and weighed).

Every engine calls it with whole users in rows of lists (`whole_users.py`). A user's contribution
depends on the user's own keys and name, on earlier releases and on the level's salt. It does not
depend on the other users of the block, nor on which attempt of a task runs.

A pair of key and user is packed into one integer, and sorting these integers makes pairs distinct:
NumPy's sort is vectorised and releases the interpreter's lock, so blocks are sorted in parallel.
Sorted pairs put the users of a key side by side, ready to be summed. Elements are selected by
`take` with indices, never by a mask: with a random mask, mispredicted branches cost as much as the
sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphh.privacy.forecast_rounds import round_2_weights
from dphh.privacy.reweighing import ONE_W
from dphh.privacy.set_union import weights
from dphh.udfs.text.hashes import Hashes, Integers, mix_bits, number_bits

#: The positions of a piece: processed at one time, so that arrays stay in the processor's cache.
PIECE_SIZE = 1 << 17
#: Bits of the hash that orders an over-full user's keys.
_PRIORITY_BITS = np.uint64(40)
#: How many of these bits hold w, where the keys of the largest w are kept: as many as ONE_W has.
_W_BITS = np.uint64(16)
#: The limit below which a hash is small is guessed from a sample of so many hashes, such that some
#: times as many small ones lie below it as are needed.
_SAMPLED_HASHES, _LIMIT_MARGIN = 1 << 11, 1.5


@dataclass(frozen=True, eq=False)
class HeldKeys:
    """Distinct pairs of key and user, in ascending order of key, then user."""

    #: For each pair, the key, and the index of its user in this block.
    keys: Integers
    owner: Integers
    #: For each user, how many keys the user holds (t), and the user hash: a hash of the user id.
    key_counts: Integers
    user_hashes: Integers


class WeightRule(Protocol):
    """A rule for the integer weights that users give to each of the keys they hold.

    A rule looks at one user at a time and keeps the user's L2 norm within what was priced. A rule
    with a method `list_sizes(key_counts)` also gives weights to negative keys, which count users by
    how many keys they hold: (key, weight) for each user who holds a key.

    A key of weight 0 is dropped: its sum does not change, and a level's noise and threshold use
    only sums. A rule with `keeps_zeros` keeps such keys in the output, because a later step asks
    which keys are held by any user.
    """

    def __call__(self, held: HeldKeys) -> Integers: ...


@dataclass(frozen=True, eq=False)
class EqualWeights:
    """The weighted Gaussian policy (Gopi et al. 2020): floor(2^b / sqrt(t)) for each of t keys.

    A user with more than `max_items` keys keeps those whose hash (of key, user and salt) is below
    the user's (max_items + 1)st smallest hash: `max_items` keys, or fewer where hashes are equal.
    """

    #: weights[t] is the weight for t keys; the last, at max_items, also for more than that.
    weights: Integers
    salt: int
    #: Hashes a key by its content (a word by its spelling), not by the number that a run gave it.
    hash_keys: Callable[[Integers], Hashes] = number_bits
    #: Whether keys of weight 0 are kept, because a later round needs all keys that any user holds.
    keeps_zeros: bool = False

    def __call__(self, held: HeldKeys) -> Integers:
        max_items = len(self.weights) - 1
        weight = self.weights.take(held.key_counts, mode="clip").take(held.owner)
        over_full = held.key_counts > max_items
        if over_full.any():
            over = np.flatnonzero(over_full.take(held.owner))
            owner = held.owner.take(over)
            priorities = priorities_of(held, over, self.salt, self.hash_keys)
            key_counts = held.key_counts * over_full
            weight[over] = self.weights[-1] * below_cut(owner, priorities, key_counts, max_items)
        return weight


def priorities_of(
    held: HeldKeys, over: Integers, salt: int, hash_keys: Callable[[Integers], Hashes]
) -> Hashes:
    """A hash for each of these pairs: an over-full user keeps the keys with the smallest ones."""
    users = mix_bits(number_bits(held.user_hashes), salt)
    priorities = mix_bits(hash_keys(held.keys.take(over)) ^ users.take(held.owner.take(over)))
    priorities >>= np.uint64(64) - _PRIORITY_BITS
    return priorities


@dataclass(frozen=True, eq=False)
class RelativeWeights:
    """floor(unit w / |w|_2) for each of a user's keys; w follows from its earlier noised weights.

    A user with more than `max_items` keys keeps those of the largest w; equal ones are ordered by
    hash. Every key that any user holds has a w: earlier rounds noised it, whatever weight it got.
    So given those noised weights, w does not depend on who else holds the key.
    """

    unit: int
    max_items: int
    salt: int
    #: w of each key, from 1 to ONE_W; 0 for a key that no user holds.
    w: Integers
    hash_keys: Callable[[Integers], Hashes] = number_bits
    keeps_zeros: bool = True

    def __call__(self, held: HeldKeys) -> Integers:
        w = self.w.take(held.keys)
        if not w.all():
            raise RuntimeError("dphh: a user holds an item that no user held a round before")
        over_full = held.key_counts > self.max_items
        if over_full.any():
            over = np.flatnonzero(over_full.take(held.owner))
            owner = held.owner.take(over)
            priorities = priorities_of(held, over, self.salt, self.hash_keys) >> _W_BITS
            priorities |= (ONE_W - w.take(over)).view(np.uint64) << (_PRIORITY_BITS - _W_BITS)
            key_counts = held.key_counts * over_full
            w[over] *= below_cut(owner, priorities, key_counts, self.max_items)
        return round_2_weights(self.unit, w, held.owner, len(held.key_counts))


def equal_weights(
    max_items: int,
    grid_bits: int,
    salt: int,
    hash_keys: Callable[[Integers], Hashes] = number_bits,
    keeps_zeros: bool = False,
) -> EqualWeights:
    """`EqualWeights` by a level's parameters."""
    return EqualWeights(_weights_by_count(grid_bits, max_items), salt, hash_keys, keeps_zeros)


@lru_cache(maxsize=64)
def _weights_by_count(grid_bits: int, max_items: int) -> Integers:
    return np.array([0, *weights(grid_bits, max_items)], dtype=np.int64)


def contributions(
    user_hashes: Integers, lengths: Integers, keys: Integers, weigh: WeightRule
) -> tuple[Integers, Integers]:
    """(key, weight): what these users add, summed by key within pieces of PIECE_SIZE positions.

    `keys` are the users' keys, one user after the other, and `lengths` says how many each has. A
    key is a number below 2^31, or a pair of such, left * 2^32 + right; -1 is no key. A key that a
    user has several times counts once.
    """
    parts = [
        part
        for held in _held_by_pieces(user_hashes, lengths, keys)
        for part in _sums_of_piece(held, weigh)
    ]
    nothing = np.empty(0, dtype=np.int64)
    found, weights = (np.concatenate([nothing, *(part[i] for part in parts)]) for i in range(2))
    return found, weights


def _held_by_pieces(user_hashes: Integers, lengths: Integers, keys: Integers) -> Iterator[HeldKeys]:
    """The distinct keys that these users hold, some whole users at a time."""
    for first, last, start, end in _pieces_of_users(lengths, keys):
        users = np.repeat(np.arange(last - first, dtype=np.uint32), lengths[first:last])
        held_keys, owner = distinct_pairs(keys[start:end], users)
        key_counts = np.bincount(owner, minlength=last - first)
        yield HeldKeys(held_keys, owner, key_counts, user_hashes[first:last])


def _sums_of_piece(held: HeldKeys, weigh: WeightRule) -> Iterator[tuple[Integers, Integers]]:
    yield sums_by_key(held.keys, weigh(held), getattr(weigh, "keeps_zeros", False))
    list_sizes = getattr(weigh, "list_sizes", None)
    if list_sizes is not None:
        sizes, weights = list_sizes(held.key_counts)
        order = np.argsort(sizes)
        yield sums_by_key(sizes[order], weights[order])


def distinct_pairs(first: Any, second: Any) -> tuple[Integers, Integers]:
    """Each pair of numbers once, in ascending order of the first, then the second.

    Pairs whose first number is -1 are dropped. The first may be a pair itself, left * 2^32 + right.
    A pair must fit into 64 bits; if it fits into 32, sorting takes half the time.
    """
    beside = int(second.max(initial=0)).bit_length()
    pairs, largest, for_right = _narrow_keys(first, 32 - beside)
    kind = pairs.dtype.type
    pairs <<= kind(beside)
    pairs |= second.astype(kind, copy=False)
    pairs.sort()
    pairs = pairs[: np.searchsorted(pairs, kind(largest + 1) << kind(beside))]  # -1 comes last
    pairs = pairs.take(first_occurrences(pairs))
    two = (pairs & kind((1 << beside) - 1)).astype(np.int64)
    one = (pairs >> kind(beside)).astype(np.int64)
    if for_right < 32:
        one = (one >> for_right << 32) | (one & ((1 << for_right) - 1))
    return one, two


def _narrow_keys(keys: Any, room: int) -> tuple[Any, int, int]:
    """The keys in 32 bits if they fit into `room` bits, else in 64; the largest key, which is below
    what -1 becomes; and how many bits the right half of a pair has now."""
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


def first_occurrences(ascending: Any) -> Integers:
    """The index of the first occurrence of each number."""
    new = np.empty(len(ascending), dtype=np.bool_)
    new[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def below_cut(
    owner: Integers, priorities: Hashes, key_counts: Integers, cap: int
) -> NDArray[np.bool_]:
    """Which keys of over-full users have a hash below their owner's (cap + 1)st smallest one.

    These are `cap` keys of each user, or fewer where hashes are equal.
    """
    in_order = (owner.view(np.uint64) << _PRIORITY_BITS) | priorities
    some, found = _smallest_hashes(owner, priorities, key_counts, cap)
    sought = np.sort(in_order.take(some))
    start = np.cumsum(found) - found
    cuts = sought.take(start + cap, mode="clip")
    below: NDArray[np.bool_] = in_order < cuts.take(owner)
    return below


def _smallest_hashes(
    owner: Integers, priorities: Hashes, key_counts: Integers, cap: int
) -> tuple[Integers, Integers]:
    """Indices of keys, among which are those of each user's cap + 1 smallest hashes; and how many
    of these indices each user has. Other keys need no sorting.

    A limit is guessed for each user from a sample of all hashes. For users who have too few hashes
    below it, all are taken, so a wrong guess costs time and changes no result.
    """
    sample = np.sort(priorities[:: len(priorities) // _SAMPLED_HASHES + 1])
    wanted = (cap + 1) * _LIMIT_MARGIN * len(sample) / np.maximum(key_counts, 1)
    all_of_them = np.uint64(1) << _PRIORITY_BITS
    limits = np.append(sample, all_of_them).take(wanted.astype(np.int64), mode="clip")
    for _ in range(2):
        some = np.flatnonzero(priorities < limits.take(owner))
        found = np.bincount(owner.take(some), minlength=len(key_counts))
        too_few = (found <= cap) & (key_counts > cap)
        if not too_few.any():
            break
        limits[too_few] = all_of_them
    return some, found


def _pieces_of_users(lengths: Integers, keys: Integers) -> Iterator[tuple[int, int, int, int]]:
    """Divide whole users into pieces of about PIECE_SIZE positions, with few enough users for a key
    and a user's index to fit one integer. Each contribution depends on one user alone and sums are
    integers, so the division does not change any sum."""
    ends = np.cumsum(lengths)
    first = before = 0
    while first < len(lengths):
        last = max(int(np.searchsorted(ends, before + PIECE_SIZE, side="right")), first + 1)
        bits = int(keys[before : ends[last - 1]].max(initial=0)).bit_length()
        last = min(last, first + (1 << min(63 - bits, 64 - int(_PRIORITY_BITS))))
        end = int(ends[last - 1])
        yield first, last, before, end
        first, before = last, end


def sums_by_key(
    keys: Integers, weight: Integers, keeps_zeros: bool = False
) -> tuple[Integers, Integers]:
    """Each of these ascending keys with its sum; weights of 0 are dropped unless `keeps_zeros`."""
    if not keeps_zeros:
        some = np.flatnonzero(weight != 0)
        keys, weight = keys.take(some), weight.take(some)
    first = first_occurrences(keys)
    return keys.take(first), np.add.reduceat(weight, first) if len(first) else weight
