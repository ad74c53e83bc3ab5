"""Steps that take the users in parts where all of them at once are too much for the memory."""

from __future__ import annotations

from collections.abc import Callable

from dphh.errors import EngineOutOfMemory

#: In how many parts the users are taken, until each fits the memory.
PARTS = (1, 8, 64)


def in_parts(start: Callable[[], None], step: Callable[[dict[str, int]], None]) -> None:
    """Start anew and take the step for every part, with more and more parts until each fits.

    `step` is given the parameters that a query takes: how many parts there are, and which it is.
    """
    for parts in PARTS:
        start()
        try:
            for part in range(parts):
                step({"parts": parts, "part": part})
            return
        except EngineOutOfMemory:
            if parts == PARTS[-1]:
                raise
