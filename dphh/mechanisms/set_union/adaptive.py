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

from dphh.levels import SetUnionLevel, WeighedLevel
from dphh.mechanisms.released_rows import whole
from dphh.mechanisms.set_union.rounds import SIPS_COMMON, round_alone
from dphh.privacy.following import Following
from dphh.session.protocol import Round

#: A round as it was run, and (key, noisy) of what it released.
Ran = tuple[SetUnionLevel, Any]
SCHEMA = pa.schema([("round", pa.int64()), ("key", pa.string()), ("noisy", pa.int64())])


@dataclass(frozen=True)
class AdaptiveRounds:
    """The rounds of method "adaptive"."""

    levels: tuple[SetUnionLevel, ...]
    #: Whether longer n-grams are still to be found in the original texts.
    keeps_texts: bool = False

    def run(self, draw: Round) -> Any:
        """Run all rounds with an engine's `draw`: (round, key, noisy) of all released items."""
        ran: list[SetUnionLevel] = []
        tables = []
        for level, found in self._run_rounds(lambda level: draw(level, follows(ran, level))):
            ran.append(level)
            numbers = pa.array(np.full(found.num_rows, level.round, np.int64))
            columns = [numbers, whole(found.column("key"), pa.string())]
            columns.append(whole(found.column("noisy"), pa.int64()))
            tables.append(pa.table(columns, schema=SCHEMA))
        return pa.concat_tables(tables)

    def read(self, drawn: Any) -> Iterator[Ran]:
        """From `run`'s table: each round as it was run, with (key, noisy) that it released."""
        numbers = whole(drawn.column("round"), pa.int64()).to_numpy()
        return self._run_rounds(lambda level: drawn.filter(pa.array(numbers == level.round)))

    def _run_rounds(self, found_by: Any) -> Iterator[Ran]:
        ran: list[Ran] = []
        left: Sequence[SetUnionLevel] = self.levels
        while left:
            level, *left = left
            ran.append((level, found_by(level)))
            yield ran[-1]
            left = self.left(ran, left)

    def left(self, ran: Sequence[Ran], planned: Sequence[SetUnionLevel]) -> Sequence[SetUnionLevel]:
        """The rounds that follow those that ran: what they released decides."""
        few = len(ran) == 1 and ran[0][1].num_rows < SIPS_COMMON
        return [round_alone(planned)] if few and planned else planned


def follows(ran: Sequence[SetUnionLevel], level: SetUnionLevel) -> Following | None:
    """The public numbers of this round's weights; None if its weights are equal."""
    if not isinstance(level, WeighedLevel):
        return None
    return Following.after([each.grid for each in ran], level.threshold_grid, level.grid_bits)
