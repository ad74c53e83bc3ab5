"""`items`: DPSU runs one round; DP-SIPS several, each without what the earlier ones released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.session import Session
from dphh.levels import SetUnionLevel
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.mechanisms.set_union.price import SIPS_COMMON, round_alone
from dphh.price import Price


def items_levels(price: Price, session: Session, _: str) -> Iterator[LevelDone]:
    session.hold_items()
    rounds = [level for level in price.levels if isinstance(level, SetUnionLevel)]
    passed: Any = None
    most: int | None = None
    while rounds:
        level, *rounds = rounds
        if passed is not None:
            session.forget(passed)
        passed = session.items_level(level, f"items/round {level.round}")
        items = whole(passed.column("key"), pa.string())
        noisy = whole(passed.column("noisy"), pa.int64()).to_numpy()
        # What an earlier round left weighs no more there than that round's threshold.
        scored = noisy if most is None else np.minimum(noisy, most)
        most = level.threshold_grid
        yield LevelDone(level, rows(level.level, items, singles(items), scored, level.grid_bits))
        if level.round == 1 and rounds and len(items) < SIPS_COMMON:
            rounds = [round_alone(rounds)]
