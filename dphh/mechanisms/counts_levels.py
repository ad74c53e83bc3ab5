"""`counts`: one level, and intervals from what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import COUNTED, COUNTED_IN_GROUPS
from dphh.engines.session import Session
from dphh.levels import CountsLevel
from dphh.mechanisms.counts import OTHER
from dphh.mechanisms.released_rows import LevelDone, whole
from dphh.price import Price
from dphh.privacy.counts import count_intervals

Item = Sequence[str]


def counts_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    (level,) = price.levels
    assert isinstance(level, CountsLevel)
    names = (*price["groups"], OTHER) if price["by"] is not None else (None,)
    done, counted = counted_items(session, level, price["of"], price["groups"])
    items = pa.array(price["of"], pa.list_(pa.string()))
    tokens = items.take(pa.array(np.repeat(np.arange(len(items)), len(names))))
    groups = pa.array(names * len(items), pa.string())
    columns = {
        "level": pc.list_value_length(tokens).cast(pa.int32()),
        "item": pc.binary_join(tokens, joiner),
        "tokens": tokens,
        "group": groups,
        **counted,
    }
    schema = COUNTED if price["by"] is None else COUNTED_IN_GROUPS
    yield LevelDone(done, pa.table([columns[name] for name in schema.names], schema=schema))


def counted_items(
    session: Session, level: CountsLevel, items: Sequence[Item], groups: Sequence[str]
) -> tuple[CountsLevel, dict[str, Any]]:
    """The level as it was run; and of each item, within each group, users, low and high."""
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
    columns = {"users": said.users, "low": said.low, "high": said.high}
    done = replace(level, lost_grid=tuple(lost.tolist()))
    return done, {name: pa.array(column, pa.int64()) for name, column in columns.items()}
