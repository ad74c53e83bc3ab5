"""What is spent and left: in words, and as a card for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

from dphh.ledger.budget import Budget, Cap, four_digits_down, percent, promise, rule_in_words
from dphh.privacy.weak import warnings
from dphh.rows.user import UserColumns, whom
from dphh.wording import shown
from dphh.wording.lines import plural, wrapped


class Spent(Protocol):
    """An account or a share, as far as it is shown."""

    @property
    def label(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> UserColumns: ...
    @property
    def runs(self) -> int: ...
    @property
    def cap(self) -> Cap | None: ...
    @property
    def spent(self) -> Budget: ...
    @property
    def left(self) -> Budget | None: ...
    @property
    def used(self) -> float | None: ...


def accounts_text(accounts: Sequence[Spent]) -> str:
    """What `dphh ledger show` prints."""
    if not accounts:
        return "The ledger is empty: `dphh ledger add NAME CORPUS ...` names and caps a corpus."
    lines = []
    for account in accounts:
        lines.append(_label(account) + ("" if account.name else "  (no account, no cap)"))
        for _, text in account_lines(account):
            lines += wrapped(text, "   ", "      ")
    return "\n".join(lines)


def account_lines(account: Spent) -> list[tuple[str, str]]:
    lines = [(_label(account), guarantee_sentence(account))]
    if account.cap is not None:
        lines.append(("", f"kept: {rule_in_words(account.cap)}"))
        weak = warnings(account.cap.epsilon, account.cap.delta)
        lines += [("", f"warning: {warning}") for warning in weak]
    return lines


def guarantee_sentence(account: Spent) -> str:
    """A sentence with the guarantee, the share of it that is used, and what is left for one more
    run."""
    runs = plural(account.runs, "run")
    if account.cap is None:
        return f"no cap: {account.spent} is spent, by {runs}"
    if account.used is not None and account.used > 1:
        return (
            f"the cap of ({account.cap.epsilon:g}, {account.cap.delta:g}) does not hold: {runs} "
            f"used {percent(account.used)} of it; no run may follow"
        )
    return f"promised to {whom(account.user)}: {promise(account.cap)}; {usage_phrase(account)}"


def usage_phrase(account: Spent, of: str = "it") -> str:
    """A phrase with the share of a cap that is used, and what is left for one more run. `of` names
    the cap where no sentence before has."""
    assert account.used is not None
    assert account.left is not None
    assert account.cap is not None
    more = account.left
    may_have = (
        f"may have epsilon {four_digits_down(more.epsilon)} at delta {four_digits_down(more.delta)}"
    )
    if not account.runs:
        return f"nothing of {of} is used; a first run {may_have}"
    far = f"{percent(account.used)} of {of} is used, by {plural(account.runs, 'run')}"
    if more.epsilon == 0:
        return f"{far}; no run may follow"
    of_noise = " of items, ngrams or counts" if account.cap.kept == "divergence" else ""
    return f"{far}; one more{of_noise} {may_have}"


def account_html(account: Spent) -> str:
    """The sentence on an account, over a bar of the share of its cap that is used."""
    said = f"{shown.html(account.label)}: {escape(guarantee_sentence(account))}"
    if account.used is None:
        return f"<div class='budget'><div>{said}.</div></div>"
    return (
        f"<div class='budget'><div>{said}.</div>"
        f"<svg width='100%' height='12' role='img' aria-label='{percent(account.used)} is used'>"
        "<rect width='100%' height='100%' rx='3' fill='#8888' /><rect height='100%' rx='3' "
        f"fill='#5b8bd0' width='{100 * min(1.0, account.used):.2f}%'/></svg></div>"
    )


def accounts_html(accounts: Sequence[Spent]) -> str:
    """For notebooks."""
    if not accounts:
        return "<p>The ledger is empty: <code>Ledger.add</code> names and caps a corpus.</p>"
    bars = "".join(map(account_html, accounts))
    return f"<div class='dphh' style='max-width:46rem;display:grid;gap:0.75em'>{bars}</div>"


def _label(account: Spent) -> str:
    return shown.shown(account.label, 10_000)
