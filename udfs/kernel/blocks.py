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
POSITIONS = 1 << 22


@dataclass(frozen=True, eq=False)
class Block:
    """Whole users: user hashes, numbers of positions, and all positions in order."""

    #: For each user, a hash of the user's name, and the number of positions.
    user_hashes: Integers
    lengths: Integers
    #: The integer at each position, -1 for none; each user's and each text's last position is -1.
    positions: Integers

    @property
    def owners(self) -> Integers:
        """For each position, the index of its user in the block."""
        return np.repeat(np.arange(len(self.user_hashes)), self.lengths)

    def of_users(self, first: int, last: int) -> Block:
        start, end = self.lengths[:first].sum(), self.lengths[:last].sum()
        return Block(
            self.user_hashes[first:last], self.lengths[first:last], self.positions[start:end]
        )

    def in_pieces(self, positions: int = POSITIONS) -> Iterator[Block]:
        """The same users, in blocks of about this many positions."""
        ends = np.cumsum(self.lengths)
        last = np.flatnonzero(np.diff(ends // positions, append=-1)) + 1
        for start, end in zip([0, *last], last, strict=False):
            yield self.of_users(int(start), int(end))

    def with_positions(self, positions: Integers) -> Block:
        return Block(self.user_hashes, self.lengths, positions)


def positions_of_texts(lengths: Integers, ids: Any, ends: bool = True) -> tuple[Integers, Any]:
    """How many positions each text takes, and the word id at each; -1 follows each text if `ends`.

    `lengths` are the texts' numbers of tokens and `ids` their word ids. An id of -1 is no token:
    it is removed, and the tokens on its two sides become neighbours.
    """
    there = ids >= 0
    if not there.all():
        before = np.concatenate([[0], np.cumsum(there)])
        lengths = np.diff(before[np.concatenate([[0], np.cumsum(lengths)])])
        ids = ids[there]
    if not ends:
        return lengths, ids
    positions = np.full(len(ids) + len(lengths), -1, dtype=ids.dtype)
    text_ends = np.cumsum(lengths + 1) - 1
    words = np.ones(len(positions), dtype=np.bool_)
    words[text_ends] = False
    positions[words] = ids
    return lengths + 1, positions


def block_of_tokens(user_hashes: Integers, texts: Integers, tokens: Any) -> tuple[Block, pa.Array]:
    """Make a block, and its list of words, from each user's number of texts and the texts' tokens.

    Empty tokens and NULLs are left out.
    """
    words = tokens.flatten()
    lengths = pc.list_value_length(tokens).fill_null(0).to_numpy(zero_copy_only=False)
    encoded = pc.if_else(pc.equal(words, ""), None, words).dictionary_encode()
    ids = encoded.indices.fill_null(-1).to_numpy()
    lengths, positions = positions_of_texts(lengths.astype(np.int64), ids)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    of_user = np.concatenate([[0], np.cumsum(texts)])
    return Block(user_hashes, np.diff(ends[of_user]), positions), encoded.dictionary.cast(
        pa.string()
    )


def block_at(batch: pa.RecordBatch, row: int, column: str) -> Block:
    """Read the block in a row that `row_of` wrote; `column` holds its positions."""
    user_hashes, lengths, positions = (
        np.frombuffer(batch.column(name)[row].as_buffer(), kind).astype(np.int64)
        for name, kind in (
            ("user_hashes", "<i8"),
            ("lengths", "<i8"),
            (column, _binary_type_of(column)),
        )
    )
    return Block(user_hashes, lengths, positions)


def row_of(block: Block, column: str) -> dict[str, list[bytes]]:
    return {
        "user_hashes": [block.user_hashes.astype("<i8").tobytes()],
        "lengths": [block.lengths.astype("<i8").tobytes()],
        column: [block.positions.astype(_binary_type_of(column)).tobytes()],
    }


def _binary_type_of(column: str) -> str:
    """The binary type of a column: keys are pairs of numbers, and need 64 bits."""
    return "<i8" if column == "keys" else "<i4"
