"""Every run of a ledger, or every change, as a table in a file, for auditors and spreadsheets."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphh.errors import LedgerError, UsageError
from dphh.files.whole_files import refuse_other_file, refuse_other_table
from dphh.ledger.entries import Entry
from dphh.ledger.history import Change
from dphh.privacy.events import events_to_json
from dphh.wording.cells import cell

if TYPE_CHECKING:
    import polars as pl


def export(frame: pl.DataFrame, target: Path, book: Path) -> None:
    """Write the table atomically, and never over the ledger itself."""
    if target.suffix not in (".parquet", ".csv"):
        raise UsageError(f"The ledger exports to .parquet or .csv, not to {target.name!r}.")
    if Path(os.path.realpath(target)) == book:
        raise UsageError(f"{target} is the ledger itself. Export to another file.")
    if target.suffix == ".csv":
        header = frame.clear().write_csv().encode()
        refuse_other_file("export", target, header)
    else:
        refuse_other_table("export", target, frame.columns)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            if target.suffix == ".csv":
                _escape_formulas(frame).write_csv(file)
            else:
                frame.write_parquet(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise LedgerError(
            f"Could not export to {target}: {error.strerror or error}. See that its folder "
            "exists, has space and may be written to."
        ) from error


def _drawn_events_text(entry: Entry) -> str | None:
    return None if entry.drawn is None else json.dumps(events_to_json(entry.drawn))


def _escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Run ids are analysts' own: a spreadsheet must not compute one (`Release.to_csv`)."""
    import polars as pl

    return frame.with_columns(pl.col(pl.String).map_elements(cell, pl.String))


def changes(found: Sequence[Change]) -> pl.DataFrame:
    import polars as pl

    names = ("when", "who", "what", "account", "analyst", "was", "now")
    rows = [change.to_json() for change in found]
    return pl.DataFrame([pl.Series(name, [row[name] for row in rows], pl.String) for name in names])


def runs(entries: Sequence[Entry]) -> pl.DataFrame:
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
        "drawn": ([_drawn_events_text(e) for e in entries], pl.String),
        "epsilon": ([e.epsilon for e in entries], pl.Float64),
        "delta": ([e.delta for e in entries], pl.Float64),
        "state": ([e.state for e in entries], pl.String),
        "reserved": ([e.when.isoformat() for e in entries], pl.String),
        "changed": ([e.changed.isoformat() for e in entries], pl.String),
    }
    return pl.DataFrame([pl.Series(name, values, kind) for name, (values, kind) in columns.items()])
