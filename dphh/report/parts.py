"""What a page and a terminal show of releases: a part of each, and which have the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dphh.errors import UsageError
from dphh.report import sentences
from dphh.report.bar_tables import Row, Table, meaning_of_numbers, named, tables_of
from dphh.report.change import sides_of
from dphh.report.moves import Comparison, comparison, moved_in_words, name_of
from dphh.report.phrases import Found, found_in
from dphh.report.rows import released_in_words
from dphh.report.sentences import (
    Manifest,
    Released,
    counting_of,
    groups_of,
    has_every_given_item,
)

#: How many phrases come first: of the highest numbers, that rose, that fell.
MOST_FINDINGS = 3


@dataclass(frozen=True)
class Part:
    """What is shown of one release."""

    release: Released
    found: Found
    tables: Sequence[Table]
    #: What the numbers are.
    meaning: str
    #: How it differs from an earlier release, or its last period from the one before.
    changes: Comparison | None
    #: The manifest of that earlier release; empty without one.
    earlier: Manifest
    #: The part before it of the same rows, all together, whose words, order and totals it follows.
    whole: Part | None = None
    #: The parts after it that this is so of.
    by_groups: list[Part] = field(default_factory=list)
    #: Of a release that counted what another found: what else that one found.
    rest: Part | None = None
    #: Whether it is such a rest.
    is_rest: bool = False

    @property
    def tables_with_rest(self) -> Sequence[tuple[Part, Table]]:
        """All of its tables, then those of the rest, each with the part that it is of."""
        both = [part for part in (self, self.rest) if part]
        return [(part, table) for part in both for table in part.tables]

    @property
    def are_periods(self) -> bool:
        """Whether the groups are days, weeks or months, which are drawn as time."""
        return sentences.are_periods(self.release.manifest)

    @property
    def highest(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """For all people (""), each group, or the last period: the phrases of the highest numbers,
        with these, if there are more phrases."""
        if not self.tables or self.tables[0].count <= MOST_FINDINGS:
            return []
        table = self.tables[0]
        names = table.names if len(table.groups) > 1 else ("",)
        lists = [(name, table.highest(place)) for place, name in enumerate(names)]
        return lists[-1 if self.are_periods else 0 :]

    def moved(self, word: str) -> Mapping[str, str]:
        """The phrases that rose, or fell, that first of which most is sure: their numbers, and in
        which groups."""
        moves = self.changes.moves if self.changes else ()
        moved = {(text, group): of for text, group, of in moves if of["change"] == word}
        by = self.tables[0].by if self.tables else ""
        groups = groups_of(self.release.manifest) if by else ()
        said = {text: named(by, [of for of in groups if (text, of) in moved])
                or f"{moved_in_words(of)} people" for (text, _), of in moved.items()}  # fmt: skip
        for part in self.by_groups:
            surest = "" if any("; surest in" in of for of in said.values()) else "surest in "
            said |= {text: f"{said[text]}; {surest}{in_groups}"
                     for text, in_groups in part.moved(word).items() if text in said}  # fmt: skip
        return said

    @property
    def where(self) -> Mapping[str, str]:
        """Of each phrase, for each part by groups: that with more than half of its people, or those
        of the highest numbers."""
        said: dict[str, list[str]] = {}
        for place, part in enumerate(self.by_groups or ([] if self.whole else [self])):
            for row in part.tables[0].rows if part.tables else ():
                most = MOST_FINDINGS if place == 0 else 2
                if of := _highest_of(row, part.tables[0], most if part.whole else 0):
                    said.setdefault(row.wording, []).append(of)
        return {text: " · ".join(of) for text, of in said.items()}

    @property
    def by(self) -> str:
        """The column that it has groups of."""
        return str(self.release.manifest["parameters"]["by"])

    def change_of(self, row: Row, group: str | None) -> Mapping[str, Any] | None:
        return self.changes.differences.get((row.tokens, group)) if self.changes else None

    @property
    def heading(self) -> str:
        """Of which rows the release is, and within which groups it counts."""
        by = self.release.manifest.get("parameters", {}).get("by")
        said = (name_of(self.release) or "All rows") + (f", by {by}" if by else "")
        return said[:1].upper() + said[1:] + (", as found" if self.is_rest else "")

    @property
    def released(self) -> str:
        return released_in_words(self.release.manifest)

    @property
    def fewest(self) -> int:
        """The smallest number of people of a phrase that was found, of all that are shown; 0 if
        none is known."""
        part = self.rest or self
        if has_every_given_item(part.release.manifest) or part.found.number != "users":
            return 0
        of = (table for table in part.tables if table.kind.startswith(("phrase", "further phrase")))
        return min((table.smallest for table in of if table.smallest), default=0)

    @property
    def floor(self) -> int:
        """`min_users`, below which an interval may begin whose cell is empty."""
        return int(counting_of(self.release.manifest).get("min_users", 0))


def _highest_of(row: Row, table: Table, most: int) -> str:
    """The groups of its highest numbers that are clearly above 0, or the one that most are in."""
    bars = zip(table.names, table.groups, row.bars, strict=True)
    clear = [
        (-(bar.value or 0), name, str(group))
        for name, group, bar in bars
        if bar.value is not None and not sentences.is_weak(bar.low, bar.high)
    ]
    if row.place:
        numbers = [f": {-value:,.0f}" for value, name, _ in clear if name == row.place and most]
        return "".join([f"mostly in {row.place}", *numbers])
    said = [f"{group}: {-value:,.0f}" for value, _, group in sorted(clear)[:most]]
    return (clear[0][1].removesuffix(clear[0][2]) if said else "") + ", ".join(said)


#: A release, and an earlier one.
Pair = tuple[Released, Released | None]


def parts_of(shown: Sequence[Released], against: Sequence[Released], most_rows: int) -> list[Part]:
    """A part of each release; of one that found and one that counted the same rows, one of both.

    against: earlier releases; each belongs to the first that it compares with and has none yet."""
    if len(against) > len(shown):
        raise UsageError(
            f"against: found {len(against)} releases for {len(shown)}; give one for each release"
        )
    pairs = [*_with_counts([*_with_earlier(shown, against)])]
    manifests = [release.manifest for (release, _), _ in pairs]
    wholes = [
        next((at for at in range(place) if _is_whole_of(manifests[at], each)), None)
        for place, each in enumerate(manifests)
    ]
    parts: list[Part] = []
    for place, ((release, earlier), counted) in enumerate(pairs):
        if (at := wholes[place]) is not None:
            whole = parts[at]
            found = whole.found
            if whole.rest:  # what is counted by groups alone comes last
                found = replace(found, phrases=[*found.phrases, *whole.rest.found.further])
            part = _part(release, most_rows, found, earlier, whole=whole)
            whole.by_groups.append(part)
        else:
            # One thing has one wording in all tables of the same rows, and one place.
            tables = [of for at, (pair, _) in zip(wholes, pairs, strict=True) if at == place
                      for of in pair if of]  # fmt: skip
            counts = [of for of in counted or () if of]
            found = found_in(release, earlier, tables, counts)
            if counted is None:
                part = _part(release, most_rows, found, earlier)
            else:
                found, left = found.apart([each.to_polars()["tokens"] for each in counts])
                part = _part(counts[0], most_rows, found, counted[1] or earlier)
                rest = _part(release, most_rows, left, earlier, rest_of=part)
                part = replace(part, rest=rest)
        parts.append(part)
    return parts


def _part(
    release: Released,
    most_rows: int,
    found: Found,
    earlier: Released | None = None,
    *,
    whole: Part | None = None,
    rest_of: Part | None = None,
) -> Part:
    changes = comparison(release, earlier, found)
    before = rest_of.tables if rest_of else ()
    tables = tables_of(release, most_rows, found, of_whole=whole is not None, after=before)
    meaning = meaning_of_numbers(release, tables)
    manifest = earlier.manifest if earlier else {}
    return Part(release, found, tables, meaning, changes, manifest, whole, is_rest=bool(rest_of))


def _with_earlier(shown: Sequence[Released], against: Sequence[Released]) -> Iterator[Pair]:
    """Each, with the first of the earlier releases that are left and compare with it."""
    left, alone = [*against], []
    for release in shown:
        earlier = next((each for each in left if _compare(release, each)), None)
        if earlier is None:
            alone.append(release)
        else:
            left.remove(earlier)
        yield release, earlier
    if left:
        sides_of(alone[0], left[0], None, None)  # raises an error that says why


def _compare(later: Released, earlier: Released) -> bool:
    try:
        return bool(sides_of(later, earlier, None, None))
    except UsageError:
        return False


def _with_counts(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Pair | None]]:
    """Each, with the one that counted the same rows, if it found; where the first of both is."""
    counts: dict[int, int] = {}
    for place, (release, _) in enumerate(pairs):
        for at, (other, _) in enumerate(pairs):
            if place not in counts and at not in counts.values() and _counts(other, release):
                counts[place] = at
    firsts = {min(both): both for both in counts.items()}
    for place, pair in enumerate(pairs):
        if place in firsts:
            found, counted = firsts[place]
            yield pairs[found], pairs[counted]
        elif place not in {*counts, *counts.values()}:
            yield pair, None


def _counts(count: Released, found: Released) -> bool:
    """Whether one counts of its own, all together, what the other found in the same rows."""
    return (
        has_every_given_item(count.manifest)
        and not has_every_given_item(found.manifest)
        and _are_of_same_rows(count.manifest, found.manifest)
        and not any(groups_of(each.manifest) for each in (count, found))
        and all(counting_of(each.manifest) for each in (count, found))
    )


def _is_whole_of(whole: Manifest, groups: Manifest) -> bool:
    """Whether one counts all together what the other counts by groups that are no periods."""
    by = groups_of(groups) and not groups_of(whole) and not sentences.are_periods(groups)
    return bool(by and _are_of_same_rows(whole, groups) and counting_of(whole))


def _are_of_same_rows(*manifests: Manifest) -> bool:
    one, other = ((each["privacy"]["unit"], each["parameters"].get("content"))
                  for each in manifests)  # fmt: skip
    return bool(one == other)
