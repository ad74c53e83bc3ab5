"""What the levels of a plan do, in words: bounds, noise, thresholds, and how finds are counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil

from dphh.levels import (
    BY_CHANCE,
    CHOICE_COMMON,
    AloneLevel,
    BatchLevel,
    ChoiceLevel,
    CountsLevel,
    ForecastLevel,
    FoundCounts,
    Level,
    ListedWordsLevel,
    LocalLevel,
    PrunedLevel,
    SetUnionLevel,
    VoteLevel,
)
from dphh.price import Price
from dphh.wording.lines import number, plural


def levels_lines(levels: Sequence[Level]) -> list[tuple[str, str]]:
    """What each level does; neighbouring levels that do the same share one entry."""
    lines = []
    for (_, said), alike in groupby(
        levels, key=lambda level: (_pass_of_level(level), level_words(level))
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


def level_words(level: Level) -> tuple[str, ...]:
    if isinstance(level, LocalLevel):
        return (
            f"{plural(level.users, 'user')} not asked before send "
            f"{plural(level.contributions, 'report')} each ({level.sampling} sampling, mode "
            f"{level.mode!r})",
            f"a report holds {_set_size_text(level)} of {level.domain:,} values, the user's own "
            "with "
            f"probability {level.mechanism.p:.4g}, another with {level.mechanism.q:.4g}; the "
            f"{level.keep:,} that most reports hold go on",
            f"an estimate from {level.stands_out:,.0f} of {level.reports:,} reports on "
            f"({level.stands_out / level.reports:.3%}) stands out of the noise: but with "
            f"probability {BY_CHANCE:g} nothing that nobody holds comes so high",
        )
    if isinstance(level, VoteLevel | BatchLevel):
        return votes_words(level)
    if isinstance(level, PrunedLevel):
        return (
            f"each user counts for at most {plural(level.max_items, 'valid n-gram')}",
            f"noise: {number(level.sigma)} users; the threshold follows from what is released",
        )
    if isinstance(level, CountsLevel):
        return counts_words(level)
    return rounds_words(level)


def rounds_words(level: Level) -> tuple[str, ...]:
    if isinstance(level, ForecastLevel):
        return (
            "each user counts for all their valid n-grams, in two rounds",
            f"noise: a share of what all rounds come to together, {number(level.total_sigma)} "
            "users; it and the thresholds follow from what is released",
        )
    if isinstance(level, ListedWordsLevel):
        return (
            f"each user counts for all their words of a list of {level.listed:,}, and for at most "
            f"{plural(level.max_items, 'other word')}, in two rounds",
            f"noise: {number(level.first_sigma)} and {number(level.second_sigma)} users",
            f"threshold of words that the list lacks: {number(level.second_threshold)} users; what "
            "words of the list must reach follows from what the rounds show",
        )
    assert isinstance(level, SetUnionLevel)
    if isinstance(level, ChoiceLevel):
        return (
            "chooses, and releases nothing: one round follows, or else several, if at least "
            f"{plural(CHOICE_COMMON, 'item')} reach {number(level.threshold)} users",
            f"noise: {number(level.sigma)} users (one standard deviation)",
        )
    return (
        f"each user counts for at most {plural(level.max_items, 'item')}",
        f"noise: {number(level.sigma)} users (one standard deviation)",
        f"threshold: {number(level.threshold)} users, so {ceil(level.threshold):,} "
        "who hold nothing else carry an item over without noise",
    )


def votes_words(level: VoteLevel | BatchLevel) -> tuple[str, ...]:
    if isinstance(level, VoteLevel):
        return (f"each user votes with probability {level.p:.4g}; {level.theta} votes are enough",)
    return (
        f"{level.batch:,} of {level.users:,} users are drawn and vote; "
        f"{level.theta} votes are enough",
    )


def counts_words(level: CountsLevel) -> tuple[str, ...]:
    whole = f"each user counts as one for up to {level.max_items:,} of {level.keys:,} counts"
    shares = ", ".join(
        f"{level.half_width / count:.2%} of {count:,}" for count in (100, 1_000, 10_000)
    )
    together = "all intervals hold at once" if level.simultaneous else "each interval holds"
    bounded = level.max_items < level.keys
    return (
        whole + (", and for less of each beyond that" if bounded else ""),
        f"noise: {number(level.sigma)} users (one standard deviation)",
        f"{together} with probability {level.confidence:g}, {number(level.half_width)} users to "
        f"either side: {shares}" + ("; high also covers what bounding takes" if bounded else ""),
    )


def _pass_of_level(level: Level) -> int:
    return level.pass_number if isinstance(level, LocalLevel) else 1


def _set_size_text(level: LocalLevel) -> str:
    return f"{level.size:,}" if level.form == "subsets" else f"about {level.size:,}"


def counting_lines(counting: FoundCounts | None) -> list[tuple[str, str]]:
    """How found items are counted after all levels are done."""
    if counting is None:
        return []
    whole, noise, intervals = counts_words(counting.widest)
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
