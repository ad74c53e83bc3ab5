"""A plan in sections of lines: its promise, what it finds, its levels, and what a ledger says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from dphh.columns import OTHER_GROUP
from dphh.errors import DphhError
from dphh.ledger import Account, Ledger, Outlook, Request
from dphh.ledger.budget import MOST_RUNS_LEFT, part_of
from dphh.ledger.spending import UNCAPPED, WHAT_CAPS, guarantee_and_usage
from dphh.level import Level
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.mechanisms.set_union.levels import OneRoundAfterChoice, SetUnionLevel
from dphh.price import Finds, Price, Privacy, privacy_of_corpus
from dphh.reader.corpus import Corpus
from dphh.report.sentences import Released, promise
from dphh.wording.lines import in_two_columns, number, one_line, with_noun, wrapped

#: Lines of a plan, each (label, text). An empty label continues the line above it.
Lines = list[tuple[str, str]]
#: A part of a plan: its heading and its lines.
Section = tuple[str, Lines]

#: The headings of the sections that say how a run works; a short plan leaves these out.
DETAIL_SECTIONS = ("levels", "proof")


def plan_text(
    price: Price, corpus: Corpus | None, ledger: Ledger | None = None, *, details: bool = True
) -> str:
    lines = wrapped(f"plan: {price.verb}  {_parameters_in_words(price)}")
    for heading, section in plan_sections(price, corpus, ledger):
        if details or heading not in DETAIL_SECTIONS:
            lines += [f"\n{heading}", *in_two_columns(section)]
    if not details:
        lines.append("\nplan.describe(), or --plan --details, has the noise and the theorem, too")
    return "\n".join(lines)


def plan_rows(price: Price, corpus: Corpus | None) -> list[tuple[str, ...]]:
    """A short plan as rows of heading, label and text, for a notebook."""
    rows: list[tuple[str, ...]] = [("plan", price.verb, _parameters_in_words(price))]
    for heading, lines in plan_sections(price, corpus):
        if heading not in DETAIL_SECTIONS:
            headings = [heading, *[""] * len(lines)]
            rows += [(first, *line) for first, line in zip(headings, lines, strict=False)]
    return [*rows, ("", "", "plan.describe() has the noise and the theorem, too")]


def _parameters_in_words(price: Price) -> str:
    given = [(option, value) for option, value in price.parameters if value is not None]
    return ", ".join(f"{option}={one_line(str(value), 120)}" for option, value in given)


def plan_sections(
    price: Price, corpus: Corpus | None, ledger: Ledger | None = None
) -> list[Section]:
    promise, finds, *details = sections_without_ledger(price, corpus)
    return [promise, finds, ("ledger", ledger_lines(price, corpus, ledger)), *details]


def sections_without_ledger(price: Price, corpus: Corpus | None) -> list[Section]:
    """The sections of a plan that an analyst may also see."""
    privacy = privacy_of_corpus(price, corpus)
    limits = [] if corpus is None else [("note", corpus.content.limits_in_words)]
    return [
        ("privacy", promise_lines(privacy)),
        ("finds", [*finds_lines(price.finds), *intervals_lines(price)]),
        ("levels", levels_and_counts_lines(price)),
        ("proof", [*proof_lines(privacy), *limits]),
    ]


def promise_lines(privacy: Privacy) -> Lines:
    """What is promised, to whom, and on which conditions."""
    published = promise(privacy.published_epsilon, privacy.delta)
    lines = [("promise", published)]
    if privacy.central_epsilon is not None:
        booked = promise(privacy.booked_epsilon, privacy.delta)
        lines = [
            ("each report", f"{privacy.epsilon:g}-local differential privacy, for one item"),
            ("the release", f"{published}, for one item"),
            ("", f"{booked}, for all of a user's items: what the ledger books"),
        ]
    lines += [("warning", warning) for warning in privacy.warnings]
    provided = [] if privacy.provided is None else [("provided", privacy.provided)]
    return [*lines, ("unit", privacy.unit), *provided]


def proof_lines(privacy: Privacy) -> Lines:
    """Why the promise holds: adjacency, theorem, parts of delta, caveats."""
    lines = [
        ("adjacency", privacy.adjacency),
        ("theorem", privacy.theorem),
        *(("delta", f"{share:.4g} for {what}") for what, share in privacy.delta_shares),
    ]
    if privacy.shuffled_epsilon is not None:
        # The promise is for those who see sums of reports, this line for those who see each report.
        for_item = promise(privacy.shuffled_epsilon, privacy.delta)
        for_user = promise(privacy.shuffled_user_epsilon, privacy.delta)
        both = f"{for_item} for one item, {for_user} for all of a user's"
        lines.append(("mixed messages", f"to those who see reports without senders: {both}"))
    further = [note for note in privacy.caveats if (privacy.provided or "\n") not in note]
    return [*lines, *(("note", note) for note in further)]


def levels_and_counts_lines(price: Price) -> Lines:
    """What each level does, with its noise, and how users are counted."""
    lines = _levels_lines(price.levels)
    if (counting := price.counting) is not None:
        _, noise, intervals = counting.noisiest_level.in_words()
        what = (
            "complete sequences, and prefixes that no released sequence extends"
            if counting.beginnings
            else "all that is found"
        )
        bound = f"each user counts as one for up to {counting.max_items:,} of {what}"
        if counting.within_purses:
            bound = (
                "each user has one budget, of which finding takes what it uses; what is left "
                f"counts the user as one for up to {counting.within_purses:,} of {what}, at the "
                f"least for {counting.max_items:,}"
            )
            noise += "; more, and for more, where most users hold more"
        lines += [
            ("counts", f"{bound}; with more, as less for each"),
            ("", f"{noise}, or less where fewer are found"),
            ("", intervals),
        ]
        if counting.min_users:
            what = "what is found" if counting.by is None else "of each group, what is found there"
            rule = f"{what} is left out if its interval begins below {counting.min_users:,} users: "
            rule += "an item that fewer hold is released with probability at most "
            lines.append(("min_users", f"{rule}{counting.chance_below_min_users:.2%}"))
    parameters: dict[str, Any] = dict(price.parameters)
    if parameters.get("by") is not None:
        names = ", ".join(map(one_line, parameters["groups"]))
        groups = f"within {names} and {OTHER_GROUP} of {one_line(parameters['by'])}"
        lines.append(("groups", f"{groups}; {OTHER_GROUP} is for all values not declared"))
    return lines


def _levels_lines(levels: Sequence[Level]) -> Lines:
    """What each level does. Levels that follow one another and do the same share one entry."""
    lines: Lines = []
    for (_, texts), alike in groupby(
        levels, key=lambda level: (getattr(level, "pass_number", 1), level.in_words())
    ):
        first, *others = alike
        head = f"levels {first.level} to {others[-1].level}" if others else f"level {first.level}"
        if isinstance(first, SetUnionLevel) and first.round > 1 and not others:
            head += f", round {first.round}"
            head += " (if alone)" if isinstance(first, OneRoundAfterChoice) else ""
        if levels[-1].level < len(levels) and isinstance(first, LocalLevel):
            head = f"pass {first.pass_number}, {head}"
        lines += zip([head] + [""] * (len(texts) - 1), texts, strict=True)
    return lines


def finds_lines(finds: Finds) -> Lines:
    what = "an n-gram is found" if finds.users_by_length else finds.what
    head = f"{what} with probability {finds.probability:g} when held by at least"
    numbers = [
        (users, f"if it is {with_noun(length, 'word')} long")
        for length, users in finds.users_by_length
    ] or [
        (users, f"if each of them holds {with_noun(held, 'item')} in all")
        for held, users in finds.users_by_held
    ]  # fmt: skip
    note = f"({finds.note})" if finds.note else ""
    if not numbers:
        return [("", head), (f"{finds.users:,} users", note)]
    lines = [("", head), *((f"{users:,} users", which) for users, which in numbers)]
    if finds.users_of_many is not None:
        held, few, many = finds.users_of_many
        which = f"if each of them holds {held} different words, as people do: the more of these "
        which += "earlier rounds find, the fewer users it takes"
        lines.append((f"{few:,} to {many:,}", which))
    return [*lines, ("", note)] if note else lines


def intervals_lines(price: Price) -> Lines:
    """How far the intervals of numbers of users reach."""
    if (counting := price.counting) is None:
        return []
    reach = number(counting.noisiest_level.half_width)
    return [("intervals", f"of numbers of users reach {reach} to either side, or further up")]


# Lines about the ledger. They read it and never write it; its errors become lines.


def ledger_lines(price: Price, corpus: Corpus | None, ledger: Ledger | None) -> Lines:
    """The ledger's file, who would pay for a run, what is left, and whether the run would be
    refused."""
    if corpus is None:
        return [("", "the plan has no corpus yet")]
    try:
        book = ledger or Ledger()
        outlook = book.outlook(Request.of(price, corpus))
    except DphhError as problem:
        return [("", str(problem))]
    other = "" if ledger else "; of another: plan.describe(ledger=...)"
    lines = [("file", f"{book.path}{other}")]
    if outlook.refusal is not None:
        lines.append(("would refuse", outlook.refusal))
    if outlook.accounts or outlook.refusal is None:
        lines += _account_lines(outlook.accounts)
    if (takes := share_of_cap_line(outlook)) is not None:
        lines.append(("this run", takes))
    return lines


def paying_accounts_lines(ledger: Ledger, release: Released) -> Lines:
    """What is left in the accounts that paid for this release, if the ledger knows it."""
    run_id = release.manifest["run_id"]
    runs = [run for run in ledger.runs() if run.run_id == run_id]
    if not runs:
        return [("ledger", "the ledger that was given does not know this run")]
    labels = {label for run in runs for label in run.accounts}
    return _account_lines(each for each in ledger.accounts() if each.name in labels)


def _account_lines(accounts: Iterable[Account]) -> Lines:
    lines = [("account", f"{each.name}: {guarantee_and_usage(each)}") for each in accounts]
    return lines or [("no cap", f"{UNCAPPED}: {WHAT_CAPS}")]


def share_of_cap_line(outlook: Outlook, cap_name: str | None = None) -> str | None:
    """A line that says how much of the scarcest cap this run would take; None without a cap.
    `cap_name`: what the line calls the cap for an analyst, who may see no other."""
    if outlook.scarcest is None:
        return None
    account, share, runs_left = outlook.scarcest
    if cap_name is not None:
        return f"takes {part_of(share, cap_name)}"
    runs = with_noun(runs_left, "such run") if runs_left < MOST_RUNS_LEFT else "many such runs"
    left = f"{runs} {'is' if runs_left == 1 else 'are'} left"
    return f"takes {part_of(share, f'the cap of {one_line(account)}')}; {left}"
