"""Who pays for a run: the accounts that have its files, or the one that it names; and whether their
caps allow it.

An account of files has paths: files, folders, globs or addresses. A request's file is the account's
if its real path is in one of these folders or matches one of these globs. Nothing else is compared:
a file that was copied, moved or rewritten elsewhere is another corpus (docs/threats.md).

`payers_of` and `check_caps` run inside the caller's transaction, on its connection, for the owner
or for an `analyst`.
"""

# Globs and addresses stay strings: pathlib would change the text that engines get.
# ruff: noqa: PTH114, PTH118, PTH120
from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from pathlib import Path

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger.budget import fits, refusal
from dphh.ledger.entries import Request
from dphh.ledger.spending import Account
from dphh.ledger.tables import account_named, account_names, accounts_in, shares_of
from dphh.reader.corpus import Corpus, replace_corpus, unit_and_columns, user_option
from dphh.reader.paths import (
    WILDCARD,
    absolute_place,
    duckdb_file_of,
    escaped_glob,
    is_remote,
    is_skipped,
    parquet_pattern,
)


def payers_of(
    con: sqlite3.Connection,
    corpus: Corpus,
    places: frozenset[str],
    analyst: str | None,
    *,
    required: bool = False,
    with_bookings: bool = True,
) -> list[Account]:
    """The accounts that pay: the one that the corpus names, then those that hold its files."""
    booked = {"with_bookings": with_bookings}
    named = [] if corpus.account is None else [account_named(con, corpus.account, **booked)]
    if named and corpus.kind == "path" and not holds(named[0].corpus, places):
        raise wrong_account_error(named[0].corpus, corpus)
    if not named and corpus.kind != "path" and (names := account_names(con)):
        raise BudgetRefused(
            "Refused: which account pays? This ledger has accounts, so a table in memory must "
            f"name one of them: account={names[0]!r}. Nothing was spent."
        )
    if analyst is not None and not named:
        raise BudgetRefused("Refused: an analyst's run must name the account that pays.")
    others = accounts_in(
        con, lambda own: own.account != corpus.account and holds(own, places), **booked
    )
    if required and not named and not others:
        raise UsageError(
            "account: none pays for this corpus, so nothing would cap the run, and "
            "require_account=True. Nothing was spent. Correct the corpus or the ledger, or add "
            "an account with `dphh ledger add`"
        )
    return [*named, *others]


def check_caps(
    con: sqlite3.Connection,
    request: Request,
    payers: list[Account],
    analyst: str | None,
    *,
    shares_only: bool = False,
) -> None:
    """Refuse a run that the cap of a paying account, or the analyst's share of one, does not
    allow."""
    shares: list[Account] = []
    if analyst is not None:
        shares = shares_of(con, payers, analyst)
        if not shares or shares[0].id != payers[0].id:  # the account that the request names
            raise BudgetRefused(
                f"Refused: {analyst} has no share of {payers[0].label}. Nothing was "
                "spent. Only the account's owner can give one."
            )
    for payer in [*shares, *([] if shares_only else payers)]:
        same_user = payer.corpus.user == request.corpus.user
        if same_user and fits([*payer.bookings, request.booking], payer.cap):
            continue
        if analyst is not None and payer in payers:
            # An analyst must not learn what others have spent, nor of other accounts.
            raise BudgetRefused(
                "Refused: your share allows this run, but what is left for all who may ask "
                "does not. Nothing was spent. Ask for less, or ask the corpus's owner."
            )
        if not same_user:  # a misspelled option, and no budget that is used up
            raise UsageError(
                f"Refused: {payer.label} protects {unit_and_columns(payer.corpus.user)}, but "
                f"this run counts them by user={user_option(request.corpus.user)!r}, which "
                "does not protect them. Nothing was spent. Use the account's user columns."
            )
        raise BudgetRefused(refusal(payer.label, payer.bookings, payer.cap, request.booking))


# Where a corpus is, and whether an account has it.


def label_of(corpus: Corpus) -> str:
    """The name of a corpus in messages: its paths; for a table in memory, its type and columns."""
    where = ", ".join(corpus.where)
    if corpus.kind == "path":
        return where
    return f"{where}({' and '.join(corpus.user)}, {corpus.content.column})"


def places_of(corpus: Corpus) -> frozenset[str]:
    """The paths of a corpus that `holds` compares: those of its files with links resolved; and its
    patterns and addresses, because a folder may be empty now, and a store is not listed."""
    if corpus.kind != "path":
        return frozenset()
    resolve_links = cache(os.path.realpath)
    paths_to = cache(lambda folder: {*_paths_to(folder, resolve_links)})
    paths = set()
    for file in corpus.local_files:
        folder, name = os.path.split(file)
        paths |= {_resolved(file, resolve_links), *(f"{path}/{name}" for path in paths_to(folder))}
    paths |= {_with_links_resolved(place) for place in corpus.where}
    return frozenset(path.replace(os.sep, "/") for path in paths)


def holds(account_corpus: Corpus, places: frozenset[str]) -> bool:
    """Whether any of these places is one of the account's files or folders, or lies in one."""
    if account_corpus.kind != "path":
        return False
    owned = [_with_links_resolved(place).replace(os.sep, "/") for place in account_corpus.where]
    for own, place in product([path.split("/") for path in owned], places):
        parts = place.split("/")
        # A store is not listed, so the account also holds the addresses above its own.
        if _is_or_holds(own, parts) or (is_remote(place) and _is_or_holds(parts, own)):
            return True
    return False


def read_other_files(run: Corpus, account_corpus: Corpus) -> bool:
    """Whether a run of files read some that are not the account's."""
    return run.kind == "path" and not holds(account_corpus, places_of(run))


def would_read(corpus: Corpus, file: Path) -> bool:
    """Whether a corpus of files reads a file, once it is at this path."""
    if corpus.kind != "path":
        return False
    name = absolute_place(file)
    places = places_of(replace_corpus(corpus, where=(escaped_glob(name),), listed=None))
    return any(
        holds(replace_corpus(corpus, where=(pattern,)), places) and not is_skipped(name, pattern)
        for pattern in map(parquet_pattern, corpus.where)
    )


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
    """The paths of a folder: for each folder above it, the path with links resolved up to there. So
    a link that lies in an account's folder belongs to the account."""
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
    """Whether a path, or a folder above it, matches the pattern. Both are split at "/"."""
    for depth, part in enumerate(pattern):
        if part == "**":
            starts = range(depth, len(path) + 1)
            return any(_is_or_holds(pattern[depth + 1 :], path[start:]) for start in starts)
        if depth == len(path) or not (part == path[depth] or fnmatchcase(path[depth], part)):
            return False
    return True
