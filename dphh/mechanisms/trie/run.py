"""`trie`: TrieHH, Algorithm 1. Users whose prefix is in the trie vote for one more token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import TRIE_SCHEMA
from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    Draws,
    LevelDone,
    as_array,
    parameters_of,
    renamed,
    steps_of,
)
from dphh.mechanisms.trie.price import SequenceChoice, VoteLevel
from dphh.price import Price
from dphh.udfs.noise.randomness import ONE_SEQUENCE

#: The tokens from the root to a node.
TokenPath = tuple[str, ...]


def trie_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    levels: list[Any] = list(price.levels)
    place_walkers(host, price["choice"])
    # The deepest released nodes, first the root; a node's number is its place here. All are public.
    nodes: list[TokenPath] = [()]
    for level in levels:
        if not nodes:  # the trie has stopped growing, so no user is asked
            yield LevelDone(level, TRIE_SCHEMA.empty_table())
            continue
        purpose = f"trie/level {level.level}"
        grown = once(purpose, partial(grow_by_coins, host, level, purpose))
        # grown (node, token, ended)
        ended = as_array(grown.column("ended"), pa.bool_())
        yield LevelDone(
            level, _released_rows(level.level, grown_paths(grown, nodes), ended, host.joiner)
        )
        # The prefixes that can grow further: next_nodes (node, token, next_node).
        next_nodes = grown.filter(pc.invert(ended)).drop_columns(["ended"])
        numbers = np.arange(len(next_nodes), dtype=np.int64)
        next_nodes = next_nodes.append_column("next_node", pa.array(numbers))
        nodes = grown_paths(next_nodes, nodes)
        if level is not levels[-1]:
            walk_on(host, level, next_nodes)


def grown_paths(grown: Any, nodes: Sequence[TokenPath]) -> list[TokenPath]:
    """The path to each prefix that a level added; the end of a sequence adds no token."""
    columns = (grown.column(name).to_pylist() for name in ("node", "token"))
    return [
        nodes[node] + (() if token is None else (token,))
        for node, token in zip(*columns, strict=True)
    ]


def place_walkers(host: Host, choice: SequenceChoice) -> None:
    """Put users' sequences at the root."""
    _choose_sequences(host, choice)
    host.run("walkers")
    # walkers (node, tokens, users): each different sequence, and the number of its users
    host.drop("contents_of_users", "chosen")


def _choose_sequences(host: Host, choice: SequenceChoice) -> None:
    """Choose one sequence of each user who has several rows; it stays for the whole run."""
    host.open()
    host.run("contents_of_users")
    # contents_of_users (user_id, contents); sequences_of_rows (user_id, tokens)
    if choice == "drawn":
        host.run("sequences_drawn", purpose=ONE_SEQUENCE)
    else:
        host.run("sequences_most_frequent")
    # chosen (user_id, tokens)


def grow_by_coins(host: Host, level: VoteLevel, purpose: str) -> Any:
    """Each user tosses a coin, and votes if it shows heads. Returns the prefixes with enough votes:
    an Arrow table (node, token, ended)."""
    host.run("trie_votes", **parameters_of(level, purpose))
    # votes (node, token, ended, votes)
    grown = host.take("grown", theta=level.theta)
    host.drop("votes")
    return grown


def walk_on(host: Host, level: VoteLevel, next_nodes: Any) -> None:
    """Move each walker to the node of its next prefix, if that was added; the others are done."""
    host.put("grown", next_nodes)
    # grown (node, token, next_node)
    host.run("walk_on", level=level.level)
    # next_walkers (node, tokens, users)
    host.drop("grown")
    host.rename_replacing("next_walkers", "walkers")


def _released_rows(level: int, paths: list[TokenPath], ended: Any, joiner: str) -> Any:
    tokens = pa.array(paths, pa.list_(pa.string()))
    levels = pa.array(np.full(len(paths), level, np.int32))
    scores = pa.nulls(len(paths), pa.float64())  # the numbers of votes are not released
    return pa.table(
        [levels, pc.binary_join(tokens, joiner), tokens, scores, ended], schema=TRIE_SCHEMA
    )


def trie_draws(price: Price) -> Draws:
    """What `trie_levels` asks."""
    chosen = "sequences_drawn" if price["choice"] == "drawn" else "sequences_most_frequent"
    known = {"purpose": ONE_SEQUENCE}
    yield BEFORE_LEVELS, [(step, known) for step in ("contents_of_users", chosen, "walkers")]
    walking = "walk_on", renamed("next_walkers", "walkers")
    for level in price.levels:
        purpose = f"trie/level {level.level}"
        after = () if level is price.levels[-1] else walking
        yield purpose, steps_of(level, purpose, "trie_votes", "grown", *after)
