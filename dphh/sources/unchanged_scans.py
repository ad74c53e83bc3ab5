"""Frames and views that return the rows of Parquet files unchanged, as a corpus of these files.

What a run would fail of is looked for in the files, at no price, where running somebody's query for
it would answer the query's author. A frame or a view is taken for its files only if reading them as
a corpus of files gives the same columns of the same types: no folder adds a column, and the columns
are in every file, of one type.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.corpus import Corpus, replace_corpus
from dphh.errors import CorpusError
from dphh.files.paths import absolute_path
from dphh.lineage.duckdb_scans import scanned_by_relation
from dphh.lineage.polars_plans import is_lazy, scanned_by_lazy
from dphh.sources.finding import refuse_unclear_instants, unreadable_files
from dphh.sources.wide_files import refuse_wide_files


def files_unchanged(corpus: Corpus) -> Corpus | None:
    """The corpus of the files whose rows a frame or a view returns unchanged; None if it does
    anything else. Refuses files that cannot be opened. Reads no row."""
    files = [absolute_path(file) for file in _files_scanned(corpus)]
    # `who=7/part-0.parquet` adds a column `who`, on some engines and with some options.
    if not files or any("=" in file or not Path(file).is_file() for file in files):
        return None
    if not _have_the_same_columns(corpus, files):
        return None
    found = replace_corpus(corpus, kind="path", where=tuple(files), source=None, row_wise=False)
    try:
        refuse_wide_files(found)
        refuse_unclear_instants(found)
    except CorpusError:
        return None  # of files by themselves only: the query's engine knows how it reads them
    return found


def _files_scanned(corpus: Corpus) -> tuple[str, ...]:
    match type(corpus.source).__module__.split(".")[0].lstrip("_"):
        case "duckdb":
            return scanned_by_relation(corpus.source)
        case "polars" if is_lazy(corpus.source):
            return scanned_by_lazy(corpus.source)
    return ()


def _have_the_same_columns(corpus: Corpus, files: Iterable[str]) -> bool:
    kinds = set()
    for file in files:
        try:
            schema = pq.read_metadata(file).schema.to_arrow_schema()
        except (OSError, pa.ArrowException) as problem:
            found = f"a file of it cannot be read as Parquet ({type(problem).__name__})"
            raise unreadable_files(corpus, found) from None
        for column in corpus.columns.values():
            if schema.names.count(column) != 1:
                return False
            kinds.add((column, str(schema.field(column).type)))
    return len(kinds) == len({column for column, _ in kinds})
