"""Every run of a ledger as one table in a file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphh.errors import UsageError
from dphh.files.whole_files import write_unless_other_file
from dphh.ledger.entries import Entry
from dphh.privacy.events import events_to_json
from dphh.reader.corpus import as_recorded
from dphh.reader.paths import local_path_to_write
from dphh.wording.cells import csv_of

_COLUMNS = (
    "sequence", "run_id", "accounts", "source", "verb", "parameters", "events", "epsilon", "delta",
    "state", "booked", "changed", "who", "analyst",
)  # fmt: skip


def write_runs(runs: Sequence[Entry], path: str | Path, *, replace: bool) -> None:
    import polars as pl

    target, written = local_path_to_write("export", path), io.BytesIO()
    if target.suffix not in (".parquet", ".csv"):
        raise UsageError(f"The ledger exports to .parquet or .csv, not to {target.name!r}.")
    numbers = {"sequence": pl.Int64, "epsilon": pl.Float64, "delta": pl.Float64}
    schema = {column: numbers.get(column, pl.String) for column in _COLUMNS}
    table = pl.from_dicts([_row(run) for run in runs], schema)
    if target.suffix == ".parquet":
        table.write_parquet(written)
    else:  # callers choose run ids, and a spreadsheet must not compute one as a formula
        written.write(csv_of(table))
    write_unless_other_file("export", target, written.getvalue(), replace=replace)


def _row(run: Entry) -> dict[str, Any]:
    """The run's values for `_COLUMNS`, among others."""
    return {
        **vars(run),
        "accounts": json.dumps(run.accounts),
        "source": json.dumps(as_recorded(run.corpus)),
        "parameters": json.dumps(run.parameters),
        "events": json.dumps(events_to_json(run.events)),
        "booked": run.when.isoformat(),
        "changed": run.changed.isoformat(),
    }
