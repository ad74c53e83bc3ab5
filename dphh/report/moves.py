"""What people say more or less often than before: what a page and a terminal show of changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from dphh.report.phrases import Found, found_in, wordings_of
from dphh.report.rows import rows_of
from dphh.report.sentences import Released, are_periods, counting_of, joiner_of
from dphh.report.wordings import Tokens, runs

#: A difference as `change` has it: its numbers, and what is said of it.
Difference = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How what people say differs from an earlier release, or from the group before the last."""

    #: What the later side is called, and the earlier one.
    now: str
    before: str
    #: Each difference, by tokens and group.
    differences: Mapping[tuple[Tokens, str | None], Difference]
    #: What rose, then what fell, that of which most is sure first; then all else: texts, each with
    #: its group and its difference.
    moves: Sequence[tuple[str, str | None, Difference]]
    #: What was found on the later side alone, and on the earlier one.
    new: Sequence[str]
    gone: Sequence[str]
    #: What the intervals mean.
    meaning: str

    @property
    def items(self) -> AbstractSet[Tokens]:
        """What both sides have."""
        return {tokens for tokens, _ in self.differences}

    @property
    def headline(self) -> str:
        """How many rose, and so on. By groups, how many numbers did not says nothing."""
        told = Counter(difference["change"] for *_, difference in self.moves)
        if by_groups := len({group for _, group in self.differences}) > 1:
            del told[UNTOLD]
        told["not found before"] = len(self.new)
        words = (ROSE, FELL, UNTOLD, "not found before")
        said = ", ".join(f"{told[word]:,} {word}" for word in words if told[word])
        side = self.before + (", group by group" if by_groups else "")
        return f"Compared with {side}: {said or UNTOLD}."


def comparison(
    later: Released, earlier: Released | None, found: Found | None = None
) -> Comparison | None:
    """Without an earlier release, of the last two of its periods; None if that has no such
    numbers. found: what there is of the later one to read."""
    manifest = later.manifest
    if earlier is None and not (are_periods(manifest) and counting_of(manifest)):
        return None
    sides = sides_of(later, earlier, None, None)
    differences: Mapping[tuple[Tokens, str | None], Difference] = {
        (tuple(row["tokens"]), row.get("group_name", sides[0].group)): row
        for row in compared(*sides, CONFIDENCE).drop_nulls("difference").to_dicts()
    }
    items = {tokens for tokens, _ in differences}
    found = found or found_in(later, [] if earlier is None else wordings_of([earlier]))
    before = Found([]) if earlier is None else found_in(earlier)
    rows = (*found.phrases, *found.others)
    shown = {run for of in rows for run in runs(of.tokens, range(1, len(of.tokens) + 1))}
    gone = [of for of in before.phrases if before.counted(of, items) not in shown]
    groups = sorted({group for _, group in differences}, key=str)
    text = joiner_of(manifest).join
    moves: list[tuple[str, str | None, Difference]] = []
    alone: tuple[list[str], list[str]] = [], []
    for of, its, is_aside in (
        *((of, found, False) for of in found.phrases),
        *((of, found, True) for of in (*found.words, *found.others)),
        *((of, before, False) for of in gone),
    ):
        counted = its.counted(of, items)
        compared_in = [group for group in groups if (counted, group) in differences]
        has = [] if is_aside and len(groups) > 1 else compared_in  # too many to read
        if its is before or (found.phrases and is_aside):  # of these, only what changed
            has = [group for group in has if differences[counted, group]["change"] != UNTOLD]
        moves += [(text(of.tokens), group, differences[counted, group]) for group in has]
        if not (compared_in or is_aside):
            alone[its is before].append(f"{text(of.tokens)} ({its.numbers[counted]:,})")
    moves.sort(key=_order)
    meaning = meaning_of_changes(*(side.release.manifest for side in sides))
    return Comparison(*_names(*sides), differences, moves, *alone, meaning)


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


def in_words(difference: Difference) -> str:
    """The interval of a difference: 415 to 764 more."""
    low, high = difference["low"], difference["high"]
    if low < 0 < high:
        return f"between {-low:,} fewer and {high:,} more"
    ends = sorted((abs(low), abs(high)))
    return f"{ends[0]:,} to {ends[1]:,} {'more' if high > 0 else 'fewer'}"
