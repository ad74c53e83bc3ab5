"""How many users hold each item of a release, in total or within each group.

A release that counts within groups has one row for each item and group. All code that reads counts
reads them here, so that no group's number is taken for the total, and no item is counted once per
group.

What is shown was chosen by its counts, and the largest of a thousand noised counts are largest
because of their noise: an interval that holds by itself with probability 0.95 misses most of them.
Intervals that hold together, over all counts among which a list chose, hold for whatever it chose.
They follow from a release's table and manifest, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dphh.privacy.counts import Weighing, simultaneous_intervals
from dphh.report.counted import by_of, counting_of, groups_of

#: The share of a part's users that makes a longer phrase say all that the part says.
NEARLY = 0.8
#: The columns of a release that counts users.
PEOPLE = ("users", "low", "high")
Tokens = tuple[str, ...]


class Released(Protocol):
    """What this folder needs of a release: it does not import the class `Release`."""

    @property
    def table(self) -> Any: ...
    @property
    def manifest(self) -> dict[str, Any]: ...
    def dumps(self) -> str: ...


class Count(NamedTuple):
    """A number of users and the ends of its interval."""

    users: float
    low: float
    high: float


@dataclass(frozen=True)
class People:
    """The counts of each item: one in total, or one per group in the order of `groups`."""

    counts: Mapping[Tokens, tuple[Count, ...]]
    #: None if users were counted in total.
    groups: tuple[str, ...] | None
    #: The column whose values are the groups.
    by: str

    def rank(self, tokens: Tokens) -> tuple[float, float]:
        """The sort key of items: where their intervals begin, then the estimates, most first. Both
        are sums over groups, so a user in several groups adds to each."""
        return -sum(count.low for count in self.counts[tokens]), -self._users(tokens)

    def stands_out(self, tokens: Tokens) -> bool:
        """Whether an interval of the item begins above 0, in any group."""
        return any(count.low > 0 for count in self.counts[tokens])

    def redundant_parts(self) -> set[Tokens]:
        """Parts of longer phrases that nearly as many users hold: the longer one says it all."""
        return {
            part
            for longer in filter(self.stands_out, self.counts)
            for part in parts_of(longer) & self.counts.keys()
            if self._users(longer) >= NEARLY * self._users(part)
        }

    def _users(self, tokens: Tokens) -> float:
        return sum(count.users for count in self.counts[tokens])


def people_of(release: Released) -> People:
    """The user counts of a release, with intervals that hold together over all that it counted;
    empty if it counted no users."""
    manifest, table = release.manifest, release.table
    if not set(PEOPLE) <= set(table.column_names):
        return People({}, None, by_of(manifest))
    columns = [name for name in ("tokens", "group", *PEOPLE) if name in table.column_names]
    rows = [row for row in table.select(columns).to_pylist() if row["users"] is not None]
    groups = groups_of(table, manifest)
    place = {group: number for number, group in enumerate(groups or ())}
    rows.sort(key=lambda row: place.get(row.get("group"), 0))
    counting = counting_of(manifest)
    found = [Count(row["users"], row["low"], row["high"]) for row in rows]
    if found and not counting["simultaneous"]:
        found = _widened(found, counting)
    counts: dict[Tokens, tuple[Count, ...]] = {}
    for row, count in zip(rows, found, strict=True):
        tokens = tuple(row["tokens"])
        counts[tokens] = (*counts.get(tokens, ()), count)
    return People(counts, groups, by_of(manifest))


def _widened(counts: list[Count], counting: Mapping[str, Any]) -> list[Count]:
    weighing = Weighing(counting["keys"], counting["max_items"], counting["grid_bits"])
    users = np.array([count.users for count in counts], np.int64)
    lost = np.array(counting["lost_grid"], np.int64)
    found = simultaneous_intervals(
        users, lost, weighing, counting["sigma_grid"], counting["confidence"]
    )
    return list(map(Count, users.tolist(), found.low.tolist(), found.high.tolist()))


def parts_of(tokens: Tokens) -> set[Tokens]:
    """All shorter contiguous parts of a phrase."""
    length = len(tokens)
    return {
        tokens[start:stop]
        for start in range(length)
        for stop in range(start + 1, length + 1)
        if stop - start < length
    }
