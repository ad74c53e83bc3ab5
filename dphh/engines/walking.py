"""The walk of users' sequences down a trie, the same on every engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.answering import draws
from dphh.levels.trie import BatchLevel, VoteLevel
from dphh.session.trie import Trie, TrieOn


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

    def _walk_down(self, trie: Trie) -> None:
        """Walk all missing levels: a continued run does not ask for levels that it drew before."""
        if self.gone is None:
            self._start_at_root()
            self.gone = 0
        for step in trie.steps[self.gone :]:
            self.gone += 1
            self._move_walkers(self.gone, step)


@draws(Walking, TrieOn)
def trie_level(session: Walking, asked: TrieOn, purpose: str) -> Any:
    if isinstance(asked.level, VoteLevel):
        return session._vote_level(asked.level, asked.trie, purpose)
    return session._batch_level(asked.level, asked.trie, purpose)
