"""Blocks of whole users: their texts as positions, one user after the other, in integer arrays.

For Spark, which moves rows between processes and machines: a block is one row, so no user is ever
divided, and a row with thousands of users costs Spark as much as a row with one.
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

#: The token for a text's end, where the end counts as one: no token of a text is empty.
END = ""
#: A block ends with the user who takes it past this many positions, 16 MB. No user is divided.
PLACES = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    #: For each user, a hash of the user's name, and the number of positions.
    lots: Integers
    lengths: Integers
    #: The integer at each position, -1 for none; each user's and each text's last position is -1.
    places: Integers

    @property
    def owners(self) -> Integers:
        """For each position, the index of its user in the block."""
        return np.repeat(np.arange(len(self.lots)), self.lengths)

    def of_users(self, first: int, last: int) -> Block:
        start, end = self.lengths[:first].sum(), self.lengths[:last].sum()
        return Block(self.lots[first:last], self.lengths[first:last], self.places[start:end])

    def in_pieces(self, places: int = PLACES) -> Iterator[Block]:
        """The same users, in blocks of about this many positions."""
        ends = np.cumsum(self.lengths)
        last = np.flatnonzero(np.diff(ends // places, append=-1)) + 1
        for start, end in zip([0, *last], last, strict=False):
            yield self.of_users(int(start), int(end))

    def with_places(self, places: Integers) -> Block:
        return Block(self.lots, self.lengths, places)


def places_of_texts(lengths: Integers, codes: Any, ends: bool = True) -> tuple[Integers, Any]:
    """How many positions each text takes, and the word id at each; -1 follows each text if `ends`.

    `lengths` are the texts' numbers of tokens and `codes` their word ids. An id of -1 is no token:
    it is removed, and the tokens on its two sides become neighbours.
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
    """Make a block, and its list of words, from each user's number of texts and the texts' tokens.

    Empty tokens and NULLs are left out.
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
    """Read the block in a row that `row_of` wrote; `column` holds its positions."""
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
    """The binary type of a column: keys are pairs of numbers, and need 64 bits."""
    return "<i8" if column == "keys" else "<i4"
