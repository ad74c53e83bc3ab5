"""A wrong column is told when a corpus is named: once it was charged it cannot be put right.

Only Parquet files of this machine are looked at, and of each its schema; what is not there yet, or
is read otherwise, is found by the first run, which a wrong column costs nothing either.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.files.paths import files_of, is_remote, keeps_waiting
from dphh.wording.options import no_column

#: So many files are looked at.
MOST = 1000
#: What folders' names spell is a column too.
_SPELLED = re.compile(r"([^/=]+)=[^/]*/")


def refuse_columns_that_no_file_has(corpus: Corpus) -> None:
    """Where some file can be looked at and none of those has a column, none of it is there."""
    found: dict[str, None] = {}
    for file in _parquet_files(corpus)[:MOST]:
        if keeps_waiting(file):
            return
        if found.keys() >= set(corpus.columns.values()):
            return
        try:
            names = pq.read_schema(file).names
        except (OSError, pa.ArrowException):
            return  # the first run says what is wrong with it
        found |= dict.fromkeys([*names, *_SPELLED.findall(file)])
    for option, column in corpus.columns.items():
        if found and column not in found:
            said = no_column(option, column, found, f"it has {', '.join(found)}")
            raise CorpusError(f"{said}. Nothing was added")


def _parquet_files(corpus: Corpus) -> list[str]:
    if corpus.kind != "path" or any(map(is_remote, corpus.where)):
        return []
    files = [file for place in corpus.where for file in files_of(place)]
    logs = any((Path(place) / "_delta_log").is_dir() for place in corpus.where)
    parquet = [file for file in files if file.endswith((".parquet", ".pq", ".parq"))]
    return [] if logs or len(parquet) < len(files) else parquet
