"""A release as a CSV file that spreadsheets open safely."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from dphh.characters.cells import cell, cell_of_list
from dphh.errors import UsageError
from dphh.files.paths import written_here
from dphh.files.whole_files import write_whole
from dphh.report.released import Released


def write_csv(release: Released, path: str | Path) -> Path:
    out = written_here("to_csv", path)
    try:
        write_whole(out, csv_of(release).encode())
    except OSError as problem:
        raise UsageError(
            f"to_csv: {out} could not be written ({problem.strerror}); give another path"
        ) from None
    return out


def csv_of(release: Released) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(release.table.column_names)
    for row in release:
        writer.writerow([_cell(value) for value in row.values()])
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return cell_of_list(value)
    return cell(value) if isinstance(value, str) else value
