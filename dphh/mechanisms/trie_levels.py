"""`trie`: TrieHH, Algorithm 1. A level asks those whose prefix is in the trie for a token more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import GROWN
from dphh.engines.session import Session
from dphh.levels import BatchLevel, Level, VoteLevel
from dphh.mechanisms.released_rows import LevelDone, whole
from dphh.price import Price

Way = list[str]


def trie_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    session.hold_sequences(price["choice"])
    #: The tokens on the way to each node of the level below; the root's way is empty.
    ways: list[Way] = [[]]
    for level in price.levels:
        if not ways:  # the trie has stopped growing: nobody is asked any more
            yield LevelDone(level, GROWN.empty_table())
            continue
        grown = _grown(session, level, ways)
        ended = whole(grown.column("ended"), pa.bool_())
        paths = _longer(ways, grown)
        yield LevelDone(level, _rows(level.level, paths, ended, joiner))
        going = grown.filter(pc.invert(ended))
        ways = [path for path, end in zip(paths, ended.to_pylist(), strict=True) if not end]
        if ways and isinstance(level, VoteLevel) and level is not price.levels[-1]:
            numbers = pa.array(np.arange(len(going), dtype=np.int64))
            session.walk_on(
                level.level, going.drop_columns(["ended"]).append_column("next_node", numbers)
            )


def _grown(session: Session, level: Level, ways: list[Way]) -> Any:
    purpose = f"trie/level {level.level}"
    if isinstance(level, VoteLevel):
        return session.vote_level(level, purpose)
    assert isinstance(level, BatchLevel)
    nodes = np.arange(len(ways), dtype=np.int64)
    below = pa.table({"node": nodes, "tokens": pa.array(ways, pa.list_(pa.string()))})
    return session.batch_level(level, below, purpose)


def _longer(ways: list[Way], grown: Any) -> list[Way]:
    """The way to each prefix that has grown; a sequence's end adds no token."""
    nodes = whole(grown.column("node"), pa.int64()).to_pylist()
    tokens = whole(grown.column("token"), pa.string()).to_pylist()
    return [
        ways[node] + ([] if token is None else [token])
        for node, token in zip(nodes, tokens, strict=True)
    ]


def _rows(level: int, paths: list[Way], ended: Any, joiner: str) -> Any:
    tokens = pa.array(paths, pa.list_(pa.string()))
    levels = pa.array(np.full(len(paths), level, np.int32))
    scores = pa.nulls(len(paths), pa.float64())  # votes are not released
    return pa.table([levels, pc.binary_join(tokens, joiner), tokens, scores, ended], schema=GROWN)
