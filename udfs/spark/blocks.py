"""Makes the blocks of whole users for Spark: a table function over texts, those of a user one after
the other. What it makes of a partition depends on that partition, so a task that runs again makes
the same of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dphh.udfs.kernel.blocks import POSITIONS, Block, block_of_tokens, row_of
from dphh.udfs.spark.ladder import BLOCK_COLUMNS
from dphh.udfs.spark.table_functions import register_table_function
from dphh.udfs.text.arrow_bytes import packed
from dphh.udfs.text.hashes import of_spellings
from dphh.udfs.text.tokens import tokens_of

#: So many bytes of texts are tokenised together, or what Spark gives at a time if more.
TEXTS = 1 << 23


@dataclass(frozen=True, eq=False)
class Piece:
    """Some texts as a block, whose first user may be the last one of the piece before."""

    block: Block
    words: pa.Array
    continues: bool


def register_blocks(spark: SparkSession, column: str, expression: str) -> None:
    """`dphh_blocks(table(texts_of_users))`: from (name, content) to (user_hashes, lengths,
    positions, words)."""

    def piece_of(texts: pa.RecordBatch, before: str | None) -> Piece:
        names = texts.column("name")
        tokens = tokens_of(texts.column("content"), column, expression)
        starts = _first_texts(names)
        of_user = names.take(pa.array(starts))
        numbers = np.diff(starts, append=len(names))
        block, words = block_of_tokens(of_spellings(of_user).view(np.int64), numbers, tokens)
        unnamed = of_user.is_null().to_numpy(False)
        if unnamed.any() and (block.positions[unnamed[block.owners]] >= 0).any():
            raise RuntimeError("dphh: NULL user")
        # Texts of no user hold nothing, so each of them may be a user of its own.
        return Piece(block, words, before is not None and names[0].as_py() == before)

    class Function:
        """Collects texts until they are a full block: larger blocks have fewer distinct keys
        together, and each is a row for Spark at every level."""

        def __init__(self) -> None:
            self.waiting: list[pa.RecordBatch] = []
            self.pieces: list[Piece] = []
            self.last: str | None = None

        def eval(self, texts: pa.RecordBatch) -> Iterator[pa.Table]:
            self.waiting.append(texts)
            if sum(waiting.nbytes for waiting in self.waiting) < TEXTS:
                return
            self.tokenise()
            if sum(len(piece.block.positions) for piece in self.pieces) >= POSITIONS:
                block, words = _joined(self.pieces)
                # The last of them is not full, and its last user may have more texts.
                *full, rest = block.in_pieces()
                yield from (_row(each, words) for each in full)
                self.pieces = [Piece(*_with_own_words(rest, words), False)]

        def terminate(self) -> Iterator[pa.Table]:
            self.tokenise()
            if self.pieces:
                block, words = _joined(self.pieces)
                yield from (_row(each, words) for each in block.in_pieces())

        def tokenise(self) -> None:
            waiting, self.waiting = self.waiting, []
            texts = pa.concat_batches(waiting) if waiting else None
            if texts:
                self.pieces.append(piece_of(texts, self.last))
                self.last = texts.column("name")[-1].as_py()

    register_table_function(spark, "dphh_blocks", Function, BLOCK_COLUMNS)


def _first_texts(names: pa.Array) -> np.ndarray:
    """The index of each user's first text."""
    changes = pc.not_equal(names[1:], names[:-1]).fill_null(True).to_numpy(False)
    return np.flatnonzero(np.append(True, changes))


def _joined(pieces: list[Piece]) -> tuple[Block, pa.Array]:
    """All pieces as one block with one list of words."""
    encoded = pa.concat_arrays([piece.words for piece in pieces]).dictionary_encode()
    numbers = encoded.indices.to_numpy()
    ends = np.cumsum([len(piece.words) for piece in pieces])
    positions = [
        np.append(numbers[end - len(piece.words) : end], -1)[piece.block.positions]
        for piece, end in zip(pieces, ends, strict=True)
    ]
    first_users = np.cumsum([0, *(len(piece.block.lengths) for piece in pieces[:-1])])
    new = np.full(sum(len(piece.block.lengths) for piece in pieces), True)
    new[first_users[[piece.continues for piece in pieces]]] = False
    hashes = np.concatenate([piece.block.user_hashes for piece in pieces])
    lengths = np.concatenate([piece.block.lengths for piece in pieces])
    users = Block(
        hashes[new], np.add.reduceat(lengths, np.flatnonzero(new)), np.concatenate(positions)
    )
    return users, encoded.dictionary


def _with_own_words(block: Block, words: pa.Array) -> tuple[Block, pa.Array]:
    """The same block without the words that stand nowhere in it."""
    there = np.zeros(len(words) + 1, dtype=np.bool_)
    there[block.positions] = True
    own = np.flatnonzero(there[:-1])
    numbers = np.full(len(words) + 1, -1, dtype=np.int64)
    numbers[own] = np.arange(len(own))
    return block.with_positions(numbers[block.positions]), words.take(pa.array(own))


def _row(block: Block, words: pa.Array) -> pa.Table:
    own, own_words = _with_own_words(block, words)
    return pa.table({**row_of(own, "positions"), "words": [packed(pa.table({"word": own_words}))]})
