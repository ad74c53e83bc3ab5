"""Reports of a whole level drawn at once, for engines in mode "aggregate"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels import LocalLevel
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.subset_reports import draw_aggregate


def aggregate_reports(randomness: Randomness, held: Any, level: LocalLevel, purpose: str) -> Any:
    """An Arrow table (value, reports) of all values, from how many reports are for each of some.

    `held` is an Arrow table (value, holders); who holds none of them says "nothing".
    """
    sent = level.users * level.contributions
    holders = np.zeros(level.domain, dtype=np.int64)
    holders[held.column("value").to_numpy()] = held.column("holders").to_numpy()
    holders[-1] = sent - holders[:-1].sum()
    reports = draw_aggregate(randomness, holders, sent, level.mechanism, purpose)
    return pa.table({"value": np.arange(level.domain, dtype=np.int64), "reports": reports})
