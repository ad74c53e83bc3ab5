"""What people say more or less often than before, as pages and terminals show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dphh.report.change import (
    CONFIDENCE,
    FELL,
    ROSE,
    UNTOLD,
    Side,
    compared_rows,
    meaning_of_changes,
    sides_of,
)
from dphh.report.phrases import Findings, findings_of
from dphh.report.rows import rows_line
from dphh.report.sentences import (
    Released,
    about_in_words,
    are_periods,
    counting_of,
    has_every_given_item,
    joiner_of,
)
from dphh.report.wordings import Tokens
from dphh.wording.lines import with_noun

#: A row of `compared_rows`.
Difference = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How a release differs from an earlier one, or its last period from the one before."""

    #: The names of the later side and of the earlier one.
    now: str
    before: str
    #: Each difference, by tokens and group.
    differences: Mapping[tuple[Tokens, str | None], Difference]
    #: Each phrase in each group, with its difference: those that rose, those that fell, each the
    #: surest first, and then all others.
    moves: Sequence[tuple[str, str | None, Difference]]
    #: How many of the other words and phrases rose, fell, or have no clear change.
    beside: Mapping[str, int]
    #: The phrases that only the later side has, and those that only the earlier one has.
    new: Sequence[str]
    gone: Sequence[str]
    #: What the intervals mean.
    meaning: str
    #: Whether the items of the earlier side were given, and not found.
    is_counted: bool

    @property
    def absent(self) -> str:
        """In words: why a phrase that only the later side has is not compared."""
        return f"no number for {self.before}" if self.is_counted else f"not found in {self.before}"

    @property
    def absent_in_full(self) -> str:
        return self.absent if self.is_counted else f"{self.absent}: few said it, or it was missed"

    @property
    def headline(self) -> str:
        """A sentence: how many phrases rose, fell, and have no clear change."""
        by_groups = len({group for _, group in self.differences}) > 1
        side, noun = (", group by group", "number") if by_groups else ("", "phrase")
        return f"Compared with {self.before}{side}: {self.counts(noun, ROSE, FELL, UNTOLD)}."

    def counts(self, noun: str, *words: str) -> str:
        """In words: how many phrases changed in each of these ways, how many have no number before,
        and how many other words and phrases rose or fell."""
        numbers = Counter(difference["change"] for *_, difference in self.moves)
        counts = [f"{word}: {with_noun(numbers[word], noun)}" for word in words if numbers[word]]
        if self.new:
            counts.append(f"{self.absent}: {with_noun(len(self.new), 'phrase')}")
        beside = [(word, self.beside[word]) for word in (ROSE, FELL) if self.beside.get(word)]
        counts += [f"other words and phrases that {word}: {number:,}" for word, number in beside]
        return "; ".join(counts if self.moves else ["no phrase is in both", *counts])


def comparison(
    later: Released, earlier: Released | None, findings: Findings | None = None
) -> Comparison | None:
    """A release against an earlier one or, without that, its last period against the one before;
    None if it has no such numbers. findings: the phrases of both."""
    if earlier is None and not (are_periods(later.manifest) and counting_of(later.manifest)):
        return None
    sides = sides_of(later, earlier, None, None)
    differences: Mapping[tuple[Tokens, str | None], Difference] = {
        (tuple(row["tokens"]), row.get("group_name", sides[0].group)): row
        for row in compared_rows(*sides, CONFIDENCE).drop_nulls("difference").to_dicts()
    }
    findings = findings or findings_of(later, earlier)
    groups = sorted({group for _, group in differences}, key=str)
    now_has, before_has = ({*map(tuple, side.rows()["tokens"].to_list())} for side in sides)
    joiner = joiner_of(later.manifest)
    moves: list[tuple[str, str | None, Difference]] = []
    alone: tuple[list[str], list[str]] = [], []
    for phrase in findings.phrases:
        name, item = phrase.name(joiner), phrase.counted
        compared_in = [group for group in groups if (item, group) in differences]
        moves += [(name, group, differences[item, group]) for group in compared_in]
        if not compared_in and item in now_has | before_has:
            alone[item not in now_has].append(f"{name} (about {findings.numbers[item]:,})")
    beside: Counter[str] = Counter()
    folded = *findings.further, *findings.words, *findings.others
    for wording in folded if len(groups) == 1 else ():  # else too many to read
        if difference := differences.get((wording.counted, groups[0])):
            if findings.phrases:
                beside[difference["change"]] += 1
            else:
                moves.append((wording.name(joiner), groups[0], difference))
    moves.sort(key=_rank_and_surest_first)
    meaning = meaning_of_changes(*sides)
    now, before = _names(*sides)
    is_counted = earlier is None or has_every_given_item(earlier.manifest)
    return Comparison(now, before, differences, moves, beside, *alone, meaning, is_counted)


def _rank_and_surest_first(move: tuple[str, str | None, Difference]) -> tuple[int, int]:
    _, _, difference = move
    rank = (ROSE, FELL, UNTOLD).index(difference["change"])
    return rank, difference["high"] if rank else -difference["low"]


def _names(later: Side, earlier: Side) -> tuple[str, str]:
    """A name for each side: its group, or its rows, without the conditions that both share."""
    if later.group and earlier.group:
        return later.group, earlier.group
    now, before = (rows_line(side.release.manifest).split(", ") for side in (later, earlier))
    return (
        ", ".join(part for part in now if part not in before)
        or name_of(later.release) or "the later release",
        ", ".join(part for part in before if part not in now)
        or name_of(earlier.release) or "the earlier release",
    )  # fmt: skip


def name_of(release: Released) -> str:
    """A release's name for readers: its rows, or else its folder; "" if it has neither."""
    return rows_line(release.manifest) or release.name


def before_and_now(row: Difference) -> str:
    """The earlier number and the later one: about 520 → about 950."""
    before = about_in_words(row["before"], row["low_before"], row["high_before"])
    return f"{before} → {about_in_words(row['users'], row['low_now'], row['high_now'])}"


def change_in_words(row: Difference) -> str:
    """How a number changed, with the nearer end of the interval: rose by about 430 (at least
    415)."""
    change = row["change"]
    about, least = abs(row["difference"]), max(row["low"], -row["high"])
    return change if change == UNTOLD else f"{change} by about {about:,} (at least {least:,})"
