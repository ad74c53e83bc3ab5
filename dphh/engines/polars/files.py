"""Parquet files as one lazy frame of the needed columns, read as DuckDB would read them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl

from dphh.corpora.files import (
    no_such_file,
    refuse_columns_twice,
    refuse_missing_columns,
    unreadable,
    unreadable_files,
)
from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.files.paths import parquet_pattern

FILE_COLUMN = "dphh: file"
NO_INTERVALS = "Polars reads none; cast the column to text, or use engine='duckdb'"
#: Hive's folder name for NULL.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def scan_files(corpus: Corpus) -> tuple[pl.LazyFrame, pl.Schema]:
    """Reads names and schemas only. Columns are matched by name, and types are widened."""
    try:
        if any("://" in path for path in corpus.where):  # Polars itself reads stores and globs
            files = pl.scan_parquet(
                list(corpus.where), missing_columns="insert", extra_columns="ignore"
            )
        else:
            files = _scan_listed_files(corpus, _files_listed_by_duckdb(corpus))
        return files, files.collect_schema()
    except pl.exceptions.DuplicateError as problem:
        refuse_columns_twice(corpus)
        found = f"it cannot be read as Parquet ({type(problem).__name__})"
        raise unreadable_files(corpus, found) from None
    except pl.exceptions.SchemaError:
        raise unreadable_files(
            corpus, "its files hold a column in types that do not go together"
        ) from None
    except pl.exceptions.PanicException:  # raised if any column is an interval
        found = f"it holds a type that Polars cannot read, such as an interval: {NO_INTERVALS}"
        raise CorpusError(f"corpus: {', '.join(corpus.where)}: {found}") from None
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise unreadable(corpus, problem) from None


def _files_listed_by_duckdb(corpus: Corpus) -> list[str]:
    """The files that DuckDB's glob lists, so that both engines read the same ones."""
    if all(Path(path).is_file() for path in corpus.where):
        return list(corpus.where)
    files: list[str] = []
    with duckdb.connect() as con:
        for path in corpus.where:
            pattern = parquet_pattern(path)
            try:
                rows = con.execute("SELECT file FROM glob($1) ORDER BY file", [pattern]).fetchall()
            except duckdb.Error as problem:
                found = f"it cannot be listed ({type(problem).__name__})"
                raise unreadable_files(corpus, found) from None
            if not rows:
                raise no_such_file(corpus)
            files += [file for (file,) in rows]
    return files


def _scan_listed_files(corpus: Corpus, files: list[str]) -> pl.LazyFrame:
    schemas = {file: pl.read_parquet_schema(file) for file in files}
    # A column in the files takes precedence over one in the names of partition folders.
    in_files = list(dict.fromkeys(column for schema in schemas.values() for column in schema))
    in_folders = sorted(
        {name for file in files for name in _partition_values(file)} - set(in_files)
    )
    refuse_missing_columns(corpus, in_files + in_folders)
    wanted = list(dict.fromkeys(corpus.columns.values()))

    alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for file in files:
        alike[tuple(schemas[file].get(column) for column in wanted)].append(file)
    frames = []
    for types, group in alike.items():
        scanned = pl.scan_parquet(
            group, glob=False, hive_partitioning=False, extra_columns="ignore",
            missing_columns="insert", include_file_paths=FILE_COLUMN,
        )  # fmt: skip
        columns = []
        for column, kind in zip(wanted, types, strict=True):
            if kind is not None:
                columns.append(pl.col(column))
            elif column in in_folders:
                spelled = [_partition_values(file).get(column) for file in group]
                columns.append(
                    pl.col(FILE_COLUMN)
                    .replace_strict(group, spelled, return_dtype=pl.String)
                    .alias(column)
                )
            else:
                columns.append(pl.lit(None).alias(column))
        frames.append(scanned.select(columns))
    return pl.concat(frames, how="vertical_relaxed")


def _partition_values(file: str) -> dict[str, str | None]:
    """The name=value pairs of partition folders, as text: 01 and 1 are different users."""
    pairs = (part.split("=", 1) for part in Path(file).parent.parts if "=" in part)
    return {name: None if value == NO_VALUE else unquote(value) for name, value in pairs}
