"""Draws the spent part of a corpus's cap as a bar, and states what is left."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dphh.ledger.budget import percent
from dphh.ledger.wording import Spent, SpentByPeriod, guarantee_sentence, period_lines
from dphh.wording import shown


def account_html(account: Spent) -> str:
    said = f"{shown.html(account.label)}: {escape(guarantee_sentence(account))}"
    if account.used is None:
        return f"<div class='budget'><div>{said}.</div></div>"
    return (
        f"<div class='budget'><div>{said}.</div>"
        f"<svg width='100%' height='12' role='img' aria-label='{percent(account.used)} is used'>"
        "<rect width='100%' height='100%' rx='3' fill='#8888' /><rect height='100%' rx='3' "
        f"fill='#5b8bd0' width='{100 * min(1.0, account.used):.2f}%'/></svg></div>"
    )


def accounts_html(accounts: Sequence[SpentByPeriod]) -> str:
    """For notebooks: each account in a card of one."""
    if not accounts:
        return "<p>The ledger is empty: <code>Ledger.add</code> names and caps a corpus.</p>"
    bars = "".join(
        account_html(each) + "".join(f"<p>{escape(said)}</p>" for _, said in period_lines(each))
        for each in accounts
    )
    return f"<div class='dphh' style='max-width:46rem;display:grid;gap:0.75em'>{bars}</div>"
