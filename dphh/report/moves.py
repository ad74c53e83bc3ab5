"""What people say more or less often than before: what a page and a terminal show of changes."""

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
    compared,
    meaning_of_changes,
    sides_of,
)
from dphh.report.phrases import Found, found_in
from dphh.report.rows import rows_of
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

#: A difference as `compared` has it: its numbers, and what is said of it.
Difference = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How what people say differs from an earlier release, or from the group before the last."""

    #: What the later side is called, and the earlier one.
    now: str
    before: str
    #: Each difference, by tokens and group.
    differences: Mapping[tuple[Tokens, str | None], Difference]
    #: Of phrases: what rose, then what fell, that of which most is sure first; then all else:
    #: texts, each with its group and its difference.
    moves: Sequence[tuple[str, str | None, Difference]]
    #: How many of all else that is shown rose, and so on.
    beside: Mapping[str, int]
    #: What was found on the later side alone, and on the earlier one.
    new: Sequence[str]
    gone: Sequence[str]
    #: What the intervals mean.
    meaning: str
    #: Whether the earlier side counted all that was asked for, and did not find what it has.
    is_counted: bool

    @property
    def absent(self) -> str:
        """What is said of those that the later side has alone."""
        return f"no number for {self.before}" if self.is_counted else f"not found in {self.before}"

    @property
    def absent_in_full(self) -> str:
        return self.absent if self.is_counted else f"{self.absent}: few said it, or it was missed"

    @property
    def headline(self) -> str:
        """How many rose, and so on."""
        by_groups = len({group for _, group in self.differences}) > 1
        side, noun = (", group by group", "number") if by_groups else ("", "phrase")
        return f"Compared with {self.before}{side}: {self.counts(noun, ROSE, FELL, UNTOLD)}."

    def counts(self, noun: str, *words: str) -> str:
        """Of how many phrases each of these words is said, how many have no number before, and what
        rose and fell beside them."""
        told = Counter(difference["change"] for *_, difference in self.moves)
        said = [f"{word}: {with_noun(told[word], noun)}" for word in words if told[word]]
        if self.new:
            said.append(f"{self.absent}: {with_noun(len(self.new), 'phrase')}")
        beside = [(word, self.beside[word]) for word in (ROSE, FELL) if self.beside.get(word)]
        said += [f"other words and phrases that {word}: {number:,}" for word, number in beside]
        return "; ".join(said if self.moves else ["no phrase is in both", *said])


def comparison(
    later: Released, earlier: Released | None, found: Found | None = None
) -> Comparison | None:
    """Without an earlier release, of the last two of its periods; None if that has no such
    numbers. found: what there is of both to read."""
    if earlier is None and not (are_periods(later.manifest) and counting_of(later.manifest)):
        return None
    sides = sides_of(later, earlier, None, None)
    differences: Mapping[tuple[Tokens, str | None], Difference] = {
        (tuple(row["tokens"]), row.get("group_name", sides[0].group)): row
        for row in compared(*sides, CONFIDENCE).drop_nulls("difference").to_dicts()
    }
    found = found or found_in(later, earlier)
    groups = sorted({group for _, group in differences}, key=str)
    here, there = ({*map(tuple, side.rows()["tokens"].to_list())} for side in sides)
    joiner = joiner_of(later.manifest)
    moves: list[tuple[str, str | None, Difference]] = []
    alone: tuple[list[str], list[str]] = [], []
    for of in found.phrases:
        compared_in = [group for group in groups if (of.counted, group) in differences]
        moves += [(of.name(joiner), group, differences[of.counted, group]) for group in compared_in]
        if not compared_in and of.counted in here | there:
            number = f"{found.numbers[of.counted]:,}"
            alone[of.counted not in here].append(f"{of.name(joiner)} (about {number})")
    aside: Counter[str] = Counter()
    folded = *found.further, *found.words, *found.others
    for of in folded if len(groups) == 1 else ():  # else too many to read
        if difference := differences.get((of.counted, groups[0])):
            aside[difference["change"]] += 1
            if not found.phrases:
                moves.append((of.name(joiner), groups[0], difference))
    moves.sort(key=_order)
    meaning = meaning_of_changes(*sides)
    beside = aside if found.phrases else Counter[str]()
    now, before = _names(*sides)
    is_counted = earlier is None or has_every_given_item(earlier.manifest)
    return Comparison(now, before, differences, moves, beside, *alone, meaning, is_counted)


def _order(move: tuple[str, str | None, Difference]) -> tuple[int, int]:
    _, _, difference = move
    rank = (ROSE, FELL, UNTOLD).index(difference["change"])
    return rank, difference["high"] if rank else -difference["low"]


def _names(later: Side, earlier: Side) -> tuple[str, str]:
    """What both are called: their groups, or of which rows each is, as far as these differ."""
    if later.group and earlier.group:
        return later.group, earlier.group
    now, before = (rows_of(side.release.manifest).split(", ") for side in (later, earlier))
    return (
        ", ".join(part for part in now if part not in before)
        or name_of(later.release) or "the later release",
        ", ".join(part for part in before if part not in now)
        or name_of(earlier.release) or "the earlier release",
    )  # fmt: skip


def name_of(release: Released) -> str:
    """What a reader calls it: of which rows it is, or its folder; "" without both."""
    return rows_of(release.manifest) or release.name


def moved_in_words(of: Difference) -> str:
    """What a number was, and what it is."""
    before = about_in_words(of["before"], of["low_before"], of["high_before"])
    return f"{before} → {about_in_words(of['users'], of['low_now'], of['high_now'])}"


def in_words(difference: Difference) -> str:
    """What is said of a difference, with its nearer end: rose by about 430 (at least 415)."""
    told = difference["change"]
    about, least = abs(difference["difference"]), max(difference["low"], -difference["high"])
    return told if told == UNTOLD else f"{told} by about {about:,} (at least {least:,})"
