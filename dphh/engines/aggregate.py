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

    `held` is an Arrow table (value, holders). Who holds none of them reports nothing, which is no
    value: no count is drawn for it, and so it tells nothing of how much anybody holds.
    """
    holders = np.zeros(level.values, dtype=np.int64)
    holders[held.column("value").to_numpy()] = held.column("holders").to_numpy()
    reports = draw_aggregate(randomness, holders, level.reports, level.mechanism, purpose)
    return pa.table({"value": np.arange(level.values, dtype=np.int64), "reports": reports})
