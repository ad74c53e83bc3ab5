"""What a path or an address means: which local files it names, and which may be written."""

# Globs and addresses stay strings: pathlib would normalise away what engines see.
# ruff: noqa: PTH112, PTH111, PTH113, PTH120, PTH207
from __future__ import annotations

import os
import re
from glob import glob
from pathlib import Path
from urllib.parse import unquote

from dphh.errors import UsageError

#: With one slash, as `Path` writes an address.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE_ADDRESS = re.compile(r"file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)
DATABASE_NAME = re.compile(r"\.(duckdb|ddb)$", re.IGNORECASE)


def absolute(path: str | Path) -> str:
    """An absolute path or glob, also of a `file:` address, without a look at the disk; addresses of
    stores stay as they are."""
    text = str(path)
    if not text:
        raise UsageError("source: found the path ''; give a Parquet path, glob or folder")
    if (address := _FILE_ADDRESS.fullmatch(text)) is not None:
        return unquote(address[1])
    if is_remote(text):
        return text
    return str(Path(os.path.expanduser(text)).absolute())


def is_remote(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def database_of(path: str) -> str | None:
    """The database file of a table that is written as a path below it: `app.duckdb/reviews`."""
    if is_remote(path) or os.path.lexists(path):
        return path if os.path.isfile(path) and DATABASE_NAME.search(path) else None
    folder = os.path.dirname(path)
    return folder if os.path.isfile(folder) else None


def parquet_pattern(path: str) -> str:
    """A glob for the path: an existing file or folder is taken literally, even with wildcards in
    its name; a folder means all Parquet files below it."""
    there = Path(path)
    if is_remote(path) or not there.exists():
        return path
    plain = re.sub(r"([*?\[])", r"[\1]", path)
    return f"{plain.rstrip('/')}/**/*.parquet" if there.is_dir() else plain


def files_named(place: str) -> list[str]:
    """The local files that an absolute path, a glob, a folder or a table of a database names; none
    for an address. Like DuckDB's listing, it includes names with a leading dot and excludes
    folders."""
    if is_remote(place):
        return []
    if (database := database_of(place)) is not None:
        # What is not yet written to the file itself is in its log.
        return [file for file in (database, f"{database}.wal") if os.path.lexists(file)]
    names = glob(parquet_pattern(place), recursive=True, include_hidden=True)
    return sorted(name for name in names if not os.path.isdir(name))


def folder_of_user(variable: str, below_home: str) -> Path | None:
    """This user's folder for dphh's files of a kind, by the XDG rules, whose variable it is; None
    where there is no home."""
    named = os.environ.get(variable, "")
    try:  # the XDG rules say to ignore a relative one
        return (Path(named) if Path(named).is_absolute() else Path.home() / below_home) / "dphh"
    except RuntimeError:
        return None


def written_here(option: str, path: str | Path) -> Path:
    """The local path to write to, `file://` for its path. Refuses any other address, which `Path`
    would turn into a folder of that name."""
    text = str(path)
    if (address := _FILE_ADDRESS.fullmatch(text)) is not None:
        return Path(unquote(address[1]))
    if is_remote(text):
        raise UsageError(
            f"{option}: found {text!r}, but dphh writes to local files only; give a local path, "
            "and copy the result to the store"
        )
    return Path(path)
