"""What a path or an address means: which local files it names, and which may be written."""

# Globs and addresses stay strings: pathlib would change the text that engines get.
# ruff: noqa: PTH112, PTH111, PTH113, PTH120, PTH207
from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from urllib.parse import unquote

from dphh.errors import UsageError

#: The beginning of an address such as s3://reviews; with one slash, as `Path` writes it.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE_ADDRESS = re.compile(r"file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)
#: Matches the end of the names of files that a folder stands for.
_PARQUET_ENDING = re.compile(r"\.parquet$", re.IGNORECASE)
#: Matches names that a folder and a glob skip, as Spark and Hive do: those of temporary files,
#: markers and checksums. A name with _ and = is that of a partition folder.
SKIPPED_NAME = re.compile(r"\.|_(?!.*=)")
#: Matches what makes a path a glob.
WILDCARD = re.compile(r"[*?\[]")
_DUCKDB_FILE_ENDING = re.compile(r"\.(duckdb|ddb)$", re.IGNORECASE)


def absolute_place(path: str | Path) -> str:
    """The absolute path or glob, without a look at the disk. A `file:` address becomes its path,
    and addresses of stores stay as they are."""
    text = str(path)
    if not text:
        raise UsageError("source: found the path ''; give a Parquet path, glob or folder")
    if (address := _FILE_ADDRESS.fullmatch(text)) is not None:
        return unquote(address[1])
    if is_remote(text):
        return text
    return Path(os.path.expanduser(text)).absolute().as_posix()


def is_remote(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def duckdb_file_of(path: str) -> str | None:
    """The DuckDB file of a path, as in `app.duckdb` or `app.duckdb/reviews`; None for others."""
    if is_remote(path) or os.path.lexists(path):
        return path if os.path.isfile(path) and _DUCKDB_FILE_ENDING.search(path) else None
    folder = os.path.dirname(path)
    return folder if os.path.isfile(folder) else None


def escaped_glob(path: str) -> str:
    """The glob that matches this path alone."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def parquet_pattern(path: str) -> str:
    """The path as a glob: wildcards in the name of an existing file or folder are escaped, and a
    folder means all Parquet files below it."""
    there = Path(path)
    if is_remote(path) or not there.exists():
        return path
    plain = escaped_glob(path)
    return f"{plain.rstrip('/')}/**/*.parquet" if there.is_dir() else plain


def files_named(place: str) -> list[str]:
    """The local files that an absolute path, a glob, a folder or a table of a database names; none
    for an address. A folder stands for all Parquet files below it."""
    if is_remote(place):
        return []
    if (database := duckdb_file_of(place)) is not None:
        # Rows that are not yet in the database file are in its log.
        return [file for file in (database, f"{database}.wal") if os.path.lexists(file)]
    if not os.path.lexists(place):
        return files_matching(place)
    if not os.path.isdir(place):
        return [place]
    every = files_matching(f"{escaped_glob(place.rstrip('/'))}/**")
    return [name for name in every if _PARQUET_ENDING.search(name)]


def files_matching(pattern: str) -> list[str]:
    """The local files that a glob matches and does not skip."""
    names = [name.replace(os.sep, "/") for name in glob(pattern, recursive=True)]
    return sorted(n for n in names if not is_skipped(n, pattern) and not os.path.isdir(n))


def is_skipped(name: str, pattern: str) -> bool:
    """Whether a glob skips a name that it matches: a part of the name, below what the pattern
    spells out, begins with a dot or with _, and no part of the pattern asks for such parts, as
    `_old*` does."""
    parts = pattern.split("/")
    spelled = next((n for n, part in enumerate(parts) if WILDCARD.search(part)), len(parts))
    asked = [part for part in parts[spelled:] if SKIPPED_NAME.match(part)]
    return any(
        SKIPPED_NAME.match(part) is not None and not any(fnmatchcase(part, each) for each in asked)
        for part in name.split("/")[spelled:]
    )


def dphh_folder(xdg_variable: str, below_home: str) -> Path | None:
    """The folder `dphh`: in the folder that an XDG variable names, else in the folder `below_home`
    of the home folder; None if there is no home folder."""
    named = os.environ.get(xdg_variable, "")
    try:  # the XDG rules say to ignore a relative path
        return (Path(named) if Path(named).is_absolute() else Path.home() / below_home) / "dphh"
    except RuntimeError:
        return None


def local_path_to_write(option: str, path: str | Path) -> Path:
    """The local path that a path or a `file:` address names. Refuses any other address, which
    `Path` would turn into a folder of that name, and an empty path, which is the working folder."""
    text = str(path)
    if not text:
        raise UsageError(f"{option}: found the path ''; give the path of a file or folder")
    if (address := _FILE_ADDRESS.fullmatch(text)) is not None:
        return Path(unquote(address[1]))
    if is_remote(text):
        raise UsageError(
            f"{option}: found {text!r}, but dphh writes to local files only; give a local path, "
            "and copy the result to the store"
        )
    return Path(path)
