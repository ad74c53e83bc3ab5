"""`trie`: TrieHH, Algorithm 1. A level asks those whose prefix is in the trie for a token more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.session import Session
from dphh.flows import LevelDone, whole
from dphh.flows.ngrams import joiner_of
from dphh.levels import VoteLevel
from dphh.plan import Plan
from dphh.release import TRIE_SCHEMA


def trie_levels(plan: Plan, session: Session) -> Iterator[LevelDone]:
    assert plan.corpus is not None
    joiner = joiner_of(plan.corpus)
    session.hold_sequences(plan["choice"])
    #: The tokens on the way to each node; the root's way is empty.
    ways: list[list[str]] = [[]]
    stopped = False
    for level in plan.levels:
        assert isinstance(level, VoteLevel)
        if stopped:  # the trie has stopped growing: nobody is asked any more
            yield LevelDone(level, TRIE_SCHEMA.empty_table())
            continue
        grown = session.vote_level(level, f"trie/level {level.level}")
        nodes = whole(grown.column("node"), pa.int64()).to_pylist()
        ended = whole(grown.column("ended"), pa.bool_())
        added = whole(grown.column("token"), pa.string()).to_pylist()
        paths = [
            ways[node] + ([] if token is None else [token])
            for node, token in zip(nodes, added, strict=True)
        ]
        tokens = pa.array(paths, pa.list_(pa.string()))
        yield LevelDone(
            level,
            pa.table(
                [
                    pa.array(np.full(len(paths), level.level, np.int32)),
                    pc.binary_join(tokens, joiner),
                    tokens,
                    pa.nulls(len(paths), pa.float64()),
                    ended,
                ],
                schema=TRIE_SCHEMA,
            ),
        )
        going = grown.filter(pc.invert(ended)).drop_columns(["ended"])
        stopped = len(going) == 0
        if not stopped:
            ways = [path for path, end in zip(paths, ended.to_pylist(), strict=True) if not end]
            numbers = pa.array(np.arange(len(going), dtype=np.int64))
            session.walk_on(level.level, going.append_column("next_node", numbers))
