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
from dphh.mechanisms.set_union.rounds import SIPS_COMMON, merged_round
from dphh.privacy.following import ItemWeights

#: A round as it was run, and an Arrow table (key, noisy) of what it released.
Drawn = tuple[SetUnionLevel, Any]
SCHEMA = pa.schema([("round", pa.int64()), ("key", pa.string()), ("noisy", pa.int64())])


@dataclass(frozen=True)
class AdaptiveRounds:
    """The rounds of method "adaptive"."""

    levels: tuple[SetUnionLevel, ...]

    def next(self, ran: Sequence[Drawn]) -> SetUnionLevel | None:
        left: Sequence[SetUnionLevel] = self.levels
        for number in range(1, len(ran) + 1):
            left = self.remaining(ran[:number], left[1:])
        return left[0] if left else None

    def following(self, ran: Sequence[Drawn], level: SetUnionLevel) -> ItemWeights | None:
        return follows([each for each, _ in ran], level)

    def table(self, ran: Sequence[Drawn]) -> Any:
        """All that the rounds released: (round, key, noisy)."""
        return pa.concat_tables([_with_round(level, released) for level, released in ran])

    def read(self, drawn: Any) -> Iterator[Drawn]:
        """From that table: each round as it was run, with (key, noisy) that it released."""
        numbers = as_array(drawn.column("round"), pa.int64()).to_numpy()
        ran: list[Drawn] = []
        while (level := self.next(ran)) is not None:
            ran.append((level, drawn.filter(pa.array(numbers == level.round))))
            yield ran[-1]

    def remaining(
        self, ran: Sequence[Drawn], planned: Sequence[SetUnionLevel]
    ) -> Sequence[SetUnionLevel]:
        """The rounds that follow those that ran: what they released decides."""
        few = len(ran) == 1 and ran[0][1].num_rows < SIPS_COMMON
        return [merged_round(planned)] if few and planned else planned


def _with_round(level: SetUnionLevel, released: Any) -> Any:
    numbers = pa.array(np.full(released.num_rows, level.round, np.int64))
    keys = as_array(released.column("key"), pa.string())
    noisy = as_array(released.column("noisy"), pa.int64())
    return pa.table([numbers, keys, noisy], schema=SCHEMA)


def follows(ran: Sequence[SetUnionLevel], level: SetUnionLevel) -> ItemWeights | None:
    """The public numbers of this round's weights; None if its weights are equal."""
    if not isinstance(level, ReweighedLevel):
        return None
    return ItemWeights.after(
        [each.round_noise for each in ran], level.threshold_grid, level.grid_bits
    )
