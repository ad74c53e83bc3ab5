"""`trie`: TrieHH, Algorithm 1. Users whose prefix is in the trie vote for one more token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import GROWN
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.mechanisms.released_rows import LevelDone, whole
from dphh.price import Price
from dphh.session.protocol import Session
from dphh.session.trie import OneSequence, Trie, TrieOn, Way


def trie_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    session.hold(OneSequence(price["choice"]))
    trie = Trie()
    for level in price.levels:
        if not trie.ways:  # the trie has stopped growing, so no user is asked
            yield LevelDone(level, GROWN.empty_table())
            continue
        assert isinstance(level, (VoteLevel, BatchLevel))
        grown = session.draw(TrieOn(level, trie), f"trie/level {level.level}")
        ended = whole(grown.column("ended"), pa.bool_())
        yield LevelDone(level, _released_rows(level.level, trie.longer(grown), ended, joiner))
        trie = trie.with_next(grown)


def _released_rows(level: int, paths: list[Way], ended: Any, joiner: str) -> Any:
    tokens = pa.array(paths, pa.list_(pa.string()))
    levels = pa.array(np.full(len(paths), level, np.int32))
    scores = pa.nulls(len(paths), pa.float64())  # votes are not released
    return pa.table([levels, pc.binary_join(tokens, joiner), tokens, scores, ended], schema=GROWN)
