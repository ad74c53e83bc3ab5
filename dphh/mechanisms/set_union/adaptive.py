"""Rounds of a set union whose weights depend on earlier noised weights.

`items` has them with method "adaptive", and level 1 of `ngrams`.

All rounds are one draw of the run. Noised weights of unreleased items exist only in the engine, so
a run that was interrupted between rounds redraws all of them, none of which was seen
(`dphh.journal`); one that was interrupted later finds all rounds stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels.set_union import ReweighedLevel, SetUnionLevel
from dphh.mechanisms.released_rows import as_array
from dphh.mechanisms.set_union.rounds import MIN_FINDS_OF_ROUND_1, merged_round
from dphh.privacy.reweighing import Reweighing

#: A round as it was run, and an Arrow table (key, noisy) of what it released.
DrawnRound = tuple[SetUnionLevel, Any]
ROUNDS_SCHEMA = pa.schema([("round", pa.int64()), ("key", pa.string()), ("noisy", pa.int64())])


@dataclass(frozen=True)
class SipsRounds:
    """Rounds of set union in their order, and what replaces the later ones."""

    levels: tuple[SetUnionLevel, ...]

    def next_round(self, ran: Sequence[DrawnRound]) -> SetUnionLevel | None:
        """The round that follows those that ran, or None after the last."""
        left: Sequence[SetUnionLevel] = self.levels
        for number in range(1, len(ran) + 1):
            left = self.remaining_rounds(ran[:number], left[1:])
        return left[0] if left else None

    def table_of_rounds(self, ran: Sequence[DrawnRound]) -> Any:
        """All that the rounds released, as one table (round, key, noisy)."""
        tables = []
        for level, released in ran:
            numbers = pa.array(np.full(released.num_rows, level.round, np.int64))
            keys = as_array(released.column("key"), pa.string())
            noisy = as_array(released.column("noisy"), pa.int64())
            tables.append(pa.table([numbers, keys, noisy], schema=ROUNDS_SCHEMA))
        return pa.concat_tables(tables)

    def rounds_of_table(self, drawn: Any) -> Iterator[DrawnRound]:
        """Reads a `table_of_rounds`: yields each round as it was run, and what it released."""
        numbers = as_array(drawn.column("round"), pa.int64()).to_numpy()
        ran: list[DrawnRound] = []
        while (level := self.next_round(ran)) is not None:
            ran.append((level, drawn.filter(pa.array(numbers == level.round))))
            yield ran[-1]

    def remaining_rounds(
        self, ran: Sequence[DrawnRound], planned: Sequence[SetUnionLevel]
    ) -> Sequence[SetUnionLevel]:
        """The rounds still to run: the planned ones, or others if what was released asks for it."""
        few = len(ran) == 1 and ran[0][1].num_rows < MIN_FINDS_OF_ROUND_1
        return [merged_round(planned)] if few and planned else planned


def reweighing_of_round(ran: Sequence[DrawnRound], level: SetUnionLevel) -> Reweighing | None:
    """The public numbers from which this round's weights follow; None if its weights are equal."""
    if not isinstance(level, ReweighedLevel):
        return None
    return Reweighing.after_rounds(
        [each.round_noise for each, _ in ran], level.threshold_grid, level.grid_bits
    )
