"""What whole users hold, as rows: their distinct keys, found once for all rounds of a level.

A row has some whole users: their user hashes, and pairs of a key and its owner, the place of the
user in the row. Pairs of one key stand side by side, as sorting left them. A piece of users (see
`contributions.py`) is in the row of its first user, and the other rows of the piece are empty, so
a number of rows is a bounded number of pairs, and a row is small enough for the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.udfs.kernel.contributions import Held, held_by_pieces
from dphh.udfs.kernel.lists import lengths_of, lists_of, one_array, sums_of, values_of


def rows_of_held(user_hashes: Any, lengths: Any, keys: Any) -> pa.Array:
    """`dphh_held_words(user_hashes, lengths, ids)` and `dphh_held_grams(user_hashes, lengths,
    keys)`: the distinct keys of these whole users. -1 is no key. Users without a key are left out.
    """
    rows, positions = one_array(user_hashes), values_of(one_array(keys))
    users_until = np.cumsum(lengths_of(rows))
    users, pairs = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    nothing = np.empty(0, dtype=np.int64), positions[:0], np.empty(0, dtype=np.int32)
    parts = [nothing]
    for first, held in held_by_pieces(values_of(rows), values_of(one_array(lengths)), positions):
        row = int(np.searchsorted(users_until, first, side="right"))
        holders = np.flatnonzero(held.number)
        place = np.cumsum(held.number > 0, dtype=np.int32)
        place += np.int32(users[row] - 1)  # after the users of pieces that began in the same row
        keys_held = held.keys.astype(positions.dtype)
        parts.append((held.user_hashes.take(holders), keys_held, place.take(held.owner)))
        users[row] += len(holders)
        pairs[row] += len(keys_held)
    hashes, found, owners = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = [lists_of(users, hashes), lists_of(pairs, found), lists_of(pairs, owners)]
    return pa.StructArray.from_arrays(columns, ["user_hashes", "keys", "owners"])


def held_of_rows(user_hashes: Any, keys: Any, owners: Any) -> Iterator[Held]:
    """What the users of each row hold."""
    rows, pairs = one_array(user_hashes), one_array(keys)
    hashes, held, owner = values_of(rows), values_of(pairs), values_of(one_array(owners))
    users, ends = np.cumsum(lengths_of(rows)), np.cumsum(lengths_of(pairs))
    for row in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        some = slice(ends[row - 1] if row else 0, ends[row])
        of_row = hashes[users[row - 1] if row else 0 : users[row]]
        own = owner[some].astype(np.int64)
        number = np.bincount(own, minlength=len(of_row))
        yield Held(held[some].astype(np.int64), own, number, of_row)


def without(keys: Any, owners: Any, dropped: Callable[[Any], NDArray[np.bool_]]) -> pa.Array:
    """The pairs of key and owner whose key is not to be dropped. Users stay, also of no key."""
    pairs = one_array(keys)
    held, owner = values_of(pairs), values_of(one_array(owners))
    stays = ~dropped(held)
    some = np.flatnonzero(stays)
    lengths = sums_of(pairs, stays.astype(np.int64))
    columns = [lists_of(lengths, held.take(some)), lists_of(lengths, owner.take(some))]
    return pa.StructArray.from_arrays(columns, ["keys", "owners"])
