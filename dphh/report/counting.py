"""Reads from a manifest how users were counted: the weighing, and the key of each row's count."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dphh.privacy.changes import NoisedCounts
from dphh.privacy.counts import factors_of_sizes
from dphh.report.sentences import Manifest, counting_of, groups_of
from dphh.udfs.arrays import Integers
from dphh.udfs.rules.counts import Weighing


def weighing_of(counting: Manifest) -> Weighing:
    """How a user weighed on each key. Rough counts, if the run took any, give the factors."""
    rough: Any = counting.get("rough_grid")
    return Weighing(
        counting["keys"],
        counting["max_items"],
        counting["grid_bits"],
        counting["groups_of_item"],
        factors_of_sizes(np.array(rough), counting["rough_sigma"]) if rough else (),
    )


def keys_of_rows(rows: pl.DataFrame, manifest: Manifest, group: str | None = None) -> Integers:
    """The key of each row's count. Without factors a group's keys weigh alike, so its first stands
    for any. group: the group of all rows; without it, rows name theirs."""
    groups = groups_of(manifest) or (None,)
    number = {name: place for place, name in enumerate(groups)}
    has_groups = group is None and "group_name" in rows
    names = rows["group_name"] if has_groups else [group] * len(rows)
    keys = np.array([number.get(name, 0) for name in names], np.int64)
    if weighing_of(counting_of(manifest)).factors:
        items = {tuple(item): place for place, item in enumerate(manifest["parameters"]["of"])}
        tokens = map(tuple, rows["tokens"].to_list())
        keys += np.array([items.get(item, 0) for item in tokens], np.int64) * len(groups)
    return keys


def noised_counts(
    manifest: Manifest, rows: pl.DataFrame, column: str, group: str | None = None
) -> NoisedCounts:
    """A column of numbers of users, one for each row, with what the manifest says of their noise.
    group: as in `keys_of_rows`."""
    counting = counting_of(manifest)
    return NoisedCounts(
        rows[column].to_numpy(),
        np.array(counting["lost_grid"], np.int64),
        weighing_of(counting),
        counting["sigma_grid"],
        keys_of_rows(rows, manifest, group),
    )
