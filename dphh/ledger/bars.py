"""What is spent of a corpus's cap and what is left: a bar, and words."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dphh.ledger.said import Spent, SpentByPeriod, period_lines
from dphh.wording import shown
from dphh.wording.lines import plural


def account_html(account: Spent) -> str:
    runs = plural(account.runs, "run")
    said = f"{shown.html(account.label)}: spent {escape(str(account.spent))} in {runs}"
    if not account.runs:
        said = f"{shown.html(account.label)}: unspent"
    if account.cap is None or account.left is None:
        return f"<div class='budget'><div>{said}; no cap.</div></div>"
    share = min(1.0, account.spent.epsilon / account.cap.epsilon) if account.cap.epsilon else 1.0
    return (
        f"<div class='budget'><div>{said}.</div>"
        f"<svg width='100%' height='12' role='img' aria-label='{share:.0%} of epsilon spent'>"
        "<rect width='100%' height='100%' rx='3' fill='#8888' />"
        f"<rect height='100%' rx='3' fill='#5b8bd0' width='{100 * share:.2f}%'/></svg>"
        f"<div>Left {escape(str(account.left))}, for one more Gaussian run; the cap is "
        f"{escape(str(account.cap))}.</div></div>"
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
