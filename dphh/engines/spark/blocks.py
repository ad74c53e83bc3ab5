"""Blocks of whole users on Spark: each task gathers the users of its part of the rows; and private
values are brought to the blocks that have their keys.

To group rows by user would shuffle every row at every level. So the positions of many users are
stored as one row, a block, which is never divided: users are bounded within their block, and only
the sums of blocks are shuffled. A block has its own list of words, in which its ids are indices.
What a task makes of its part depends on that part alone, so a task that runs again makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.reader.views import tokens_by_duckdb
from dphh.udfs.arrays import (
    hash_texts,
    lengths_of,
    lists_of,
    mix_bits,
    one_array,
    sums_of_runs,
    unmixed_hashes,
)
from dphh.udfs.kernel.gathering import Gathering, ReadWords, Users, slices_by_bytes
from dphh.udfs.kernel.vocabulary import Vocabulary

BLOCKS_SCHEMA = "user_hashes binary, lengths binary, ids binary, words array<string>"
#: The last block of a task may have fewer positions than this.
LEAST_BLOCK_POSITIONS = 1 << 22
Batches = Iterator[pa.RecordBatch]


def blocks_of(reading: ReadWords, query_of_rows: str) -> Callable[[Batches], Batches]:
    """A function from batches (user_id, content, group_name) to blocks, rows of BLOCKS_SCHEMA. One
    call must get all rows of each user. `query_of_rows` makes tokens of their content."""

    def blocks(batches: Batches) -> Batches:
        words = Vocabulary()
        gathering = Gathering(reading.reader(words), distinct=not reading.marks_ends)
        for batch in batches:
            for rows in slices_by_bytes(pa.Table.from_batches([batch])):
                tokens = tokens_by_duckdb(one_array(rows.column("content")), query_of_rows)
                gathering.add(rows.column("user_id"), tokens, rows.column("group_name"))
        gathering.finish_adding()
        if gathering.holds_null_users:
            raise RuntimeError("dphh: NULL user")
        words.close()
        for users in _joined_to_blocks(gathering.users()):
            yield _block_of_users(users, words)

    return blocks


def _joined_to_blocks(users: Iterator[Users]) -> Iterator[Users]:
    """The same users, joined until they have at least LEAST_BLOCK_POSITIONS."""
    waiting: list[Users] = []
    for some in users:
        waiting.append(some)
        if sum(len(each.positions) for each in waiting) >= LEAST_BLOCK_POSITIONS:
            yield Users(*map(np.concatenate, zip(*waiting, strict=True)))
            waiting = []
    if waiting:
        yield Users(*map(np.concatenate, zip(*waiting, strict=True)))


def _block_of_users(users: Users, words: Vocabulary) -> pa.RecordBatch:
    """A block: these users as one row of a Spark table. It has a list of its own words, of which
    word ids are indices."""
    ids, spelled = users.positions, pa.nulls(1, pa.list_(pa.string()))
    if len(words):
        there = np.zeros(len(words) + 1, dtype=np.bool_)
        there[np.maximum(ids, -1)] = True
        own = np.flatnonzero(there[:-1])
        numbers = np.full(len(there), -1, dtype=np.int32)
        numbers[own] = np.arange(len(own), dtype=np.int32)
        ids = np.where(ids < 0, ids, numbers.take(ids, mode="clip"))
        spelled = pa.array([words.spellings(own)], pa.list_(pa.string()))
    columns = [
        pa.array([users.user_hashes.astype("<i8").tobytes()], pa.binary()),
        pa.array([users.lengths.astype("<i4").tobytes()], pa.binary()),
        pa.array([ids.astype("<i4").tobytes()], pa.binary()),
        spelled,
    ]
    return pa.RecordBatch.from_arrays(columns, ["user_hashes", "lengths", "ids", "words"])


# Values are brought to the blocks that have their keys. Keys are divided into parts. A task gets
# the values of a part and, from each block, the block's keys in that part, as one row: with one key
# a row, it would cost more than all else of a level.

VALUES_SCHEMA = "block bigint, places array<bigint>, values array<bigint>"


def part_of_key(part_count: int) -> Callable[[pa.Array], pa.Array]:
    """The function `dphh_part(key)`: a number below `part_count`, by a hash of the key."""

    def part(keys: pa.Array) -> pa.Array:
        hashes = unmixed_hashes(keys) if pa.types.is_integer(keys.type) else hash_texts(keys)
        return pa.array((mix_bits(hashes) % np.uint64(part_count)).astype(np.int32))

    return part


def keys_of_blocks(batches: Batches, part_count: int) -> Batches:
    """From rows (block, words or keys) to rows (part, block, places, keys). Each key of a block is
    there once; its place is its word id or, if it is no word, the key itself."""
    for rows in batches:
        for block, held in zip(*rows.columns, strict=True):
            if pa.types.is_list(held.type):
                keys, places = held.values, np.arange(len(held.values))
            else:
                places = np.unique(np.frombuffer(held.as_buffer(), "<i8"))
                places = places[places >= 0]
                keys = pa.array(places)
            part = part_of_key(part_count)(keys).to_numpy()
            there, counts = np.unique(part, return_counts=True)
            order = pa.array(np.argsort(part))
            lists = (lists_of(counts, each.take(order)) for each in (pa.array(places), keys))
            columns = [pa.array(there), pa.repeat(block, len(there)), *lists]
            yield pa.RecordBatch.from_arrays(columns, ["part", "block", "places", "keys"])


def values_of_keys(of_blocks: pa.Table, of_values: pa.Table) -> pa.Table:
    """From the rows (part, block, places, keys) and (part, key, value) of one part to rows (block,
    places, values). Keys without a value are left out."""
    block, places, keys = map(one_array, of_blocks.columns[1:])
    key, value = map(one_array, of_values.columns[1:])
    found = pc.index_in(keys.flatten(), key)
    there = found.is_valid()
    counts = sums_of_runs(lengths_of(places), there.to_numpy(False))
    lists = (places.flatten().filter(there), value.take(found.drop_null()))
    columns = [block, *(lists_of(counts, each) for each in lists)]
    return pa.table(columns, ["block", "places", "values"])
