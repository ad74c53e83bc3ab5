"""Draws all reports of a level at once, for engines in mode "aggregate"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.levels.ldp_trie import LocalLevel
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.subset_reports import draw_aggregate


def aggregate_reports(randomness: Randomness, held: Any, level: LocalLevel, purpose: str) -> Any:
    """An Arrow table (value, reports) of all values, with the noised number of reports for each.

    `held` is an Arrow table (value, holders). A user who holds none of the values reports nothing.
    Nothing is not a value and gets no count, so the table does not reveal how many users that is.
    """
    holders = np.zeros(level.values, dtype=np.int64)
    holders[held.column("value").to_numpy()] = held.column("holders").to_numpy()
    reports = draw_aggregate(randomness, holders, level.reports, level.mechanism, purpose)
    return pa.table({"value": np.arange(level.values, dtype=np.int64), "reports": reports})
