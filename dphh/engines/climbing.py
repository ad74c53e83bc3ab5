"""The ladder's steps that are the same on every engine; how a rung is placed is the engine's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.two_rounds import Rule, TwoRounds
from dphh.ladder.forecast import Step
from dphh.ladder.rungs import Integers, Ladder
from dphh.udfs.randomness import Randomness


class Climbing(ABC):
    randomness: Randomness
    #: How many rungs of the ladder stand in `positions`.
    placed = 0

    @abstractmethod
    def _place(self, ladder: Ladder) -> None:
        """Where the grams of the ladder's top stand."""

    @abstractmethod
    def _sums(self, rule: Rule, ladder: Ladder) -> tuple[Integers, Integers]:
        """What users add to each gram by the rule of a round: keys and sums, without noise."""

    def forecast_level(self, step: Step, ladder: Ladder, purpose: str) -> Any:
        self._place_all(ladder)
        rounds = TwoRounds(lambda rule: self._sums(rule, ladder), self.randomness, purpose)
        return step.run(rounds).to_table()

    def _place_all(self, ladder: Ladder) -> None:
        """A run that goes on was not asked for the levels that it drew before."""
        for rungs in range(self.placed + 1, len(ladder.rungs) + 1):
            self._place(ladder.up_to(rungs))
