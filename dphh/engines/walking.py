"""The released part of a trie, and the walk down it that is the same on every engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.levels import BatchLevel, VoteLevel

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


class Walking(ABC):
    """Users' sequences walk down the trie; each engine stores the walkers in its own way."""

    #: How many levels the walkers have gone down; None before they are at the root.
    gone: int | None = None

    @abstractmethod
    def _start_at_root(self) -> None:
        """Put all walkers at the root."""

    @abstractmethod
    def _vote_level(self, level: VoteLevel, trie: Trie, purpose: str) -> Any:
        """Each user tosses a coin."""

    @abstractmethod
    def _batch_level(self, level: BatchLevel, trie: Trie, purpose: str) -> Any:
        """A batch of a fixed size is drawn from all users."""

    @abstractmethod
    def _move_walkers(self, level: int, step: Any) -> None:
        """Move the walkers whose prefix grew, by a table of `Trie.steps`; drop the others."""

    def trie_level(self, level: VoteLevel | BatchLevel, trie: Trie, purpose: str) -> Any:
        if isinstance(level, VoteLevel):
            return self._vote_level(level, trie, purpose)
        return self._batch_level(level, trie, purpose)

    def _walk_down(self, trie: Trie) -> None:
        """Walk all missing levels: a continued run does not ask for levels that it drew before."""
        if self.gone is None:
            self._start_at_root()
            self.gone = 0
        for step in trie.steps[self.gone :]:
            self.gone += 1
            self._move_walkers(self.gone, step)
