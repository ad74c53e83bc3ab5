"""A release as a CSV file that spreadsheets open safely."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dphh.files.paths import written_here
from dphh.files.whole_files import write_named
from dphh.report.released import Released
from dphh.wording.cells import cell, cell_of_list


def write_csv(release: Released, path: str | Path) -> Path:
    return write_rows(release.table.column_names, release, path)


def write_rows(names: Sequence[str], rows: Iterable[Mapping[str, Any]], path: str | Path) -> Path:
    out = written_here("to_csv", path)
    text = _csv_text(names, rows).encode()
    write_named("to_csv", out, text, text[: text.index(b"\n") + 1])
    return out


def _csv_text(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_csv_cell(value) for value in row.values()])
    return file.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        return cell_of_list(value)
    return cell(value) if isinstance(value, str) else value
