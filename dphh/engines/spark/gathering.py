"""Blocks of whole users on Spark: each task gathers the users of its part of the rows.

To group rows by user would shuffle every row at every level. So the positions of many users are
stored as one row, a block, which is never divided: users are bounded within their block, and only
the sums of blocks are shuffled. A block has its own list of words, in which its ids are indices.
What a task makes of its part depends on that part alone, so a task that runs again makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from dphh.udfs.kernel.gathering import Gathering, Users, slices_of_bytes
from dphh.udfs.kernel.lists import one_array
from dphh.udfs.kernel.reading import Reading
from dphh.udfs.text.tokens import tokens_of
from dphh.udfs.text.vocabulary import Vocabulary

SCHEMA = "user_hashes binary, lengths binary, ids binary, words array<string>"
#: A block has at least so many positions, where there are as many.
POSITIONS = 1 << 22
Batches = Iterator[pa.RecordBatch]


def blocks_of(reading: Reading, column: str, expression: str) -> Callable[[Batches], Batches]:
    """From batches (user_id, content, group_name), of all rows of their users, to rows of
    SCHEMA."""

    def blocks(batches: Batches) -> Batches:
        words = Vocabulary()
        gathering = Gathering(reading.reader(words))
        for batch in batches:
            for rows in slices_of_bytes(pa.Table.from_batches([batch])):
                content = one_array(rows.column("content"))
                tokens = tokens_of(content, column, expression)
                gathering.add(rows.column("user_id"), tokens, rows.column("group_name"))
        gathering.end()
        if gathering.holds_null_users:
            raise RuntimeError("dphh: NULL user")
        words.close()
        for users in _full(gathering.users()):
            yield _block(users, words)

    return blocks


def _full(users: Iterator[Users]) -> Iterator[Users]:
    """The same users, with some POSITIONS at a time."""
    waiting: list[Users] = []
    for some in users:
        waiting.append(some)
        if sum(len(each.positions) for each in waiting) >= POSITIONS:
            yield Users(*map(np.concatenate, zip(*waiting, strict=True)))
            waiting = []
    if waiting:
        yield Users(*map(np.concatenate, zip(*waiting, strict=True)))


def _block(users: Users, words: Vocabulary) -> pa.RecordBatch:
    ids, spelled = users.positions, pa.nulls(1, pa.list_(pa.string()))
    if len(words):
        there = np.zeros(len(words) + 1, dtype=np.bool_)
        there[ids] = True
        own = np.flatnonzero(there[:-1])
        numbers = np.full(len(there), -1, dtype=np.int32)
        numbers[own] = np.arange(len(own), dtype=np.int32)
        ids = numbers.take(ids, mode="wrap")
        spelled = pa.array([words.spelled(own)], pa.list_(pa.string()))
    columns = [
        pa.array([users.user_hashes.astype("<i8").tobytes()], pa.binary()),
        pa.array([users.lengths.astype("<i4").tobytes()], pa.binary()),
        pa.array([ids.astype("<i4").tobytes()], pa.binary()),
        spelled,
    ]
    return pa.RecordBatch.from_arrays(columns, ["user_hashes", "lengths", "ids", "words"])
