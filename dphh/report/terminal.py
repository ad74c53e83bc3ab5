"""Plans and releases as text for a terminal. `dphh.report.cards` is the same for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import OTHER
from dphh.corpus import Corpus
from dphh.errors import DphhError
from dphh.ledger import Account, Ledger
from dphh.ledger.corpora import how_rows_were_made, mixed, source_of, unseen
from dphh.ledger.requests import request_of
from dphh.ledger.wording import account_lines, period_lines
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
from dphh.price import Finds, Price, Privacy, stated
from dphh.priors.fit import poor_fit
from dphh.report.counted import about_counts, groups_of, how_many, which_rows
from dphh.together import of_periods_in
from dphh.wording.lines import (
    number,
    padded,
    plural,
    shorten,
    terminal_columns,
    width_of,
    wrapped,
)

#: A heading and its lines: (label, text).
Section = tuple[str, list[tuple[str, str]]]
SHOWN_ROWS = 10


def plan_sections(
    price: Price, corpus: Corpus | None, ledger: Ledger | None = None
) -> list[Section]:
    return [*price_sections(price, corpus), ("ledger", ledger_lines(price, corpus, ledger))]


def price_sections(price: Price, corpus: Corpus | None) -> list[Section]:
    """A plan without its ledger section, which only the owner may see."""
    return [
        ("privacy", privacy_lines(price, corpus)),
        ("levels", noise_lines(price)),
        ("finds", finds_lines(price.finds)),
    ]


def privacy_lines(price: Price, corpus: Corpus | None) -> list[tuple[str, str]]:
    privacy = price.privacy
    if corpus is not None:
        made = how_rows_were_made(corpus)
        privacy = stated(price, corpus.user, made, corpus.period, corpus.periods)
    return [
        *promises(privacy),
        *(("warning", said) for said in privacy.warnings),
        ("unit", privacy.unit),
        ("adjacency", privacy.adjacency),
        ("theorem", privacy.theorem),
        *(("delta", f"{share:.4g} for {what}") for what, share in privacy.delta_shares),
        *(("note", caveat) for caveat in privacy.caveats),
    ]


def noise_lines(price: Price) -> list[tuple[str, str]]:
    lines = [
        *levels_lines(price.levels),
        *counting_lines(price.counting),
        *_narrower_lines(price),
    ]
    asked: dict[str, Any] = dict(price.parameters)
    if asked.get("by") is not None:
        lines.append(
            ("groups", f"within {', '.join(map(shorten, asked['groups']))} and {OTHER} of "
                       f"{shorten(asked['by'])}; {OTHER} is all that was not declared")
        )  # fmt: skip
    return lines


def promises(privacy: Privacy) -> list[tuple[str, str]]:
    if privacy.central_epsilon is None:
        return [("promise", f"({privacy.epsilon:g}, {privacy.delta:g})-differential privacy")]
    return [
        ("each report", f"{privacy.epsilon:g}-local differential privacy, for one item"),
        (
            "the release",
            f"({privacy.central_epsilon:.4g}, {privacy.delta:g})-differential privacy, "
            "for one item",
        ),
        (
            "",
            f"({privacy.booked_epsilon:.4g}, {privacy.delta:g})-differential privacy, for all of a "
            "user's items: what the ledger books",
        ),
        *_promises_of_messages(privacy),
    ]


def _promises_of_messages(privacy: Privacy) -> list[tuple[str, str]]:
    """The guarantee if an observer sees the mixed messages themselves; `promises` is for sums."""
    if privacy.shuffled_epsilon is None or privacy.shuffled_user_epsilon is None:
        return []
    return [
        (
            "mixed messages",
            f"({privacy.shuffled_epsilon:.4g}, {privacy.delta:g})-differential privacy, for one "
            "item, to who sees messages without senders and not their sums alone",
        ),
        (
            "",
            f"({privacy.shuffled_user_epsilon:.4g}, {privacy.delta:g})-differential privacy, for "
            "all of a user's items",
        ),
    ]


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


def _narrower_lines(price: Price) -> list[tuple[str, str]]:
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


def _pass_of_level(level: Level) -> int:
    return level.pass_number if isinstance(level, LocalLevel) else 1


def _set_size_text(level: LocalLevel) -> str:
    return f"{level.size:,}" if level.form == "subsets" else f"about {level.size:,}"


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


def finds_lines(finds: Finds) -> list[tuple[str, str]]:
    what = "an n-gram is found" if finds.users_by_length else finds.what
    head = f"{what} with probability {finds.probability:g} when held by at least"
    if finds.users_by_length:
        return [
            ("", head),
            *(
                (f"{users:,} users", f"if it is {plural(length, 'word')} long")
                for length, users in finds.users_by_length
            ),
            ("", f"({finds.note})"),
        ]
    if not finds.users_by_held:
        return [("", head), (f"{finds.users:,} users", f"({finds.note})")]
    lines = [("", head)]
    lines += [
        (f"{users:,} users", f"if each of them holds {plural(held, 'item')} in all")
        for held, users in finds.users_by_held
    ]
    return [*lines, ("", f"({finds.note})")] if finds.note else lines


def ledger_lines(
    price: Price, corpus: Corpus | None, ledger: Ledger | None
) -> list[tuple[str, str]]:
    """What the ledger says of a plan's corpus. Reads only, and never makes printing fail."""
    if corpus is None:
        return [("", "the plan has no corpus yet")]
    try:
        accounts = accounts_of(corpus, ledger)
        refusal = refused(price, corpus, ledger)
        moved = (ledger or Ledger()).moved_here(source_of(corpus))
    except DphhError as problem:
        return [("", str(problem))]
    lines = [line for each in accounts for line in (*account_lines(each), *period_lines(each))] or [
        ("no cap", "nobody has capped this corpus: `dphh ledger add NAME CORPUS ...` does")
    ]
    if (said := unseen(corpus)) is not None:
        lines.append(("not seen", said))
    lines += [("moved", said) for said in moved]
    return lines if refusal is None else [("would refuse", refusal), *lines]


def accounts_of(corpus: Corpus, ledger: Ledger | None) -> list[Account]:
    """The accounts that a run on this corpus would charge, if there are any."""
    book = ledger or Ledger()
    names = (corpus.name,) if corpus.name else book.accounts_touched(source_of(corpus))
    return [book.status(name, corpus.periods) for name in names]


def refused(price: Price, corpus: Corpus, ledger: Ledger | None) -> str | None:
    """Why this run would be refused now, by the ledger or before it; None if it would not be."""
    return mixed(corpus) or (ledger or Ledger()).would_refuse(request_of(price, corpus))


def plan_text(price: Price, corpus: Corpus | None, ledger: Ledger | None = None) -> str:
    return _text_of_sections(
        f"plan: {price.verb}  {asked(price)}", plan_sections(price, corpus, ledger)
    )


def asked(price: Price) -> str:
    return ", ".join(
        f"{key}={shorten(str(value), 120)}" for key, value in price.parameters if value is not None
    )


def release_text(table: Any, manifest: dict[str, Any]) -> str:
    privacy = manifest["privacy"]
    lines = wrapped(
        f"release {manifest['run_id']}: {how_many(table, manifest)}, "
        f"({promised(privacy):.4g}, {privacy['delta']:g})-DP for {privacy['unit']}"
    )
    if (where := which_rows(manifest)) is not None:
        lines += wrapped(where, "  ", "  ")
    for warning in privacy.get("warnings", ()):
        lines += wrapped(f"warning: {warning}")
    if (of_periods := of_periods_in(privacy)) is not None:
        for said in of_periods.lines:
            lines += wrapped(said, "  ")
    if (badly := poor_fit(manifest)) is not None:
        lines += wrapped(f"note: {badly}")
    if is_test(manifest):
        lines.append(manifest["randomness"])
    rows = first_rows(table, manifest)
    if rows and (meaning := value_meaning(table, manifest)):
        lines += wrapped(meaning, "  ", "  ")
    longest = terminal_columns() - 5 - max((len(value_text(row)) for row in rows), default=0)
    items = [shorten(row["item"], min(60, longest)) for row in rows]
    width = max(map(width_of, items), default=0)
    for row, item in zip(rows, items, strict=True):
        lines.append(f"  {row['level']}  {padded(item, width)} {value_text(row)}".rstrip())
    if not rows and (sight := found_from(manifest)):
        lines += wrapped(sight, "  ")
    if table.num_rows > len(rows):
        among = ", beginnings among them" if "ended" in table.column_names else ""
        lines.append(f"  ... and {table.num_rows - len(rows):,} more{among}")
    return "\n".join(lines)


def found_from(manifest: dict[str, Any]) -> str:
    """From how many users an item is found at this price."""
    if not (finds := manifest.get("finds")):
        return ""
    return (
        f"at this price {finds.get('what', 'an item is found')} with probability "
        f"{finds['probability']:g} when held by at least {plural(finds['users'], 'user')}"
    )


def is_test(manifest: dict[str, Any]) -> bool:
    """Whether there is no privacy guarantee: the seed was a test's, or this is a rehearsal.

    Manifests of older versions have no `is_test`; there the randomness tells it.
    """
    return bool(manifest.get("is_test", manifest["randomness"] != "operating system"))


def first_rows(table: Any, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The first few rows of each level, so that short and long items both show; from a trie only
    the complete sequences, if there are any."""
    if "ended" in table.column_names:
        ends = table.filter(pc.fill_null(table.column("ended"), False))
        table = ends if len(ends) else table
    groups = {group: place for place, group in enumerate(groups_of(table, manifest) or ())}
    levels = table.column("level").to_pylist()
    each = -(-SHOWN_ROWS // max(1, len(set(levels)) * max(1, len(groups))))
    items = table.column("item").to_pylist() if groups else range(table.num_rows)
    #: By level: the first items, each with the rows of all its groups.
    chosen: dict[int, dict[Any, list[int]]] = {}
    for place, (level, item) in enumerate(zip(levels, items, strict=True)):
        of_level = chosen.setdefault(level, {})
        if item in of_level or len(of_level) < each:
            of_level.setdefault(item, []).append(place)
    places = [place for of_level in chosen.values() for rows in of_level.values() for place in rows]
    shown: list[dict[str, Any]] = table.take(pa.array(places, pa.int64())).to_pylist()
    if groups:
        order = {
            key: place for place, key in enumerate(dict.fromkeys(map(_sort_key_of_item, shown)))
        }
        shown.sort(key=lambda row: (order[_sort_key_of_item(row)], groups.get(row["group"], 0)))
    return shown


def _sort_key_of_item(row: dict[str, Any]) -> tuple[int, str]:
    return row["level"], row["item"]


def value_meaning(table: Any, manifest: dict[str, Any]) -> str:
    """What the numbers beside the items mean."""
    if "users" in table.column_names:
        return f"beside each: users  (low to high). {about_counts(table, manifest)}"
    if "error" in table.column_names:
        return "beside each: score ± its error  (estimated reports; no number of people)"
    if table.column("score").null_count < table.num_rows:
        return "beside each: score  (orders items within a level; no number of people)"
    return ""


def value_text(row: dict[str, Any]) -> str:
    """The number of users, if known; else the score, if there is one."""
    if row.get("users") is not None:
        within = "" if row.get("group") is None else f"  in {shorten(row['group'])}"
        return f"{row['users']:12,}  ({row['low']:,} to {row['high']:,}){within}"
    if row.get("score") is not None:
        error = "" if row.get("error") is None else f"  ± {row['error']:,.1f}"
        return f"{row['score']:12,.1f}{error}"
    ended = row.get("ended")
    return "" if ended is None else " ends here" if ended else " goes on"


def promised(privacy: dict[str, Any]) -> float:
    """The epsilon of what is published, for the unit that the privacy statement names."""
    return float(privacy.get("central_epsilon", privacy["epsilon"]))


def _text_of_sections(title: str, sections: list[Section]) -> str:
    columns = terminal_columns() - 4
    lines = wrapped(title)
    for heading, said in sections:
        lines.append(f"\n{heading}")
        width = min(max((len(what) for what, _ in said), default=0), columns // 2)
        for what, text in said:
            head, below = f"  {what:<{width}}  ", " " * (width + 4)
            room = max(columns - len(below), columns // 3)
            pieces = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
            if len(head) > len(below):
                lines.append(head.rstrip())
                head = below
            lines += [
                f"{head if index == 0 else below}{line}".rstrip()
                for index, line in enumerate(pieces or [""])
            ]
    return "\n".join(lines)
