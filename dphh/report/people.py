"""How many people hold what a release has, in all or within each of its groups.

A release that counts within groups has a row for each item in each group. Nobody may take one
group's number for the number of all, or an item for as many items: whoever reads counts, reads
them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple

from dphh.report.released import Released
from dphh.wording.counted import groups_of, intervals_hold

#: The columns of a release that says how many people.
PEOPLE = ("users", "low", "high")
Tokens = tuple[str, ...]


class Count(NamedTuple):
    """How many users, and the ends of the interval."""

    users: float
    low: float
    high: float


@dataclass(frozen=True)
class People:
    """Of each item that was counted: one count, or one for each of the groups, in their order."""

    counts: Mapping[Tokens, tuple[Count | None, ...]]
    #: None where people were counted in all.
    groups: tuple[str, ...] | None
    #: The column that the groups are values of.
    by: str
    #: How far an interval can be relied on.
    held: str

    def __len__(self) -> int:
        return len(self.counts)

    def weight(self, tokens: Tokens) -> float:
        """What orders items: who is in several groups counts in each."""
        return sum(count.users for count in self.counts[tokens] if count is not None)

    def said_by_longer(self) -> set[Tokens]:
        """Parts of longer phrases that as many people may hold, whatever the group: the longer one
        says all that they say. As many: the counts differ by no more than their noise."""
        said = set()
        for longer, theirs in self.counts.items():
            for part in parts_of(longer):
                own = self.counts.get(part)
                if own is not None and all(map(_as_many, theirs, own)):
                    said.add(part)
        return said


def people_of(release: Released) -> People:
    """What this release says of people; of nobody, where it counted nobody."""
    manifest, table = release.manifest, release.table
    by = str(manifest.get("parameters", {}).get("by") or "group")
    if not set(PEOPLE) <= set(table.column_names):
        return People({}, None, by, "")
    columns = [name for name in ("item", "tokens", "group", *PEOPLE) if name in table.column_names]
    rows = [row for row in table.select(columns).to_pylist() if row["users"] is not None]
    groups = groups_of(table, manifest)
    places = {group: place for place, group in enumerate(groups or (None,))}
    counts: dict[Tokens, list[Count | None]] = {}
    for row in rows:
        of_item = counts.setdefault(tuple(row["tokens"] or [row["item"]]), [None] * len(places))
        of_item[places[row.get("group")]] = Count(row["users"], row["low"], row["high"])
    together = {tokens: tuple(each) for tokens, each in counts.items()}
    return People(together, groups, by, intervals_hold(manifest))


def parts_of(tokens: Tokens) -> set[Tokens]:
    """What stands inside a phrase and is shorter."""
    length = len(tokens)
    return {
        tokens[start:stop]
        for start in range(length)
        for stop in range(start + 1, length + 1)
        if stop - start < length
    }


def _as_many(longer: Count | None, part: Count | None) -> bool:
    if longer is None or part is None:
        return False
    noise = hypot(part.users - part.low, longer.high - longer.users)
    return part.users - longer.users <= noise
