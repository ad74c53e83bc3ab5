"""`counts`: one level, and intervals from what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import COUNTED
from dphh.engines.session import Session
from dphh.levels import CountsLevel
from dphh.mechanisms.counts import OTHER
from dphh.mechanisms.released_rows import LevelDone, whole
from dphh.price import Price
from dphh.privacy.counts import count_intervals


def counts_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    (level,) = price.levels
    assert isinstance(level, CountsLevel)
    items, groups = price["of"], price["groups"]
    session.hold_texts()
    done, counted = counted_items(session, level, items, groups)
    within = len(items) if not price["by"] else len(items) * (len(groups) + 1)
    each = within // len(items)
    tokens = pa.array(items, pa.list_(pa.string())).take(
        pa.array(np.repeat(np.arange(len(items)), each))
    )
    names = pa.array([*groups, OTHER] * len(items)) if price["by"] else pa.nulls(within, pa.string())
    levels = pc.list_value_length(tokens).cast(pa.int32())
    columns = [levels, pc.binary_join(tokens, joiner), tokens, names, *counted]
    yield LevelDone(done, pa.table(columns, schema=COUNTED))


def counted_items(
    session: Session, level: CountsLevel, items: Any, groups: Any
) -> tuple[CountsLevel, tuple[Any, Any, Any]]:
    """Users, low and high of each item, within each group; and the level as it was run."""
    drawn = session.counts_level(level, items, groups, "counts")
    keys = whole(drawn.column("key"), pa.int64()).to_numpy()
    noisy = whole(drawn.column("noisy"), pa.int64()).to_numpy()[np.argsort(keys)]
    counts, lost = np.split(noisy, [level.keys])
    said = count_intervals(
        counts,
        lost,
        level.weighing,
        level.sigma_grid,
        level.confidence,
        simultaneous=level.simultaneous,
    )
    return replace(level, lost_grid=tuple(lost.tolist())), tuple(
        pa.array(column, pa.int64()) for column in (said.users, said.low, said.high)
    )
