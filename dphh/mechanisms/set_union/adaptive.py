"""`items` by "adaptive": rounds whose weights follow what earlier rounds' noise left of each item.

All rounds are one draw of the run: noised weights of what was not released are an engine's alone
and go with it, so a run that was cut short among its rounds draws all of them anew, of which nobody
has seen any (`dphh.journal`), and one that was cut short later finds all of them stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.rounds import Round
from dphh.levels import SetUnionLevel, WeighedLevel
from dphh.mechanisms.released_rows import whole
from dphh.mechanisms.set_union.price import SIPS_COMMON, round_alone
from dphh.privacy.following import Following

SCHEMA = pa.schema([("round", pa.int64()), ("key", pa.string()), ("noisy", pa.int64())])


@dataclass(frozen=True)
class AdaptiveRounds:
    levels: tuple[SetUnionLevel, ...]

    def run(self, draw: Round) -> Any:
        """(round, key, noisy) of all that passed, by what an engine draws for a round."""
        ran: list[SetUnionLevel] = []
        tables = []
        for level, found in self._rounds(lambda level: draw(level, follows(ran, level))):
            ran.append(level)
            numbers = pa.array(np.full(found.num_rows, level.round, np.int64))
            columns = [numbers, whole(found.column("key"), pa.string())]
            columns.append(whole(found.column("noisy"), pa.int64()))
            tables.append(pa.table(columns, schema=SCHEMA))
        return pa.concat_tables(tables)

    def read(self, drawn: Any) -> Iterator[tuple[SetUnionLevel, Any]]:
        """Each round as it was run, with (key, noisy) of what it released."""
        numbers = whole(drawn.column("round"), pa.int64()).to_numpy()
        return self._rounds(lambda level: drawn.filter(pa.array(numbers == level.round)))

    def _rounds(self, found_by: Any) -> Iterator[tuple[SetUnionLevel, Any]]:
        levels: Sequence[SetUnionLevel] = self.levels
        while levels:
            level, *levels = levels
            found = found_by(level)
            yield level, found
            if level.round == 1 and levels and found.num_rows < SIPS_COMMON:
                levels = [round_alone(levels)]


def follows(ran: Sequence[SetUnionLevel], level: SetUnionLevel) -> Following | None:
    """By what this round's weights follow from the earlier ones; None where they are equal."""
    if not isinstance(level, WeighedLevel):
        return None
    return Following.after([each.sigma_grid for each in ran], level.threshold_grid)
