"""Where a corpus's files are, and whether they are an account's.

An account of files has paths: files, folders, globs or addresses. A request's file is the account's
if its real path is in one of these folders or matches one of these globs. Nothing else is compared:
a file that was copied, moved or written anew elsewhere is another corpus (docs/threats.md).
"""

# Globs and addresses stay strings: pathlib would change the text that engines get.
# ruff: noqa: PTH114, PTH118, PTH120
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from pathlib import Path

from dphh.errors import UsageError
from dphh.reader.corpus import Corpus, replace_corpus
from dphh.reader.paths import WILDCARD, absolute_place, duckdb_file_of, is_remote


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
    resolve_links = cache(os.path.realpath)
    ways_to = cache(lambda folder: {*_paths_to(folder, resolve_links)})
    ways = set()
    for file in corpus.local_files:
        folder, name = os.path.split(file)
        ways |= {_resolved(file, resolve_links), *(f"{way}/{name}" for way in ways_to(folder))}
    ways |= {_with_links_resolved(place) for place in corpus.where}
    return frozenset(way.replace(os.sep, "/") for way in ways)


def holds(account_corpus: Corpus, places: frozenset[str]) -> bool:
    """Whether any of these places is one of the account's files or folders, or lies in one."""
    if account_corpus.kind != "path":
        return False
    owned = [_with_links_resolved(place).replace(os.sep, "/") for place in account_corpus.where]
    for own, place in product([each.split("/") for each in owned], places):
        parts = place.split("/")
        # A store is not listed, so the account also holds the addresses above its own.
        if _is_or_holds(own, parts) or (is_remote(place) and _is_or_holds(parts, own)):
            return True
    return False


def corpus_of_files(
    account_corpus: Corpus, files: str | Path | Sequence[str | Path] = ()
) -> Corpus:
    """An account's corpus as its owner described it; if `files` are given, of these files alone."""
    if account_corpus.kind != "path":
        account = account_corpus.account
        raise UsageError(
            f"corpus: the account {account!r} is for a table in memory "
            f"({label_of(account_corpus)}); pass that table with account={account!r}"
        )
    where = tuple(map(absolute_place, [files] if isinstance(files, (str, Path)) else files))
    for file in where:
        chosen = replace_corpus(account_corpus, where=(file,))
        if not holds(account_corpus, places_of(chosen)):
            raise wrong_account_error(account_corpus, chosen)
    return replace_corpus(account_corpus, where=where or account_corpus.where)


def wrong_account_error(account_corpus: Corpus, asked: Corpus) -> UsageError:
    return UsageError(
        f"account: {account_corpus.account!r} is for {label_of(account_corpus)}, not for "
        f"{label_of(asked)}. Nothing was spent. Name the account that has this data, or let its "
        "owner say where its data are now (`dphh ledger add NAME CORPUS ... --replace`)"
    )


def _resolved(file: str, resolve_links: Callable[[str], str]) -> str:
    """A file's path with links resolved. The links of a folder are resolved once for its files."""
    if os.path.islink(file):
        return resolve_links(file)
    folder, name = os.path.split(file)
    return os.path.join(resolve_links(folder), name)


def _paths_to(folder: str, resolve_links: Callable[[str], str]) -> Iterator[str]:
    """The paths of a folder: for each folder on the way one with the links resolved up to there. So
    a link in an account's folder is the account's."""
    parts = folder.split("/")
    for end in range(2, len(parts) + 1):
        if ".." not in parts[end:]:
            yield os.path.join(resolve_links("/".join(parts[:end])), *parts[end:])


def _with_links_resolved(place: str) -> str:
    """The path with links resolved up to the first wildcard; an address as it is."""
    if is_remote(place):
        return place.rstrip("/")
    place = duckdb_file_of(place) or place
    if os.path.lexists(place) or WILDCARD.search(place) is None:
        return os.path.realpath(place)
    folder = os.path.dirname(WILDCARD.split(place)[0])
    return os.path.join(os.path.realpath(folder), place[len(folder) :].lstrip("/"))


def _is_or_holds(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a path matches the pattern, or lies in what matches it. Both are split at "/"."""
    for at, part in enumerate(pattern):
        if part == "**":
            deeper = range(at, len(path) + 1)
            return any(_is_or_holds(pattern[at + 1 :], path[deep:]) for deep in deeper)
        if at == len(path) or not (part == path[at] or fnmatchcase(path[at], part)):
            return False
    return True
