"""The released part of a trie, which each next level grows from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.levels.trie import BatchLevel, Choice, VoteLevel

Way = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Trie:
    """Everything that earlier levels released, which is public; before the first only the root."""

    #: The tokens on the path to each node of the deepest level, by the node's number.
    ways: tuple[Way, ...] = ((),)
    #: From each level to the next, an Arrow table (node, token, next_node).
    steps: tuple[Any, ...] = ()

    def longer(self, grown: Any) -> list[Way]:
        """The path to each prefix that a level grew; the end of a sequence adds no token."""
        columns = (grown.column(name).to_pylist() for name in ("node", "token"))
        return [
            self.ways[node] + (() if token is None else (token,))
            for node, token in zip(*columns, strict=True)
        ]

    def with_next(self, grown: Any) -> Trie:
        """The trie one level deeper, by an Arrow table (node, token, ended). Ends do not grow."""
        going = grown.filter(pc.invert(grown.column("ended"))).drop_columns(["ended"])
        numbers = pa.array(np.arange(len(going), dtype=np.int64))
        step = going.append_column("next_node", numbers)
        return Trie(tuple(self.longer(going)), (*self.steps, step))

    def nodes(self) -> Any:
        """The deepest level as an Arrow table (node, tokens)."""
        numbers = np.arange(len(self.ways), dtype=np.int64)
        return pa.table({"node": numbers, "tokens": pa.array(self.ways, pa.list_(pa.string()))})


@dataclass(frozen=True)
class OneSequence:
    """Asks a session to hold one sequence of each user, the same for the whole run."""

    choice: Choice


@dataclass(frozen=True)
class TrieOn:
    """Asks for the next level of the trie, by coins or of a batch of a fixed size: an Arrow table
    (node, token, ended) of what grows."""

    level: VoteLevel | BatchLevel
    trie: Trie
