"""What the levels of a plan do, in words: bounds, noise, thresholds, and how finds are counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dphh.levels.counts import CountsLevel, FoundCounts
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.level import Level
from dphh.levels.set_union import AloneLevel, SetUnionLevel
from dphh.price import Price


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


def narrower_lines(price: Price) -> list[tuple[str, str]]:
    """What makes the intervals of counts half as wide. Their noise is in proportion to
    sqrt(max_items), to 1 / sqrt(the share `counts`) and, nearly, to 1 / epsilon."""
    alone = [level for level in price.levels if isinstance(level, CountsLevel)]
    if not alone and price.counting is None:
        return []
    asked = dict(price.parameters)
    ways = ["about twice the epsilon"]
    share = asked.get("counts")
    if price.counting is not None and price.verb != "trie" and share is not None:
        assert isinstance(share, float)
        if 4 * share < 1:
            ways.append(f"counts={4 * share:g} (finding then has less)")
    most = asked.get("max_items")
    if isinstance(most, int) and most > 3 and not (alone and most > alone[0].keys):
        ways.append(f"max_items={most // 4} (a user of more counts for less of each)")
    return [("narrower", f"intervals half as wide take {', or '.join(ways)}")]
