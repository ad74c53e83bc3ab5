"""What is spent and left: in words, as a card for notebooks, and as a table in a file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import refuse_other_file, refuse_other_table, write_whole
from dphh.ledger.budget import four_digits_down, percent, promise, rule_in_words
from dphh.privacy.events import events_to_json
from dphh.privacy.weak import warnings
from dphh.rows.user import whom
from dphh.wording import shown
from dphh.wording.cells import cell
from dphh.wording.lines import plural, wrapped

if TYPE_CHECKING:
    import polars as pl

    from dphh.ledger.entries import Account, Change, Entry, Share

    Spent = Account | Share


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


def runs_table(entries: Sequence[Entry]) -> pl.DataFrame:
    """The runs as a table with flat columns, so that Parquet and CSV have the same content."""
    import polars as pl

    columns: dict[str, tuple[list[Any], Any]] = {
        "sequence": ([e.sequence for e in entries], pl.Int64),
        "run_id": ([e.run_id for e in entries], pl.String),
        "accounts": ([json.dumps(e.accounts) for e in entries], pl.String),
        "source": ([json.dumps(e.source.to_json()) for e in entries], pl.String),
        "verb": ([e.verb for e in entries], pl.String),
        "parameters": ([json.dumps(e.parameters) for e in entries], pl.String),
        "events": ([json.dumps(events_to_json(e.events)) for e in entries], pl.String),
        "epsilon": ([e.epsilon for e in entries], pl.Float64),
        "delta": ([e.delta for e in entries], pl.Float64),
        "state": ([e.state for e in entries], pl.String),
        "booked": ([e.when.isoformat() for e in entries], pl.String),
        "changed": ([e.changed.isoformat() for e in entries], pl.String),
        "who": ([e.who for e in entries], pl.String),
        "analyst": ([e.analyst for e in entries], pl.String),
    }
    return pl.DataFrame([pl.Series(name, values, kind) for name, (values, kind) in columns.items()])


def history_table(changes: Sequence[Change]) -> pl.DataFrame:
    import polars as pl

    names = ("when", "who", "what", "account", "analyst", "was", "now")
    rows = [change.to_json() for change in changes]
    return pl.DataFrame([pl.Series(name, [row[name] for row in rows], pl.String) for name in names])


def export_table(table: pl.DataFrame, target: Path, ledger: Path) -> None:
    """Write the table whole or not at all, and never over the ledger or another table."""
    import polars as pl

    if target.suffix not in (".parquet", ".csv"):
        raise UsageError(f"The ledger exports to .parquet or .csv, not to {target.name!r}.")
    if Path(os.path.realpath(target)) == ledger:
        raise UsageError(f"{target} is the ledger itself. Export to another file.")
    written = io.BytesIO()
    if target.suffix == ".csv":
        refuse_other_file("export", target, table.clear().write_csv().encode())
        # Run ids are their callers' own: a spreadsheet must not compute one.
        table.with_columns(pl.col(pl.String).map_elements(cell, pl.String)).write_csv(written)
    else:
        refuse_other_table("export", target, table.columns)
        table.write_parquet(written)
    try:
        write_whole(target, written.getvalue())
    except OSError as error:
        raise LedgerError(
            f"Could not export to {target}: {error.strerror or error}. See that its folder "
            "exists, has space and may be written to."
        ) from error


def _label(account: Spent) -> str:
    return shown.shown(account.label, 10_000)
