"""The columns that releases have, whichever verb made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphh.errors import UsageError

#: Every column there may be. A verb's release has the first three, and what else it releases.
COLUMNS: dict[str, pa.DataType] = {
    "level": pa.int32(),
    "item": pa.string(),
    "tokens": pa.list_(pa.string()),
    #: The noised weight, which orders items within a level; NULL where none is released.
    "score": pa.float64(),
    #: Of an estimated score, how far off it is: one standard error.
    "error": pa.float64(),
    #: Whether a sequence ends here, or is a prefix that goes on.
    "ended": pa.bool_(),
    #: The declared group that a count is within.
    "group": pa.string(),
    #: How many users hold the item, and the interval that holds the truth.
    "users": pa.int64(),
    "low": pa.int64(),
    "high": pa.int64(),
}
ALWAYS = ("level", "item", "tokens")
#: The group of whatever is in none that was declared.
OTHER = "other"
#: A release is sorted by these of its columns.
ORDER = (
    ("level", "ascending"),
    ("score", "descending"),
    ("users", "descending"),
    ("item", "ascending"),
    ("group", "ascending"),
)


def schema_of(*more: str) -> pa.Schema:
    """The columns of a release that has these beside what all have."""
    return pa.schema([(name, COLUMNS[name]) for name in (*ALWAYS, *more)])


SCORED = schema_of("score")
#: Of tries.
GROWN = schema_of("score", "ended")
GROWN_AND_COUNTED = schema_of("score", "ended", "group", "users", "low", "high")
ESTIMATED = schema_of("score", "error", "ended")
#: Of counts, all in all or within groups.
COUNTED = schema_of("users", "low", "high")
COUNTED_IN_GROUPS = schema_of("group", "users", "low", "high")
#: Of what was found and, where that was asked for, counted.
SCORED_AND_COUNTED = schema_of("score", "group", "users", "low", "high")


#: What columns say, for whoever finds a release without its documentation.
MEANINGS = {
    "level": "how many tokens an item has; items of one level compare",
    "score": (
        "a noised weight that orders the items of one level; no number of people, no share of "
        "them, and nothing between levels"
    ),
    "error": "one standard error of the score, an estimate of how many reports were for the item",
    "ended": "whether a sequence ends here, or is a prefix that goes on",
    "group": "the declared group that a count is within; all others are other",
    "users": (
        "about how many users hold the item, never below 0; of a beginning, a sequence that begins "
        "so; NULL where that was not counted"
    ),
    "low": "with high, the interval that holds the true number of users",
    "high": "with low, the interval that holds the true number of users, bounding included",
}


def meanings(names: Iterable[str]) -> dict[str, str]:
    return {name: MEANINGS[name] for name in names if name in MEANINGS}


def described(table: Any) -> Any:
    """The same table, whose schema says what its columns are."""
    fields = [
        field.with_metadata({"description": MEANINGS[field.name]})
        if field.name in MEANINGS
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def in_turn(levels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of rows in order of their levels: the first of each level, then the second of each, and so
    on, since levels do not compare."""
    rank = np.arange(len(levels)) - np.searchsorted(levels, levels)
    return np.argsort(rank, kind="stable")


def in_order(table: Any) -> Any:
    return table.sort_by([key for key in ORDER if key[0] in table.column_names])


def checked_groups(by: str | None, groups: str | Sequence[str]) -> tuple[str, ...]:
    if by is None:
        if groups:
            raise UsageError("groups: goes with by=, which names the column of these values")
        return ()
    if not isinstance(by, str) or not by:
        raise UsageError(f"by: found {by!r}; name the column whose values are the groups")
    declared = tuple(map(str.strip, groups.split(",")) if isinstance(groups, str) else groups)
    if not declared or not all(isinstance(group, str) and group for group in declared):
        raise UsageError(
            "groups: say which values of the column to count within, as texts, such as "
            "['DE', 'FR']; all others are counted together"
        )
    if len(set(declared)) < len(declared) or OTHER in declared:
        raise UsageError(
            f"groups: each is declared once, and {OTHER!r} is what all others are counted as; "
            "leave these out"
        )
    return declared
