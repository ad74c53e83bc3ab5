"""Refuses a wrong column when a corpus is named, because it cannot be corrected after a charge,
when the command line shows a plan, and before Spark starts Java.

Only the schemas of local Parquet files are read (`dphh.corpora.formats` has text files). For all
other corpora, and for files that do not exist yet, the first run finds a wrong column and spends
nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus
from dphh.errors import NoColumnError
from dphh.files.paths import files_of, is_remote, keeps_waiting
from dphh.wording.options import no_column

#: The largest number of files whose schemas are read.
MOST_FILES = 1000
#: A folder's name such as country=FR gives the column country.
_PARTITION_FOLDER = re.compile(r"([^/=]+)=[^/]*/")


def refuse_missing_columns_of_files(corpus: Corpus, ending: str) -> None:
    """Refuse a column that none of the files has whose schemas can be read. `ending` ends the
    message, such as "Nothing was added"."""
    found: dict[str, None] = {}
    files = _parquet_files(corpus)
    for file in files[:MOST_FILES]:
        if keeps_waiting(file):
            return
        if found.keys() >= set(corpus.columns.values()):
            return
        try:
            names = pq.read_schema(file).names
        except (OSError, pa.ArrowException):
            return  # the first run says what is wrong with it
        found |= dict.fromkeys([*names, *_PARTITION_FOLDER.findall(file)])
    if len(files) > MOST_FILES:
        return  # a column may be in a file that was not looked at
    for option, column in corpus.columns.items():
        if found and column not in found:
            compared = column in corpus.content.columns_asked
            said = no_column(column, found, f"it has {', '.join(found)}", compared)
            raise NoColumnError(option, f"{said}. {ending}")


def _parquet_files(corpus: Corpus) -> list[str]:
    if corpus.kind != "path" or any(map(is_remote, corpus.where)):
        return []
    files = [file for place in corpus.where for file in files_of(place)]
    logs = any((Path(place) / "_delta_log").is_dir() for place in corpus.where)
    parquet = [file for file in files if file.endswith((".parquet", ".pq", ".parq"))]
    return [] if logs or len(parquet) < len(files) else parquet
