"""Where a corpus's files are, and whether they are an account's.

An account of files has paths: files, folders, globs or addresses. A request's file is the account's
if its real path is in one of these folders or matches one of these globs. Nothing else is compared:
a file that was copied, moved or written anew elsewhere is another corpus (docs/threats.md).
"""

# Globs and addresses stay strings: pathlib would change the text that engines get.
# ruff: noqa: PTH116, PTH118, PTH120
from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from dphh.corpus import Corpus, replace_corpus
from dphh.errors import UsageError
from dphh.files.paths import absolute_place, database_of, files_named, is_remote

_WILDCARD = re.compile(r"[*?\[]")

#: How many hexadecimal digits of the files' hash the ledger keeps for each run.
STORED_HASH_DIGITS = 4


def label_of(corpus: Corpus) -> str:
    """The name of a corpus in messages: its paths; for a table in memory, its type and columns."""
    where = ", ".join(corpus.where)
    if corpus.kind == "path":
        return where
    return f"{where}({' and '.join(corpus.user)}, {corpus.content.column})"


def places_of(corpus: Corpus) -> frozenset[str]:
    """Where a corpus is, for `holds` to compare: the paths of its files with links resolved; and
    its patterns and addresses, because a folder may be empty now, and a store is not listed."""
    if corpus.kind != "path":
        return frozenset()
    real = cache(os.path.realpath)
    files = {file for place in corpus.where for file in files_named(place)}
    ways = {way for file in files for way in _paths_to(file, real)}
    return frozenset(ways | {_resolved(place) for place in corpus.where})


def holds(account_corpus: Corpus, places: frozenset[str]) -> bool:
    """Whether any of these places is one of the account's files or folders, or lies in one."""
    if account_corpus.kind != "path":
        return False
    owned = [_resolved(place).split("/") for place in account_corpus.where]
    for place in places:
        parts = place.split("/")
        # A store is not listed, so the account also holds the addresses above its own.
        if any(
            _contains(own, parts) or (is_remote(place) and _contains(parts, own)) for own in owned
        ):
            return True
    return False


def of_files(own: Corpus, files: str | Path | Sequence[str | Path] = ()) -> Corpus:
    """An account's corpus as its owner described it; of its `files`, if named, these alone."""
    if own.kind != "path":
        raise UsageError(
            f"corpus: the account {own.account!r} is for a table in memory ({label_of(own)}); pass "
            f"that table with account={own.account!r}"
        )
    where = tuple(map(absolute_place, [files] if isinstance(files, (str, Path)) else files))
    for file in where:
        if not holds(own, places_of(chosen := replace_corpus(own, where=(file,)))):
            raise wrong_account_error(own, chosen)
    return replace_corpus(own, where=where or own.where)


def wrong_account_error(own: Corpus, asked: Corpus) -> UsageError:
    return UsageError(
        f"account: {own.account!r} is for {label_of(own)}, not for {label_of(asked)}. Nothing was "
        "spent. Leave account out, or let its owner say where its data are now (`dphh ledger add "
        "NAME CORPUS ... --replace`)"
    )


def files_state(corpus: Corpus) -> str:
    """A hash of the names, sizes and times of a corpus's files, which changes when a file changes;
    '' for tables in memory and remote files, whose state is not read.

    A reader of the hash can test guesses on it, so the ledger keeps all of it only while a run is
    unfinished, and `STORED_HASH_DIGITS` digits afterwards (docs/threats.md).
    """
    if corpus.kind != "path" or any(map(is_remote, corpus.where)):
        return ""
    found = set()
    for file in (file for place in corpus.where for file in files_named(place)):
        with suppress(OSError):  # the file was removed since it was listed, or is a dangling link
            status = os.stat(file)
            found.add((os.path.realpath(file), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()[:32]


def _paths_to(file: str, real: Callable[[str], str]) -> Iterator[str]:
    """The path with links resolved in all of it; and, for each folder on it, with links resolved up
    to there: a link that lies in an account's folder is the account's, wherever it leads."""
    yield real(file)
    parts = file.split("/")
    for end in range(2, len(parts)):
        if ".." not in parts[end:]:
            yield os.path.join(real("/".join(parts[:end])), *parts[end:])


def _resolved(place: str) -> str:
    """The path with links resolved up to the first wildcard; an address as it is."""
    if is_remote(place):
        return place.rstrip("/")
    place = database_of(place) or place
    if os.path.lexists(place) or _WILDCARD.search(place) is None:
        return os.path.realpath(place)
    folder = os.path.dirname(_WILDCARD.split(place)[0])
    return os.path.join(os.path.realpath(folder), place[len(folder) :].lstrip("/"))


def _contains(own: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a path is `own` or lies in it. Both are split at "/"; `own` may have wildcards."""
    for at, part in enumerate(own):
        if part == "**":
            return any(_contains(own[at + 1 :], parts[deep:]) for deep in range(at, len(parts) + 1))
        if at == len(parts) or not (part == parts[at] or fnmatchcase(parts[at], part)):
            return False
    return True
