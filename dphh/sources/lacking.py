"""Parquet files of a corpus that lack a column which others have: their rows are read as NULL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus
from dphh.sources.finding import files_named

#: So many files are looked at where a run begins.
MOST_FILES = 1000


def parquet_files(corpus: Corpus) -> list[str]:
    """Of this machine; none of a table that a log keeps, which is read as the log has it."""
    if corpus.kind != "path" or any("://" in place for place in corpus.where):
        return []
    logs = [Path(place) / log for place in corpus.where for log in ("_delta_log", "metadata")]
    if any(log.is_dir() for log in logs):
        return []
    found = {file for place in corpus.where for file in files_named(place)}
    return sorted(file for file in found if file.endswith((".parquet", ".pq", ".parq")))


def lacking(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """The columns that some files have and others have not, by the options that name them. How
    many files is not told: in folders named by user it would be a number of users."""
    found: list[set[str]] = []
    for file in parquet_files(corpus)[:MOST_FILES]:
        try:
            found.append({*pq.read_schema(file).names})
        except (OSError, pa.ArrowException):
            return  # the engine says what is wrong with it
    for option, column in corpus.columns.items():
        if any(column in names for names in found) and not all(column in names for names in found):
            yield option, column
