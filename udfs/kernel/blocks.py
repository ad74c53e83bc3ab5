"""Whole users in blocks: their texts as places, one user after the other, as arrays of numbers.

For an engine that moves rows between processes and machines (Spark): a block is one row, so no user
is ever divided, and a row of some thousand users costs it what a row of one would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Where a text's end is a token, it is this one: no token of a text is empty.
END = ""
#: A block ends with the user who takes it past so many places: 16 MB. A user is never divided.
PLACES = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    #: For each user a number that hangs on the user's name, and how many places the user has.
    lots: Integers
    lengths: Integers
    #: What stands at each place, -1 for nothing; each user's places end with a -1, and each text's.
    places: Integers

    @property
    def owners(self) -> Integers:
        """For each place, the number of its user in the block."""
        return np.repeat(np.arange(len(self.lots)), self.lengths)

    def of_users(self, first: int, last: int) -> Block:
        start, end = self.lengths[:first].sum(), self.lengths[:last].sum()
        return Block(self.lots[first:last], self.lengths[first:last], self.places[start:end])

    def in_pieces(self, places: int = PLACES) -> Iterator[Block]:
        """The same users, in blocks of about so many places."""
        ends = np.cumsum(self.lengths)
        last = np.flatnonzero(np.diff(ends // places, append=-1)) + 1
        for start, end in zip([0, *last], last, strict=False):
            yield self.of_users(int(start), int(end))

    def with_places(self, places: Integers) -> Block:
        return Block(self.lots, self.lengths, places)


def places_of_texts(lengths: Integers, codes: Any, ends: bool = True) -> tuple[Integers, Any]:
    """Texts of so many tokens each: how many places each takes, and what stands at them; after each
    text -1, but where its `ends` do not matter.

    -1 among the codes is no token: its neighbours are each other's.
    """
    there = codes >= 0
    if not there.all():
        before = np.concatenate([[0], np.cumsum(there)])
        lengths = np.diff(before[np.concatenate([[0], np.cumsum(lengths)])])
        codes = codes[there]
    if not ends:
        return lengths, codes
    places = np.full(len(codes) + len(lengths), -1, dtype=codes.dtype)
    text_ends = np.cumsum(lengths + 1) - 1
    words = np.ones(len(places), dtype=np.bool_)
    words[text_ends] = False
    places[words] = codes
    return lengths + 1, places


def block_of_tokens(lots: Integers, texts: Integers, tokens: Any) -> tuple[Block, pa.Array]:
    """Users of so many texts each, and the texts' tokens: a block, and the words it is written in.

    An empty token is none, and NULL is none.
    """
    words = tokens.flatten()
    lengths = pc.list_value_length(tokens).fill_null(0).to_numpy(zero_copy_only=False)
    encoded = pc.if_else(pc.equal(words, ""), None, words).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    lengths, places = places_of_texts(lengths.astype(np.int64), codes)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    of_user = np.concatenate([[0], np.cumsum(texts)])
    return Block(lots, np.diff(ends[of_user]), places), encoded.dictionary.cast(pa.string())


def block_at(batch: pa.RecordBatch, row: int, column: str) -> Block:
    """The block in a row that `row_of` wrote, by the name of the column that has its places."""
    lots, lengths, places = (
        np.frombuffer(batch.column(name)[row].as_buffer(), kind).astype(np.int64)
        for name, kind in (("lots", "<i8"), ("lengths", "<i8"), (column, _written_as(column)))
    )
    return Block(lots, lengths, places)


def row_of(block: Block, column: str) -> dict[str, list[bytes]]:
    return {
        "lots": [block.lots.astype("<i8").tobytes()],
        "lengths": [block.lengths.astype("<i8").tobytes()],
        column: [block.places.astype(_written_as(column)).tobytes()],
    }


def _written_as(column: str) -> str:
    """Keys are pairs of numbers."""
    return "<i8" if column == "keys" else "<i4"
