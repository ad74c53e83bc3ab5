"""Rounds of a set union that follow one another inside an engine: one draw of a run.

From the second on, what a user gives to an item follows from the noised weights of earlier rounds,
of what was not released too. So these weights are an output as the analysis has it
(docs/items.md), and must be one that hangs on no raw data: every item that anybody holds has its
noised weight in every round, whether or not anybody kept it or gave it anything. What is released
besides needs somebody to have given it something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from dphh.levels import SetUnionLevel
from dphh.privacy.following import Following, parts_told

#: A round, by what its weights follow: an Arrow table (key, noisy) of what passed.
Round = Callable[[SetUnionLevel, Following | None], Any]


class RoundsOf(Protocol):
    def run(self, draw: Round) -> Any: ...


class InRounds(ABC):
    @abstractmethod
    def forget(self, released: Any, keep_texts: bool = False) -> None: ...

    @abstractmethod
    def _nothing_told(self) -> None:
        """Before the first round."""

    @abstractmethod
    def _given(self, level: SetUnionLevel, following: Following | None, purpose: str) -> None:
        """To `noised`: the noised weight of every item that somebody holds, and whether anybody
        gave it something. Without `following`, weights are equal."""

    @abstractmethod
    def _passed(self, threshold: int) -> Any:
        """Of `noised`, what somebody gave to and reaches the threshold: (key, noisy)."""

    @abstractmethod
    def _remember(self, parts: int) -> None:
        """Adds the weights of `noised`, times the parts, to what rounds before told of each item,
        and drops them."""

    @abstractmethod
    def _forget_told(self) -> None:
        """Drops `noised`, and what rounds told."""

    def union_rounds(self, rounds: RoundsOf, purpose: str) -> Any:
        ran: list[SetUnionLevel] = []
        before: Any = None
        self._nothing_told()

        def draw(level: SetUnionLevel, following: Following | None) -> Any:
            nonlocal before
            if ran:
                self._remember(parts_told(ran[0].sigma_grid, ran[-1].sigma_grid))
                self.forget(before)
            ran.append(level)
            self._given(level, following, f"{purpose}/round {level.round}")
            before = self._passed(level.threshold_grid)
            return before

        try:
            return rounds.run(draw)
        finally:
            self._forget_told()
