"""Paths and addresses: which are local, which may be written, and what may never end."""

# Globs and addresses stay strings: pathlib would normalise away what engines see.
# ruff: noqa: PTH109, PTH113, PTH116, PTH118, PTH120
from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from urllib.parse import unquote

from dphh.errors import UsageError

_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
#: Also with one slash, as `Path` writes an address; a drive has one letter.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE_ADDRESS = re.compile(r"(?:^|/)file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)
_DATABASE_NAME = re.compile(r"\.(duckdb|ddb)$", re.IGNORECASE)


def database_of(path: str) -> str | None:
    """The database file of a table that is written as a path below it: `app.duckdb/reviews`."""
    if is_remote(path) or os.path.lexists(path):
        return path if os.path.isfile(path) and _DATABASE_NAME.search(path) else None
    folder = os.path.dirname(path)
    return folder if os.path.isfile(folder) else None


def absolute_path(path: str) -> str:
    if (address := _FILE_ADDRESS.match(path)) is not None:
        return address[1]
    return path if is_remote(path) else os.path.join(os.getcwd(), path)


def written_here(option: str, path: str | Path) -> Path:
    """The local path to write to, `file://` for its path. Refuses any other address, which `Path`
    would turn into a folder of that name."""
    text = str(path)
    if text.lower().startswith("file:") and (address := _FILE_ADDRESS.match(text)) is not None:
        return Path(unquote(address[1]))
    if _ADDRESS.match(text):
        raise UsageError(
            f"{option}: found {text!r}, but dphh writes to local files only; give a local path, "
            "and copy the result to the store"
        )
    return Path(path)


def is_remote(path: str) -> bool:
    scheme = _REMOTE.match(path)
    return scheme is not None and scheme[1].lower() != "file"


def keeps_waiting(path: str) -> bool:
    """Whether opening the path may block forever: a pipe, a socket or a device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # opening it fails too, at once
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
