"""`items`: DPSU runs one round; DP-SIPS several, each without what the earlier ones released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from dphh.engines.session import Session
from dphh.levels import SetUnionLevel
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.price import Price


def items_levels(price: Price, session: Session, _: str) -> Iterator[LevelDone]:
    session.hold_items()
    passed: Any = None
    for level in price.levels:
        assert isinstance(level, SetUnionLevel)
        if passed is not None:
            session.forget(passed)
        passed = session.items_level(level, f"items/round {level.round}")
        items = whole(passed.column("key"), pa.string())
        noisy = whole(passed.column("noisy"), pa.int64())
        yield LevelDone(level, rows(level.level, items, singles(items), noisy, level.grid_bits))
