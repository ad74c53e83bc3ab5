"""Dependent rounds of a set union inside an engine, which together are one draw of a run.

From the second round on, a user's weight on an item depends on the noised weights of earlier
rounds, also of items that were not released. So these weights are an output in the analysis
(docs/items.md), and must depend on the raw data in no other way: every item that some user holds
has a noised weight in every round, whether or not any user put weight on it. To be released, an
item also needs some user's weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dphh.engines.answering import draws
from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following, parts_of_round
from dphh.session.rounds import Ran, RoundsAsOne


class InRounds(ABC):
    """The methods of a session for dependent rounds, with hooks for an engine's queries."""

    @abstractmethod
    def forget(self, released: Any, keep_texts: bool = False) -> None: ...

    @abstractmethod
    def _start_rounds(self) -> None:
        """Called before the first round."""

    @abstractmethod
    def _write_noised_round(
        self, level: SetUnionLevel, following: Following | None, purpose: str
    ) -> None:
        """Write to `noised` the noised weight of every item that some user holds, and whether any
        user put weight on it. With `following`, users' weights follow from earlier rounds; without
        it, they are equal."""

    @abstractmethod
    def _released_of_round(self, threshold: int) -> Any:
        """The rows (key, noisy) of `noised` with some user's weight that reach the threshold."""

    @abstractmethod
    def _add_to_earlier_rounds(self, parts: int) -> None:
        """Add the noised weights in `noised`, times `parts`, to the sums over earlier rounds, and
        drop `noised`."""

    @abstractmethod
    def _drop_rounds(self) -> None:
        """Drop `noised` and the sums over earlier rounds."""


@draws(InRounds, RoundsAsOne)
def union_rounds(session: InRounds, asked: RoundsAsOne, purpose: str) -> Any:
    rounds = asked.rounds
    ran: list[Ran] = []
    session._start_rounds()
    try:
        while (level := rounds.next(ran)) is not None:
            following = rounds.following(ran, level)
            if ran:
                (first, _), (last, released) = ran[0], ran[-1]
                session._add_to_earlier_rounds(parts_of_round(first.grid, last.grid))
                session.forget(released, rounds.keeps_texts)
            session._write_noised_round(level, following, f"{purpose}/round {level.round}")
            ran.append((level, session._released_of_round(level.threshold_grid)))
        return rounds.table(ran)
    finally:
        session._drop_rounds()
