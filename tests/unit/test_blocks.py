"""Users in blocks: none divided, none lost, each text apart from the next."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dphh.udfs.kernel.blocks import Block, block_at, block_of_tokens, row_of
from dphh.udfs.text.arrow_bytes import packed, unpacked


def spelled(block: Block, words: pa.Array) -> dict[int, list[str | None]]:
    """Each user's positions, as words."""
    names = [*words.to_pylist(), None]
    ends = np.cumsum(block.lengths)
    starts = ends - block.lengths
    return {
        int(user_hash): [names[word_id] for word_id in block.positions[start:end]]
        for user_hash, start, end in zip(block.user_hashes, starts, ends, strict=True)
    }


def block_of(users: dict[int, list[list[str | None] | None]]) -> tuple[Block, pa.Array]:
    texts = pa.array([text for texts in users.values() for text in texts], pa.list_(pa.string()))
    numbers = np.array([len(texts) for texts in users.values()], dtype=np.int64)
    return block_of_tokens(np.array(list(users), dtype=np.int64), numbers, texts)


def test_a_users_texts_stand_apart_and_what_is_empty_is_left_out():
    block, words = block_of({7: [["a", "b"], ["b", "", None, "a"]], 9: [[], None], 8: [["", "c"]]})
    assert spelled(block, words) == {
        7: ["a", "b", None, "b", "a", None],
        9: [None, None],
        8: ["c", None],
    }
    assert block.owners.tolist() == [0] * 6 + [1] * 2 + [2] * 2


def test_nobody_makes_an_empty_block():
    block, words = block_of({})
    assert len(block.user_hashes) == len(block.positions) == len(words) == 0
    assert not list(block.in_pieces())


@pytest.mark.parametrize("positions", [1, 3, 10, 1000])
def test_pieces_hold_every_user_whole_and_once(positions):
    rng = np.random.default_rng(positions)
    users = {
        name: [list(rng.choice(list("abc"), rng.integers(0, 5))) for _ in range(rng.integers(0, 4))]
        for name in range(20)
    }
    users[20] = [["a"]]  # the last one has a position
    block, words = block_of(users)
    pieces = list(block.in_pieces(positions))
    whole: dict[int, list[str | None]] = {}
    for piece in pieces:
        assert not whole.keys() & spelled(piece, words).keys()
        whole |= spelled(piece, words)
        assert piece.lengths[:-1].sum() <= positions + max(block.lengths)
    assert whole == spelled(block, words)
    assert len(pieces) > 1 or positions == 1000


def test_a_block_comes_back_from_its_row():
    block, words = block_of({-5: [["a", "b"]], 2**62: [["b"]]})
    written = packed(pa.table({"word": words}))
    row = pa.table({**row_of(block, "positions"), "words": [written]}).to_batches()[0]
    back = block_at(row, 0, "positions")
    assert back.user_hashes.tolist() == [-5, 2**62]
    assert back.lengths.tolist() == block.lengths.tolist()
    assert back.positions.tolist() == block.positions.tolist()
    back_words = unpacked(row.column("words")[0].as_buffer()).column("word")
    assert back_words.combine_chunks() == words
