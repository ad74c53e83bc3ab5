"""Several rounds of a set union, which depend on one another and together are one draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dphh.levels.set_union import SetUnionLevel
from dphh.privacy.following import Following

#: A round as it was run, and an Arrow table (key, noisy) of what it released.
Ran = tuple[SetUnionLevel, Any]


class RoundsOf(Protocol):
    """The rounds' order, weights and release, from what the rounds before released."""

    #: Whether longer n-grams are still to be found in the original texts.
    @property
    def keeps_texts(self) -> bool: ...

    def next(self, ran: Sequence[Ran]) -> SetUnionLevel | None:
        """The round that follows those that ran; None after the last."""
        ...

    def following(self, ran: Sequence[Ran], level: SetUnionLevel) -> Following | None:
        """The public numbers of the next round's weights; None if its weights are equal."""
        ...

    def table(self, ran: Sequence[Ran]) -> Any:
        """All that the rounds released, as one table."""
        ...


@dataclass(frozen=True)
class RoundsAsOne:
    """Asks for all the rounds as one draw: `rounds.table` of the passed items. All other noised
    weights are dropped."""

    rounds: RoundsOf
