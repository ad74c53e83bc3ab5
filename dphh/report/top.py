"""The first k items of a release. Post-processing: it costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.columns import interleaved_by_level
from dphh.errors import UsageError
from dphh.report.released import Released
from dphh.wording.options import check_whole

#: Columns to sort by, in order of preference: the number of users, else the score.
HEAVY = ("users", "score")


def top_of(release: Released, k: int) -> Any:
    """The first of each level, then the second of each, and so on, up to k items. An item counted
    within groups keeps all its rows and sorts by their sum, so several groups of a user all add."""
    check_whole("k", k)
    table = release.table
    known = [name for name in HEAVY if name in table.column_names]
    by = next((name for name in known if table.column(name).null_count < len(table)), None)
    if by is None:
        if len(table):
            raise UsageError(
                "top: this release has neither scores nor counts to sort by; run it with counts=, "
                "or run `counts` of it, and take the top of that"
            )
        return table
    weighed = table.filter(table.column(by).is_valid())
    if "group" not in table.column_names:
        return _heaviest_rows(weighed, by, k)
    summed = weighed.group_by(["level", "item"]).aggregate([(by, "sum")])
    best = _heaviest_rows(summed, f"{by}_sum", k)
    rank = {item: place for place, item in enumerate(_items_of_rows(best))}
    ranks = np.array([rank.get(item, len(rank)) for item in _items_of_rows(weighed)], np.int64)
    order = np.argsort(ranks, kind="stable")
    return weighed.take(pa.array(order[: np.count_nonzero(ranks < len(rank))]))


def _heaviest_rows(table: Any, by: str, k: int) -> Any:
    table = table.sort_by([("level", "ascending"), (by, "descending"), ("item", "ascending")])
    chosen = interleaved_by_level(table.column("level").to_numpy())[:k]
    return table.take(pa.array(np.sort(chosen)))


def _items_of_rows(table: Any) -> list[tuple[int, str]]:
    columns = (table.column(name).to_pylist() for name in ("level", "item"))
    return list(zip(*columns, strict=True))
