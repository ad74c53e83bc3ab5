"""A plan in sections of lines: its promise, levels, finds, and what the ledger says of it."""

from __future__ import annotations

from typing import Any

from dphh.columns import OTHER
from dphh.corpus import Corpus
from dphh.errors import DphhError
from dphh.ledger import Ledger
from dphh.ledger.budget import percent
from dphh.ledger.outlook import Outlook
from dphh.ledger.remaining import MOST_RUNS
from dphh.ledger.requests import request_of
from dphh.ledger.wording import account_lines, period_lines
from dphh.price import Finds, Price, Privacy, stated
from dphh.report.level_words import counting_lines, levels_lines, narrower_lines
from dphh.wording.lines import plural, shorten

#: A heading and its lines: (label, text).
Section = tuple[str, list[tuple[str, str]]]


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
        privacy = stated(price, corpus.user, of_files=corpus.source is None)
    return [
        *promises(privacy),
        *(("warning", said) for said in privacy.warnings),
        ("unit", privacy.unit),
        ("adjacency", privacy.adjacency),
        ("theorem", privacy.theorem),
        *(("delta", f"{share:.4g} for {what}") for what, share in privacy.delta_shares),
        *(("note", caveat) for caveat in privacy.caveats),
    ]


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


def noise_lines(price: Price) -> list[tuple[str, str]]:
    lines = [
        *levels_lines(price.levels),
        *counting_lines(price.counting),
        *narrower_lines(price),
    ]
    asked: dict[str, Any] = dict(price.parameters)
    if asked.get("by") is not None:
        lines.append(
            ("groups", f"within {', '.join(map(shorten, asked['groups']))} and {OTHER} of "
                       f"{shorten(asked['by'])}; {OTHER} is all that was not declared")
        )  # fmt: skip
    return lines


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
        outlook = outlook_of(price, corpus, ledger)
    except DphhError as problem:
        return [("", str(problem))]
    lines = [
        line for each in outlook.accounts for line in (*account_lines(each), *period_lines(each))
    ] or [("no cap", "nobody has capped this corpus: `dphh ledger add NAME CORPUS ...` does")]
    if (takes := run_takes(outlook)) is not None:
        lines.append(("this run", takes))
    lines += [("moved", said) for said in outlook.moved]
    refusal = outlook.refusal
    return lines if refusal is None else [("would refuse", refusal), *lines]


def outlook_of(price: Price, corpus: Corpus, ledger: Ledger | None) -> Outlook:
    """What the ledger (default: the caller's own) would say of a run of this price on a corpus."""
    return (ledger or Ledger()).outlook(request_of(price, corpus))


def run_takes(outlook: Outlook, of: str | None = None) -> str | None:
    """The share of the scarcest cap that this run would use; None without a cap. `of` names the cap
    to an analyst, who may see one alone."""
    found = outlook.ahead
    if found is None:
        return None
    taken = "more than 100%" if found.share > 1 else percent(found.share)
    if of is not None:
        return f"takes {taken} of {of}"
    runs = plural(found.runs_left, "such run") if found.runs_left < MOST_RUNS else "many such runs"
    left = f"{runs} {'is' if found.runs_left == 1 else 'are'} left"
    return f"takes {taken} of the cap of {shorten(found.account)}; {left}"


def asked(price: Price) -> str:
    return ", ".join(
        f"{key}={shorten(str(value), 120)}" for key, value in price.parameters if value is not None
    )
