"""Plans and releases as shown in notebooks: the answer first, the proof folded away."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dphh.corpus import Corpus
from dphh.errors import DphhError
from dphh.ledger import Ledger
from dphh.ledger.bars import account_html
from dphh.price import Finds, Price, stated
from dphh.report.chart import chart_html, chart_of
from dphh.report.counted import how_many
from dphh.report.plan_lines import (
    asked,
    noise_lines,
    outlook_of,
    privacy_lines,
    promises,
)
from dphh.report.promise import in_words, promised
from dphh.report.released import Released
from dphh.report.style import CHART_CSS
from dphh.report.terminal import found_from
from dphh.wording import shown
from dphh.wording.lines import plural

#: Bars in a card: FEW for each length if there are several lengths, else MANY.
FEW, MANY = 5, 10


def release_card(release: Released) -> str:
    """What was found, as bars, with the privacy statement folded away."""
    manifest, privacy = release.manifest, release.privacy
    warning = f"<p><b>{escape(manifest['randomness'])}</b></p>" if release.is_test else ""
    lengths = len(set(release.table.column("level").to_pylist()))
    chart = chart_html(chart_of(release, MANY if lengths < 2 else FEW))
    if not len(release) and (sight := found_from(manifest)):
        chart = f"<p>{escape(sight[0].upper() + sight[1:])}.</p>"
    return _card_html(
        f"<p><b>{escape(how_many(release.table, manifest))}</b>, "
        f"({promised(privacy):.4g}, {privacy['delta']:g})-DP for {escape(privacy['unit'])}. "
        f"Run <code>{escape(shown.shown(release.run_id))}</code></p>{warning}"
        f"{chart}" + _folded_html("What is promised", in_words(privacy))
    )


def plan_card(price: Price, corpus: Corpus | None, ledger: Ledger | None = None) -> str:
    """What the plan finds, what it costs and what is left; levels and theorem are folded away."""
    weak = [("Warning", said) for said in price.privacy.warnings]
    if corpus is not None:
        says = stated(price, corpus.user, of_files=corpus.source is None)
        if not isinstance(corpus.user, str):
            weak.append(("Unit", says.unit))
        if says.provided is not None:
            weak.append(("Promised", f"provided that {says.provided}"))
    promise = " ".join(
        f"{what.capitalize()}: {said}." if what else f"{said}."
        for what, said in promises(price.privacy)
    )
    refused, left = _ledger_html(price, corpus, ledger)
    return _card_html(
        f"<p><b>plan: {escape(price.verb)}</b> <code>{escape(asked(price))}</code></p>"
        f"{refused}{_finds_html(price.finds)}{left}"
        f"<p>{escape(promise)}</p>{_lines_html(weak)}"
        + _folded_html("Noise and thresholds", noise_lines(price))
        + _folded_html(
            "Whose data, the theorem, and how delta is shared out", privacy_lines(price, corpus)
        )
    )


def _ledger_html(price: Price, corpus: Corpus | None, ledger: Ledger | None) -> tuple[str, str]:
    """Whether the ledger would refuse the run, and what is left in the accounts that would pay."""
    if corpus is None:
        return "", "<p>The plan has no corpus yet.</p>"
    try:
        outlook = outlook_of(price, corpus, ledger)
    except DphhError as problem:
        return "", f"<p>{escape(str(problem))}</p>"
    refusal = outlook.refusal
    refused = refusal and f"<p><b>The ledger would refuse it.</b> {escape(refusal)}</p>"
    left = "".join(account_html(account) for account in outlook.accounts)
    uncapped = "<p>No cap: nobody has capped this corpus; <code>Ledger.add</code> does.</p>"
    return refused or "", left or uncapped


def _finds_html(finds: Finds) -> str:
    """How many users an item needs to be found, as a table if that depends on what they hold."""
    head = f"Finds, with probability {finds.probability:g}, what is held by at least"
    note = f"<p class='more'>({escape(finds.note)})</p>" if finds.note else ""
    cells = [
        (plural(length, "word"), users) for length, users in finds.users_by_length
    ] or [
        (f"{plural(held, 'item')} a user", users) for held, users in finds.users_by_held
    ]  # fmt: skip
    if not cells:
        return f"<p>{head} <b>{finds.users:,} users</b>.</p>{note}"
    names = "".join(f"<th>{escape(name)}</th>" for name, _ in cells)
    users = "".join(f"<td><b>{users:,} users</b></td>" for _, users in cells)
    table = f"<table style='border-spacing:1.5em 0'><tr>{names}</tr><tr>{users}</tr></table>"
    return f"<p>{head}</p>{table}{note}"


def _folded_html(heading: str, lines: Sequence[tuple[str, str]]) -> str:
    return f"<details><summary>{escape(heading)}</summary>{_lines_html(lines)}</details>"


def _lines_html(lines: Sequence[tuple[str, str]]) -> str:
    said = "".join(
        f"<li>{f'<b>{escape(what)}</b>: ' if what else ''}{escape(text)}</li>"
        for what, text in lines
    )
    style = "list-style:none;padding-left:1em;margin:0.25em 0"
    return f"<ul style='{style}'>{said}</ul>" if said else ""


def _card_html(inside: str) -> str:
    return f"<div class='dphh' style='max-width:62rem'><style>{CHART_CSS}</style>{inside}</div>"
