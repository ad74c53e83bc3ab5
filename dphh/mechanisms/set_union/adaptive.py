"""Rounds of a set union whose weights depend on earlier noised weights.

`items` has them with method "adaptive", and level 1 of `ngrams`.

All rounds are one draw of the run. Noised weights of unreleased items exist only in the engine, so
a run that was interrupted between rounds redraws all of them, none of which was seen
(`dphh.journal`); one that was interrupted later finds all rounds stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.released_rows import as_array
from dphh.mechanisms.set_union.rounds import MIN_FINDS_OF_ROUND_1, merged_round

#: A round as it was run, and an Arrow table (key, noisy) of what it released.
DrawnRound = tuple[SetUnionLevel, Any]
#: A function of the rounds that ran. It returns the round that follows, or None after the last.
NextRound = Callable[[Sequence[DrawnRound]], SetUnionLevel | None]


def sips_rounds(levels: Sequence[SetUnionLevel]) -> NextRound:
    """The rounds of DP-SIPS, which methods "sips" and "adaptive" run: these levels, or, if the
    first one finds very few items, one round in place of all later ones."""

    def next_round(ran: Sequence[DrawnRound]) -> SetUnionLevel | None:
        rounds = levels
        if ran and levels[1:] and ran[0][1].num_rows < MIN_FINDS_OF_ROUND_1:
            rounds = [levels[0], merged_round(levels[1:])]
        return rounds[len(ran)] if len(ran) < len(rounds) else None

    return next_round


def table_of_rounds(ran: Sequence[DrawnRound]) -> Any:
    """All that the rounds released, as one table (round, key, noisy)."""
    return pa.concat_tables(
        pa.table(
            {
                "round": np.full(released.num_rows, level.round, np.int64),
                "key": as_array(released.column("key"), pa.string()),
                "noisy": as_array(released.column("noisy"), pa.int64()),
            }
        )
        for level, released in ran
    )


def rounds_of_table(drawn: Any, next_round: NextRound) -> Iterator[DrawnRound]:
    """Reads a `table_of_rounds`: yields each round as it was run, and what it released."""
    numbers = as_array(drawn.column("round"), pa.int64()).to_numpy()
    ran: list[DrawnRound] = []
    while (level := next_round(ran)) is not None:
        ran.append((level, drawn.filter(pa.array(numbers == level.round))))
        yield ran[-1]
