"""How many users hold each item of a release, in total or within each group.

A release that counts within groups has one row for each item and group. All code that reads counts
reads them here, so that no group's number is taken for the total, and no item is counted once per
group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple

from dphh.report.counted import about_counts, groups_of
from dphh.report.released import Released

#: The share of a part's users that makes a longer phrase say all that the part says.
NEARLY = 0.8
#: The columns of a release that counts users.
PEOPLE = ("users", "low", "high")
Tokens = tuple[str, ...]


class Count(NamedTuple):
    """A number of users and the ends of its interval."""

    users: float
    low: float
    high: float


@dataclass(frozen=True)
class People:
    """The counts of each item: one in total, or one per group in the order of `groups`."""

    counts: Mapping[Tokens, tuple[Count | None, ...]]
    #: None if users were counted in total.
    groups: tuple[str, ...] | None
    #: The column whose values are the groups.
    by: str
    #: A sentence that says how far an interval can be relied on.
    held: str

    def __len__(self) -> int:
        return len(self.counts)

    def rank(self, tokens: Tokens) -> tuple[float, float]:
        """The sort key of items: where their intervals begin, then the estimates, most first. Both
        are sums over groups, so a user in several groups adds to each."""
        known = [count for count in self.counts[tokens] if count is not None]
        return -sum(count.low for count in known), -sum(count.users for count in known)

    def stands_out(self, tokens: Tokens) -> bool:
        """Whether an interval of the item begins above 0, in any group."""
        return any(count is not None and count.low > 0 for count in self.counts[tokens])

    def redundant_parts(self) -> set[Tokens]:
        """Parts of longer phrases that hardly anybody holds without the longer one, which makes
        them redundant."""
        said = set()
        for longer, theirs in self.counts.items():
            for part in parts_of(longer):
                own = self.counts.get(part)
                if own is not None and _is_redundant(theirs, own):
                    said.add(part)
        return said


def people_of(release: Released) -> People:
    """The user counts of a release; empty if it counted no users."""
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
    return People(together, groups, by, about_counts(table, manifest))


def parts_of(tokens: Tokens) -> set[Tokens]:
    """All shorter contiguous parts of a phrase."""
    length = len(tokens)
    return {
        tokens[start:stop]
        for start in range(length)
        for stop in range(start + 1, length + 1)
        if stop - start < length
    }


def _is_redundant(longer: Sequence[Count | None], part: Sequence[Count | None]) -> bool:
    """Whether nearly all who hold a part hold the longer phrase, by their counts.

    In every group the counts differ by their noise at most. That alone would also drop a part that
    many hold for a longer phrase that few do, where the noise is large. So in the groups in which
    the part is surely held, the longer phrase is surely held too, and by nearly as many.
    """
    if not all(map(_differ_by_noise_only, longer, part)):
        return False
    pairs = [(one, own) for one, own in zip(longer, part, strict=True) if one and own]
    sure = [(one, own) for one, own in pairs if own.low > 0]
    if sure and not any(one.low > 0 for one, _ in sure):
        return False
    return sum(one.users for one, _ in sure or pairs) >= NEARLY * sum(
        own.users for _, own in sure or pairs
    )


def _differ_by_noise_only(longer: Count | None, part: Count | None) -> bool:
    if longer is None or part is None:
        return False
    noise = hypot(part.users - part.low, longer.high - longer.users)
    return part.users - longer.users <= noise
