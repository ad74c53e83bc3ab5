"""`items`: DPSU runs one round; DP-SIPS several, each without what the earlier ones released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from dphh.engines.session import Session
from dphh.flows import LevelDone, rows, singles, whole
from dphh.levels import SetUnionLevel
from dphh.plan import Plan


def items_levels(plan: Plan, session: Session) -> Iterator[LevelDone]:
    session.hold_items()
    passed: Any = None
    for level in plan.levels:
        assert isinstance(level, SetUnionLevel)
        if passed is not None:
            session.forget(passed)
        passed = session.items_level(level, f"items/round {level.round}")
        items = whole(passed.column("key"), pa.string())
        noisy = whole(passed.column("noisy"), pa.int64())
        yield LevelDone(level, rows(level.level, items, singles(items), noisy, level.grid_bits))
