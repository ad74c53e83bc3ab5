"""What the levels of a plan do, in words: bounds, noise, thresholds, and how finds are counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dphh.levels.counts import FoundCounts
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.level import Level
from dphh.levels.set_union import AloneLevel, SetUnionLevel


def levels_lines(levels: Sequence[Level]) -> list[tuple[str, str]]:
    """What each level does; neighbouring levels that do the same share one entry."""
    lines = []
    for (_, said), alike in groupby(
        levels, key=lambda level: (_pass_of_level(level), level.in_words())
    ):
        same = list(alike)
        first, last = same[0], same[-1]
        head = f"level {first.level}"
        if isinstance(first, SetUnionLevel) and first.round > 1:
            head += f", round {first.round}"
            head += " (if alone)" if isinstance(first, AloneLevel) else ""
        if first is not last:
            head = f"levels {first.level} to {last.level}"
        if isinstance(first, LocalLevel) and levels[-1].level < len(levels):
            head = f"pass {first.pass_number}, {head}"
        lines += list(zip([head] + [""] * (len(said) - 1), said, strict=True))
    return lines


def _pass_of_level(level: Level) -> int:
    return level.pass_number if isinstance(level, LocalLevel) else 1


def counting_lines(counting: FoundCounts | None) -> list[tuple[str, str]]:
    """How found items are counted after all levels are done."""
    if counting is None:
        return []
    whole, noise, intervals = counting.widest.in_words()
    what = (
        "sequences that end, and beginnings that nothing grew from"
        if counting.beginnings
        else "all that is found"
    )
    whole = f"each user counts as one for up to {counting.max_items:,} of {what}"
    return [
        ("counts", f"{whole}, and for less of each beyond that"),
        ("", f"{noise}, or less where fewer are found"),
        ("", intervals),
        *_min_users_lines(counting),
    ]


def _min_users_lines(counting: FoundCounts) -> list[tuple[str, str]]:
    if not counting.min_users:
        return []
    return [
        (
            "min_users",
            f"what is found is left out if its interval begins below {counting.min_users:,} users: "
            f"an item that fewer hold comes through with probability at most "
            f"{counting.passes_below:.2%}",
        )
    ]
