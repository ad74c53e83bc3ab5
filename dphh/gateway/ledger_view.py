"""All that an analyst may see: their own shares, runs and releases, and errors of their requests.

Nothing else leaves the gateway: no path, no other corpus, no other analyst's name, and no row. The
ledgers in this file have an `analyst`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dphh.asking.answers import answer_without_plan
from dphh.asking.macros import Macro
from dphh.errors import BudgetRefused, DphhError, UnknownRunError, UsageError
from dphh.ledger import Account, Ledger, Request
from dphh.ledger.spending import usage_phrase
from dphh.report.plan_lines import Section, share_of_cap_line
from dphh.wording.options import check_known


@dataclass(frozen=True)
class Answer:
    """The answer to a request: a Parquet file, or a refusal; and a line for the owner's log
    alone."""

    parquet: bytes = b""
    refused: str | None = None
    status: int = 200
    log: str | None = None


def share_named(book: Ledger, name: str) -> Account:
    """The analyst's share of the account of this name. An account without such a share, and a name
    without an account, are refused in the same words."""
    for account in book.accounts(name):
        return account
    raise UsageError(
        f"corpus: found no corpus {name[:100]!r} of yours; FROM dphh_ledger() lists yours. "
        "Nothing was spent"
    )


def table_without_plan(book: Ledger, macro: Macro, arguments: dict[str, str]) -> pa.Table:
    """The answer of a macro that neither prices nor runs a plan."""
    check_known(arguments, macro.parameters, f"dphh_{macro.name}")
    macro.check_given(arguments)
    try:
        return answer_without_plan(macro, arguments, book)
    except UnknownRunError:
        raise UsageError(
            f"run_id: found no release {arguments['run_id'][:100]!r} of yours; FROM "
            "dphh_releases() lists yours"
        ) from None


def ledger_section(book: Ledger, request: Request, account: Account) -> Section:
    """The section of a plan about the ledger: how much of the cap the run takes, and what is used
    and left of it. `account`: the analyst's share."""
    outlook = book.outlook(request)
    lines = [] if outlook.refusal is None else [("would refuse", outlook.refusal)]
    if (takes := share_of_cap_line(outlook, "your budget")) is not None:
        lines.append(("this run", takes))
    return ("ledger", [*lines, ("yours", f"{account.cap}; {usage_phrase(account)}")])


def answer_to_error(problem: BaseException, *, of_run: bool = False) -> Answer:
    """An error as an answer. An analyst may read errors about the request or the budget. All other
    errors, and all errors of a run (`of_run`), are about the data or the machine, and go to the
    owner's log."""
    message = str(problem) if isinstance(problem, DphhError) else ""
    if isinstance(problem, BudgetRefused) or (isinstance(problem, UsageError) and not of_run):
        usual = 403 if isinstance(problem, BudgetRefused) else 400
        return Answer(refused=message, status=getattr(problem, "status", usual))
    return Answer(
        refused="The request failed; only the corpus's owner may see why. FROM dphh_ledger() "
        "says what is spent; the same request continues a run that was paid for at no further "
        "price",
        status=500,
        log=message or f"a defect of dphh, {type(problem).__name__}",
    )
