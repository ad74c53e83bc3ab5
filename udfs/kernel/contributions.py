"""The kernel: what whole users add to a level's sums (their distinct keys, bounded and weighed).

Every engine calls it with whole users in rows of lists (`udfs/functions.py`). A user's contribution
depends on the user's own keys and name, on earlier releases and on the level's salt. It does not
depend on the other users of the block, nor on which attempt of a task runs.

Sorting pairs of key and user makes them distinct: NumPy's sort releases the interpreter's lock, so
blocks are sorted in parallel. Sorted pairs put the users of a key side by side, ready to be summed.
Elements are selected by `take` with indices, never by a mask: with a random mask, mispredicted
branches cost as much as the sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.arrays import (
    Hashes,
    Integers,
    all_in_first_row,
    lengths_of,
    lists_of,
    mix_bits,
    one_array,
    sums_of_runs,
    unmixed_hashes,
    values_of,
)
from dphh.udfs.kernel.positions import WordsWithIds, values_of_ids
from dphh.udfs.kernel.spilled_texts import slices_by_positions

#: About how many positions are processed at a time: they stay in the processor's cache.
PIECE_SIZE = 1 << 17
#: About how many positions are made distinct at a time, for the same reason.
DISTINCT_AT_ONCE = 1 << 16
#: 2^64 by the golden ratio spreads numbers over a hash table, by the higher half of the product.
_SPREADING, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
#: Bits of a priority, the number by which an over-full user's keys are ordered: the smallest stay.
_PRIORITY_BITS = np.uint64(40)
#: The integer for a relative weight w of 1.
ONE_W = 1 << 15
#: Where users keep the keys of largest w, this many of the bits are ONE_W - w, the others a hash.
_W_BITS = np.uint64(16)


@dataclass(frozen=True, eq=False)
class HeldKeys:
    """Distinct pairs of key and user, in ascending order of key, then user."""

    #: For each pair, the key, and the index of its user in this block.
    keys: Integers
    owner: Integers
    #: For each user, how many keys the user holds (t), and the user hash: a hash of the user id,
    #: for rules that choose among a user's keys.
    key_counts: Integers
    user_hashes: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))


#: A rule for the integer weights that users give to each of the keys they hold. It looks at one
#: user at a time, and keeps the user's L2 norm within what was priced.
WeightRule = Callable[[HeldKeys], Integers]


def dropped_pairs(
    held: HeldKeys,
    max_items: int,
    salt: int,
    hash_keys: Callable[[Integers], Hashes],
    w: Integers | None = None,
) -> Integers:
    """The indices of the pairs that do not count, as their users hold more than `max_items` keys.

    Such a user keeps the keys of the largest w, if w is given; equal ones by the smallest hash of
    key, user and salt. These are `max_items` keys, or fewer where hashes are equal.
    """
    over_full = held.key_counts > max_items
    if not over_full.any():
        return np.empty(0, dtype=np.int64)
    pairs = np.flatnonzero(over_full.take(held.owner))
    users = mix_bits(unmixed_hashes(held.user_hashes[over_full]), salt)
    owner = (np.cumsum(over_full) - 1).take(held.owner.take(pairs))
    priorities = mix_bits(hash_keys(held.keys.take(pairs)) ^ users.take(owner))
    priorities >>= np.uint64(64) - _PRIORITY_BITS
    if w is not None:
        priorities >>= _W_BITS
        priorities |= (ONE_W - w.take(pairs)).view(np.uint64) << (_PRIORITY_BITS - _W_BITS)
    kept = are_kept(owner, priorities, held.key_counts[over_full], max_items)
    return pairs.take(np.flatnonzero(~kept))


def contributions(
    user_hashes: Integers,
    lengths: Integers,
    keys: Integers,
    weigh: WeightRule,
    *,
    keeps_zeros: bool = False,
) -> tuple[Integers, Integers]:
    """(key, weight): what these users add, summed by key within pieces of PIECE_SIZE positions. A
    key of weight 0 is dropped, because a level's noise and threshold use sums alone; but not with
    `keeps_zeros`, where a later step asks which keys are held by any user.

    `keys` are the users' keys, one user after the other, and `lengths` says how many each has. A
    key is a number below 2^31, or a pair of such, left * 2^32 + right; -1 is no key. A key that a
    user has several times counts once.
    """
    nothing = np.empty(0, dtype=np.int64)
    sums = [(nothing, nothing)]
    for users, _, nameless in pieces_of_users(lengths, keys):
        held = replace(nameless, user_hashes=user_hashes[users])
        sums.append(sums_by_key(held.keys, weigh(held), keeps_zeros))
    found, added = (np.concatenate(columns) for columns in zip(*sums, strict=True))
    return found, added


def distinct_pairs(first: Any, second: Any) -> tuple[Integers, Integers]:
    """Each pair of numbers once, in ascending order of the first, then the second.

    Pairs whose first number is negative are dropped. The first may be a pair itself, left * 2^32 +
    right. Numbers are sorted by 16 bits at a time, the lowest first, which takes NumPy a third of
    the time of a sort by comparisons, and none where all are 0 or a user's index ascends already.
    """
    there = np.flatnonzero(first >= 0)
    first, second = first.take(there), second.take(there)
    in_order = (second[1:] >= second[:-1]).all()
    lowest, *higher = [*([] if in_order else _digits(second)), *_digits(first)] or [first]
    order = lowest.argsort(kind="stable")
    for digit in higher:
        order = order.take(digit.take(order).argsort(kind="stable"))
    first, second = first.take(order), second.take(order)
    new = np.ones(len(order), dtype=np.bool_)
    np.not_equal(first[1:], first[:-1], out=new[1:])
    new[1:] |= second[1:] != second[:-1]
    distinct = np.flatnonzero(new)
    return first.take(distinct).astype(np.int64), second.take(distinct).astype(np.int64)


def _digits(numbers: Any) -> list[Any]:
    """The digits of 16 bits of these numbers, the lowest first, but for those that are all 0."""
    bits = int(np.bitwise_or.reduce(numbers, initial=0))
    shifts = range(0, bits.bit_length(), 16)
    return [(numbers >> shift).astype(np.uint16) for shift in shifts if bits >> shift & 0xFFFF]


def distinct_of_users(lengths: Integers, ids: Any) -> tuple[Integers, Any]:
    """How many distinct ids each user has, and the ids, one user after the other."""
    counts, found = [lengths[:0]], [ids[:0]]
    ends = np.cumsum(lengths)
    for some in slices_by_positions(lengths, DISTINCT_AT_ONCE):
        held = ids[ends[some.start] - lengths[some.start] : ends[some.stop - 1]]
        distinct = _one_of_each(lengths[some], held)
        found.append(held.take(np.flatnonzero(distinct)))
        counts.append(sums_of_runs(lengths[some], distinct))
    return np.concatenate(counts), np.concatenate(found)


def _one_of_each(lengths: Integers, ids: Any) -> NDArray[np.bool_]:
    """Marks one position of each of a user's distinct ids.

    A hash table has two slots for each position of a user. Each id writes its position to a slot of
    its user, where one position stays. It is marked. Ids that differ from that one's have other
    hashes in the next turn.
    """
    table = np.empty(2 * len(ids), dtype=np.int64)
    marked = np.zeros(len(ids), dtype=np.bool_)
    first_slots = np.repeat(2 * (np.cumsum(lengths) - lengths), lengths)
    slot_counts = np.repeat(2 * lengths.astype(np.uint64), lengths)
    waiting, left, hashes = np.arange(len(ids)), ids, unmixed_hashes(ids)
    while len(waiting):
        hashes = hashes * _SPREADING
        slots = ((hashes >> _HALF) * slot_counts >> _HALF).view(np.int64) + first_slots
        table[slots] = waiting
        stayed = table.take(slots)
        marked[stayed] = True
        on = np.flatnonzero(ids.take(stayed) != left)
        waiting, left, hashes = waiting.take(on), left.take(on), hashes.take(on)
        first_slots, slot_counts = first_slots.take(on), slot_counts.take(on)
    return marked


def first_occurrences(ascending: Any) -> Integers:
    """The index of the first occurrence of each number."""
    new = np.empty(len(ascending), dtype=np.bool_)
    new[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def are_kept(
    owner: Integers, priorities: Hashes, key_counts: Integers, max_items: int
) -> NDArray[np.bool_]:
    """Whether each key's priority is below its owner's (max_items + 1)st smallest one, the cut.

    All owners hold more than `max_items` keys. Priorities are counted by their first bits, and only
    those with the first bits of their owner's cut are sorted.
    """
    by_priority = (owner.view(np.uint64) << _PRIORITY_BITS) | priorities
    first_bits = (len(owner) // len(key_counts)).bit_length()
    buckets = (by_priority >> (_PRIORITY_BITS - np.uint64(first_bits))).view(np.int64)
    counts = np.bincount(buckets)
    ends = np.cumsum(counts)
    # Where each owner's cut is in the order of all, in which bucket, and in the sorted ones.
    places = np.cumsum(key_counts) - key_counts + max_items
    of_cuts = np.searchsorted(ends, places, side="right")
    near = np.flatnonzero(buckets == of_cuts.take(owner))
    skipped = (ends - counts)[of_cuts] - np.cumsum(counts[of_cuts]) + counts[of_cuts]
    cuts = np.sort(by_priority.take(near)).take(places - skipped)
    kept: NDArray[np.bool_] = by_priority < cuts.take(owner)
    return kept


def pieces_of_users(lengths: Integers, keys: Integers) -> Iterator[tuple[slice, slice, HeldKeys]]:
    """Divides whole users into pieces of about PIECE_SIZE positions: for each piece, its users,
    their positions, and what they hold. A piece has so few users that a priority and a user's index
    fit into one integer. Each contribution depends on one user alone and sums are integers, so the
    division does not change any sum."""
    ends = np.cumsum(lengths)
    user = position = 0
    while user < len(lengths):
        stop = max(int(np.searchsorted(ends, position + PIECE_SIZE, side="right")), user + 1)
        stop = min(stop, user + (1 << 64 - int(_PRIORITY_BITS)))
        end = int(ends[stop - 1])
        indices = np.repeat(np.arange(stop - user, dtype=np.uint32), lengths[user:stop])
        held, owner = distinct_pairs(keys[position:end], indices)
        key_counts = np.bincount(owner, minlength=stop - user)
        yield slice(user, stop), slice(position, end), HeldKeys(held, owner, key_counts)
        user, position = stop, end


def sums_by_key(
    keys: Integers, weight: Integers, keeps_zeros: bool = False
) -> tuple[Integers, Integers]:
    """Each of these ascending keys with its sum; weights of 0 are dropped unless `keeps_zeros`."""
    if not keeps_zeros:
        some = np.flatnonzero(weight != 0)
        keys, weight = keys.take(some), weight.take(some)
    first = first_occurrences(keys)
    return keys.take(first), np.add.reduceat(weight, first) if len(first) else weight


def contributions_of_rows(
    user_hashes: Any, lengths: Any, keys: Any, weigh: WeightRule, *, keeps_zeros: bool = False
) -> pa.Array:
    """`contributions` of the users of all these rows of lists: all in the first row."""
    hashes, counts, held = (values_of(one_array(each)) for each in (user_hashes, lengths, keys))
    added = contributions(hashes, counts, held, weigh, keeps_zeros=keeps_zeros)
    return all_in_first_row(len(keys), *added)


def keys_of_counted_words(
    user_hashes: Any,
    lengths: Any,
    ids: Any,
    words: WordsWithIds,
    keys_by_id: NDArray[np.int64],
    first_unlisted_key: int,
    max_items: int,
    salt: int,
) -> pa.Array:
    """`dphh_keys_of_words`: the key of the word at each position, or -1 if the user does not count
    for the word.

    A user counts for all words of the public list, whose keys are their numbers in the list, and
    for at most `max_items` others (`dropped_pairs`), whose keys are `first_unlisted_key` or above.
    """
    lists = one_array(ids)
    hashes, held_ids = values_of(one_array(user_hashes)), values_of(lists)
    keys = values_of_ids(keys_by_id, held_ids)
    unlisted = np.flatnonzero(keys >= first_unlisted_key)
    users = np.repeat(np.arange(len(hashes)), values_of(one_array(lengths))).take(unlisted)
    # A user with few positions of unlisted words is not over-full.
    many = np.bincount(users, minlength=len(hashes)) > max_items
    some = np.flatnonzero(many.take(users))
    if len(some):
        unlisted, users = unlisted.take(some), users.take(some)
        unlisted_ids = held_ids.take(unlisted).astype(np.int64)
        distinct_ids, owner = distinct_pairs(unlisted_ids, users)
        held = HeldKeys(distinct_ids, owner, np.bincount(owner, minlength=len(hashes)), hashes)
        dropped = dropped_pairs(held, max_items, salt, words.hashes().take)
        pairs = (owner.take(dropped) << 32) | distinct_ids.take(dropped)
        keys[unlisted[np.isin((users << 32) | unlisted_ids, pairs)]] = -1
    return lists_of(lengths_of(lists), keys)
