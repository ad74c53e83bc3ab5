"""What is spent and left, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dphh.words import plural

if TYPE_CHECKING:
    from dphh.ledger.records import Account


def account_lines(account: Account) -> list[tuple[str, str]]:
    spent = f"spent {account.spent} in {plural(account.runs, 'run')}" if account.runs else "unspent"
    lines = [(account.label, spent)]
    if account.cap is not None and account.left is not None:
        lines.append(("", f"cap   {account.cap}"))
        lines.append(("", f"left  {account.left}, for one more Gaussian run"))
    return lines


def accounts_text(accounts: Sequence[Account]) -> str:
    """What `dphh ledger show` prints."""
    if not accounts:
        return "The ledger is empty: `dphh ledger add NAME CORPUS ...` names and caps a corpus."
    lines = []
    for account in accounts:
        lines += [account.label + ("" if account.name else "  (no name, no cap)")]
        lines += [f"   {text}" for _, text in account_lines(account)]
    return "\n".join(lines)
