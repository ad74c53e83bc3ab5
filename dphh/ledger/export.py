"""Every run of a ledger, or every change, as a table in a file, for auditors and spreadsheets."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import refuse_other_file, refuse_other_table, write_whole
from dphh.ledger.entries import Change, Entry
from dphh.privacy.events import events_to_json
from dphh.wording.cells import cell

if TYPE_CHECKING:
    import polars as pl


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
