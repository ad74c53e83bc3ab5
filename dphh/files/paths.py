"""Which files a path, a folder, a glob or an address may mean, in any engine.

Where engines differ, all interpretations are taken: the files that the ledger charges must include
at least those that are read. Only names are looked at, never contents.
"""

# Globs and addresses stay strings: pathlib would normalise away what engines see.
# ruff: noqa: PTH109, PTH110, PTH111, PTH112, PTH113, PTH116, PTH117, PTH118, PTH120, PTH208
from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from dphh.errors import UsageError

MAGIC = re.compile(r"[*?\[]")
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
#: Also with one slash, as `Path` writes an address; a drive has one letter.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE_ADDRESS = re.compile(r"(?:^|/)file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)
_DATABASE_NAME = re.compile(r"\.(duckdb|ddb)$", re.IGNORECASE)


def files_of(place: str) -> Iterator[str]:
    """Every file on this machine that a path, a folder or a glob may mean, in any engine."""
    for spelling in {absolute_path(each) for each in spellings(place)}:
        if is_remote(spelling):
            continue
        if (database := database_of(spelling)) is None:
            yield from files_at(spelling)
            continue
        yield database
        if os.path.exists(log := database + ".wal"):
            yield log


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


def spellings(place: str) -> set[str]:
    """A path, and what any engine may also take it for."""
    found = {place, unquote(place)}
    # A `file:` address or `~` keeps its meaning if it was joined to a working folder.
    if (address := _FILE_ADDRESS.search(place)) is not None:
        found.add(address[1])
    if (home := re.search(r"(?:^|/)(~[^/]*(?:/.*)?)$", place)) is not None:
        found.add(os.path.expanduser(home[1]))
    found |= {spelling.replace("\\", "/") for spelling in found}
    found = {each for spelling in found for each in _expand_braces(spelling)}
    # `..` is the parent of a link's target or, in DuckDB's globs, of the link itself.
    return found | {_without_dots(each) for each in found if ".." in each.split("/")}


def _without_dots(path: str) -> str:
    host = re.match(r"[A-Za-z][A-Za-z0-9+.-]+://[^/]*", path)
    start = "" if host is None else host[0]
    return start + os.path.normpath(path[len(start) :])


def _expand_braces(pattern: str, most: int = 1000) -> set[str]:
    """The pattern itself and, for Spark, every expansion of its `{a,b}`."""
    found, todo = {pattern}, [pattern]
    while todo:
        if (group := re.search(r"\{([^{}]*)\}", text := todo.pop())) is None:
            found.add(text)
            continue
        todo += [text[: group.start()] + part + text[group.end() :] for part in group[1].split(",")]
        if len(todo) + len(found) > most:
            raise UsageError(f"A path's braces expand to more than {most} paths; name fewer paths.")
    return found


def keeps_waiting(path: str) -> bool:
    """Whether opening the path may block forever: a pipe, a socket or a device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # opening it fails too, at once
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # a link that this user may not read cannot lead to readable data
        return path


def resolved(path: str) -> str:
    """The path with its part before the first wildcard resolved and the rest unchanged."""
    if os.path.exists(path) or MAGIC.search(path) is None:
        return real_path(path)
    folder = os.path.dirname(MAGIC.split(path)[0])
    return real_path(folder).rstrip("/") + "/" + path[len(folder) :].lstrip("/")


def files_at(pattern: str) -> Iterator[str]:
    """Every file that a path, a folder or a glob includes."""
    found = {os.sep} if os.path.isabs(pattern) else {os.curdir}
    if os.path.exists(pattern):
        yield from _entries_beneath([pattern], folders=False)
    if MAGIC.search(pattern) is None:
        return
    drive, rest = os.path.splitdrive(pattern)
    if drive:
        found = {drive + os.sep}
    for segment in filter(None, rest.split("/")):
        if "**" in segment:
            found = set(_entries_beneath(found, folders=True))
            found |= set(_children(found, segment))
        elif MAGIC.search(segment):
            found = set(_children(found, segment))
        else:
            found = {j for f in found if os.path.lexists(j := os.path.join(f, segment))}
    yield from _entries_beneath(found, folders=False)


def _children(folders: Iterable[str], segment: str) -> Iterator[str]:
    """Entries that match one segment of a glob, including those with a leading dot."""
    matches = re.compile(expression(segment), re.DOTALL).fullmatch
    for folder in folders:
        try:
            yield from (os.path.join(folder, n) for n in os.listdir(folder) if matches(n))
        except OSError:
            continue  # not a folder, or one that this user may not list: see `patterns`


def _entries_beneath(roots: Iterable[str], folders: bool) -> Iterator[str]:
    """The folders, or the files, in and beneath each root; follows links but no cycles."""
    for root in roots:
        if not os.path.isdir(root):
            if not folders:
                yield root
            continue
        seen: set[str] = set()
        for folder, inner, names in os.walk(root, followlinks=True):
            if (real := real_path(folder)) in seen:
                inner.clear()
                continue
            seen.add(real)
            if folders:
                yield folder
            else:
                yield from (os.path.join(folder, name) for name in names)


def expression(glob: str) -> str:
    """A glob as a regular expression that matches at least what any engine matches."""
    wild = {"**": ".*", "**/": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/?|\*|\?|\[[!^]?\]?[^\]]*\])", glob)
    return "".join(
        wild.get(part) or (_bracket_expression(part) if index % 2 else re.escape(part))
        for index, part in enumerate(parts)
    )


def _bracket_expression(brackets: str) -> str:
    """`[a-z]`. A negation matches any character: engines differ in the negating sign."""
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", brackets[1:-1])
    try:
        re.compile(f"[{inner}]")
    except re.error:
        return "[^/]"
    return "[^/]" if brackets[1] in "!^" else f"[{inner}]"
