"""Divides what a page or a terminal shows into parts, one for each release; parts of the same rows
share their phrases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dphh.errors import UsageError
from dphh.report import sentences
from dphh.report.bar_tables import Row, Table, groups_in_words, meaning_of_numbers, tables_of
from dphh.report.change import sides_of
from dphh.report.moves import Comparison, before_and_now, comparison, name_of
from dphh.report.phrases import Findings, findings_of
from dphh.report.rows import released_in_words
from dphh.report.sentences import Manifest, Released, counting_of, groups_of, has_every_given_item

#: How many phrases come first of each kind: of the highest numbers, risen, fallen.
MOST_FINDINGS = 3


@dataclass(frozen=True)
class Part:
    """What is shown of one release."""

    release: Released
    findings: Findings
    tables: Sequence[Table]
    #: A sentence that says what the numbers are.
    meaning: str
    #: How it differs from an earlier release, or its last period from the one before.
    changes: Comparison | None
    #: The manifest of that earlier release; empty without one.
    earlier: Manifest
    #: If it counts by groups: the earlier part that counts the same rows all together. This part
    #: has that part's phrases in that part's order.
    whole: Part | None = None
    #: The later parts whose `whole` this part is.
    by_groups: list[Part] = field(default_factory=list)
    #: If it counts what another release found: what else that other release found.
    rest: Part | None = None
    #: Whether it is the `rest` of another part.
    is_rest: bool = False

    @property
    def tables_with_rest(self) -> Sequence[tuple[Part, Table]]:
        """Each table of this part and then of its rest, with the part that it belongs to."""
        both = [part for part in (self, self.rest) if part]
        return [(part, table) for part in both for table in part.tables]

    @property
    def are_periods(self) -> bool:
        """Whether the groups are days, weeks or months, which are drawn as time."""
        return sentences.are_periods(self.release.manifest)

    @property
    def highest(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """The highest phrases with their numbers: of all people (""), of each group, or of the last
        period. Empty if there are so few phrases that all are seen."""
        if not self.tables or self.tables[0].count <= MOST_FINDINGS:
            return []
        table = self.tables[0]
        names = table.names if len(table.groups) > 1 else ("",)
        lists = [(name, table.highest(place)) for place, name in enumerate(names)]
        return lists[-1 if self.are_periods else 0 :]

    def moved(self, word: str) -> Mapping[str, str]:
        """The phrases that rose, or fell, the surest first; and of each, in words, the groups where
        it did or its numbers."""
        moves = self.changes.moves if self.changes else ()
        rows = {(text, group): row for text, group, row in moves if row["change"] == word}
        by = self.tables[0].by if self.tables else ""
        groups = groups_of(self.release.manifest) if by else ()
        notes = {text: groups_in_words(by, [group for group in groups if (text, group) in rows])
                 or f"{before_and_now(row)} people" for (text, _), row in rows.items()}  # fmt: skip
        for part in self.by_groups:
            surest = "" if any("; surest in" in note for note in notes.values()) else "surest in "
            notes |= {text: f"{notes[text]}; {surest}{in_groups}"
                      for text, in_groups in part.moved(word).items() if text in notes}  # fmt: skip
        return notes

    @property
    def where(self) -> Mapping[str, str]:
        """For each phrase, in words and for each part by groups: the group that has more than half
        of its people, or else the groups of the highest numbers."""
        notes: dict[str, list[str]] = {}
        for place, part in enumerate(self.by_groups or ([] if self.whole else [self])):
            for row in part.tables[0].rows if part.tables else ():
                most = MOST_FINDINGS if place == 0 else 2
                if note := _highest_of(row, part.tables[0], most if part.whole else 0):
                    notes.setdefault(row.wording, []).append(note)
        return {text: " · ".join(notes_of_text) for text, notes_of_text in notes.items()}

    @property
    def by(self) -> str:
        """The column whose values are its groups."""
        return str(self.release.manifest["parameters"]["by"])

    def change_of(self, row: Row, group: str | None) -> Mapping[str, Any] | None:
        return self.changes.differences.get((row.tokens, group)) if self.changes else None

    @property
    def heading(self) -> str:
        """The rows that the release is about, and the column by whose groups it counts."""
        by = self.release.manifest.get("parameters", {}).get("by")
        rows = (name_of(self.release) or "All rows") + (f", by {by}" if by else "")
        return rows[:1].upper() + rows[1:] + (", as found" if self.is_rest else "")

    @property
    def released(self) -> str:
        return released_in_words(self.release.manifest)

    @property
    def fewest(self) -> int:
        """The smallest number of people that a shown phrase, found by a run, has; 0 if none is
        known."""
        part = self.rest or self
        if has_every_given_item(part.release.manifest) or part.findings.number != "users":
            return 0
        kinds = "phrase", "further phrase"
        smallest = [table.smallest for table in part.tables if table.kind.startswith(kinds)]
        return min(filter(None, smallest), default=0)

    @property
    def floor(self) -> int:
        """`min_users`; 0 without it. What has no number may have fewer users."""
        return int(counting_of(self.release.manifest).get("min_users", 0))


def _highest_of(row: Row, table: Table, most: int) -> str:
    """In words: the group that most of the row's people are in, or else up to `most` groups of the
    highest numbers, of those clearly above 0."""
    bars = zip(table.names, table.groups, row.bars, strict=True)
    clear = [
        (-(bar.value or 0), name, str(group))
        for name, group, bar in bars
        if bar.value is not None and not sentences.is_weak(bar.low, bar.high)
    ]
    if row.place:
        numbers = [f": {-value:,.0f}" for value, name, _ in clear if name == row.place and most]
        return "".join([f"mostly in {row.place}", *numbers])
    highest = [f"{group}: {-value:,.0f}" for value, _, group in sorted(clear)[:most]]
    return (clear[0][1].removesuffix(clear[0][2]) if highest else "") + ", ".join(highest)


#: A release, and an earlier one that it is compared with.
Pair = tuple[Released, Released | None]


def parts_of(shown: Sequence[Released], against: Sequence[Released], most_rows: int) -> list[Part]:
    """A part for each release; one part for two releases of the same rows, of which one found the
    items that the other counted. against: earlier releases, for `_with_earlier`."""
    if len(against) > len(shown):
        raise UsageError(
            f"against: found {len(against)} releases for {len(shown)}; give one for each release"
        )
    pairs = [*_with_counts([*_with_earlier(shown, against)])]
    manifests = [release.manifest for (release, _), _ in pairs]
    wholes = [
        next((first for first in range(place) if _is_whole_of(manifests[first], groups)), None)
        for place, groups in enumerate(manifests)
    ]
    parts: list[Part] = []
    for place, ((release, earlier), counted) in enumerate(pairs):
        if (place_of_whole := wholes[place]) is not None:
            whole = parts[place_of_whole]
            findings = whole.findings
            if whole.rest:  # phrases that only groups count come last
                phrases = [*findings.phrases, *whole.rest.findings.further]
                findings = replace(findings, phrases=phrases)
            part = _part(release, most_rows, findings, earlier, whole=whole)
            whole.by_groups.append(part)
        else:
            # All tables of the same rows show the same wordings in one order.
            by_groups = [table for whole_place, (pair, _) in zip(wholes, pairs, strict=True)
                         if whole_place == place for table in pair if table]  # fmt: skip
            counts = [count for count in counted or () if count]
            findings = findings_of(release, earlier, by_groups, counts)
            if counted is None:
                part = _part(release, most_rows, findings, earlier)
            else:
                items = [count.to_polars()["tokens"] for count in counts]
                findings, others = findings.split(items)
                part = _part(counts[0], most_rows, findings, counted[1] or earlier)
                rest = _part(release, most_rows, others, earlier, rest_of=part)
                part = replace(part, rest=rest)
        parts.append(part)
    return parts


def _part(
    release: Released,
    most_rows: int,
    findings: Findings,
    earlier: Released | None = None,
    *,
    whole: Part | None = None,
    rest_of: Part | None = None,
) -> Part:
    changes = comparison(release, earlier, findings)
    before = rest_of.tables if rest_of else ()
    tables = tables_of(release, most_rows, findings, of_whole=whole is not None, after=before)
    meaning = meaning_of_numbers(release, tables)
    manifest = earlier.manifest if earlier else {}
    return Part(release, findings, tables, meaning, changes, manifest, whole, is_rest=bool(rest_of))


def _with_earlier(shown: Sequence[Released], against: Sequence[Released]) -> Iterator[Pair]:
    """Each release with an earlier one: the first that compares with it and is not yet taken."""
    left, alone = [*against], []
    for release in shown:
        earlier = next((other for other in left if _compares(release, other)), None)
        if earlier is None:
            alone.append(release)
        else:
            left.remove(earlier)
        yield release, earlier
    if left:
        sides_of(alone[0], left[0], None, None)  # raises an error that says why


def _compares(later: Released, earlier: Released) -> bool:
    try:
        return bool(sides_of(later, earlier, None, None))
    except UsageError:
        return False


def _with_counts(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Pair | None]]:
    """Each pair with None or, if its release found items, with the pair that counted these; both
    stand where the first of them stood."""
    count_of: dict[int, int] = {}
    for place, (run, _) in enumerate(pairs):
        for other, (count, _) in enumerate(pairs):
            is_free = place not in count_of and other not in count_of.values()
            if is_free and _counts_findings(count, run):
                count_of[place] = other
    joined = {min(places): places for places in count_of.items()}
    for place, pair in enumerate(pairs):
        if place in joined:
            run_place, count_place = joined[place]
            yield pairs[run_place], pairs[count_place]
        elif place not in {*count_of, *count_of.values()}:
            yield pair, None


def _counts_findings(count: Released, run: Released) -> bool:
    """Whether `count` is a count, all together, of items that `run` found in the same rows."""
    return (
        has_every_given_item(count.manifest)
        and not has_every_given_item(run.manifest)
        and _are_of_same_rows(count.manifest, run.manifest)
        and not any(groups_of(release.manifest) for release in (count, run))
        and all(counting_of(release.manifest) for release in (count, run))
    )


def _is_whole_of(whole: Manifest, groups: Manifest) -> bool:
    """Whether `whole` counts the same rows all together, and `groups` by groups, no periods."""
    by = groups_of(groups) and not groups_of(whole) and not sentences.are_periods(groups)
    return bool(by and _are_of_same_rows(whole, groups) and counting_of(whole))


def _are_of_same_rows(*manifests: Manifest) -> bool:
    first, second = ((manifest["privacy"]["unit"], manifest["parameters"].get("content"))
                     for manifest in manifests)  # fmt: skip
    return bool(first == second)
