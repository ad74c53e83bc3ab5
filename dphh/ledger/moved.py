"""Finds data that were moved from their account's location, and what was spent on them.

Moved files are recognised by their marks (`marks.py`).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dphh.errors import UsageError
from dphh.files.paths import files_of, is_remote, spellings
from dphh.ledger import records
from dphh.ledger.marks import Marks, keep_marks
from dphh.ledger.records import AccountRow
from dphh.ledger.sources import Places, Source, places


@dataclass(frozen=True)
class Earlier:
    """What earlier runs spent on a source's files, under any path and at any earlier location."""

    here: Places
    #: The marks of the source's present files, by real path.
    found: Mapping[str, bytes]
    #: Accounts at other locations from which files were moved here, each with one such file.
    moved: Mapping[int, str]
    #: For each earlier source, as JSON: whether it reads any of these files.
    _read_by_source: dict[str, bool] = field(default_factory=dict)

    def charge(self, con: sqlite3.Connection, account: int) -> None:
        """Charge the earlier runs to the account that has the files now, in the caller's
        transaction."""
        theirs = {
            run
            for run, charged in con.execute("SELECT run, account FROM charges")
            if charged in self.moved
        }
        for run in records.runs(con):
            if run["sequence"] in theirs or self._was_read_by(run["source"]):
                charge = (account, run["sequence"])
                con.execute("INSERT OR IGNORE INTO charges VALUES (?, ?, NULL)", charge)
        keep_marks(con, account, set(self.found.values()))
        records.settle_cap_rule(con, account)

    def _was_read_by(self, earlier: str) -> bool:
        if earlier not in self._read_by_source:
            source = Source.from_json(json.loads(earlier))
            self._read_by_source[earlier] = places(source).overlap(self.here)
        return self._read_by_source[earlier]


def earlier_runs_on(
    source: Source, rows: Sequence[AccountRow], runs: Iterable[str], known: Marks
) -> Earlier:
    """What the ledger knows of earlier runs on these files. Walks folders and opens files, so it is
    called before the ledger is locked."""
    here = places(source)
    found = known.of_files(here.paths)
    moved = {
        row.id: file
        for row in rows
        if (file := known.known_to(row.id, found)) and not places(row.source).overlap(here)
    }
    earlier = Earlier(here, found, moved)
    for each in set(runs):
        earlier._was_read_by(each)
    return earlier


def is_there(source: Source) -> bool:
    """Whether any file of a source exists. True for remote files and tables in memory, which are
    not checked."""
    named = source.where if source.kind == "path" else source.files
    if not named or any(is_remote(each) for place in named for each in spellings(place)):
        return True
    return any(os.path.exists(file) for place in named for file in files_of(place))  # noqa: PTH110


def moved_to(source: Source, where: str | Path | Sequence[str | Path], name: str) -> Source:
    """The same corpus at another path. Refuses a path without files."""
    if source.kind != "path":
        raise UsageError(
            f"The account {name!r} is of a table in memory, which has no path to move. Pass the "
            f"new table with account={name!r}. Nothing was changed."
        )
    named = [where] if isinstance(where, str | Path) else where
    there = replace(source, where=tuple(str(each) for each in named)).absolute()
    if not is_there(there):
        raise UsageError(f"Found no file at {', '.join(there.where)}. Give the path of the data.")
    return there


def refuse_unmoved_data(row: AccountRow, there: Source, earlier: Earlier) -> None:
    """Refuse to move an account to other data, which would leave its own data to an account with a
    fresh cap."""
    old = places(row.source)
    known = row.id in earlier.moved or old.overlap(earlier.here)
    left = old.paths - earlier.here.paths
    if left:
        raise UsageError(
            f"The account {row.label!r} still has files at {', '.join(row.source.where)} that are "
            f"not at {', '.join(there.where)}. To keep both places, name both: "
            "`dphh ledger move NAME PATH PATH`. With --yes (sure=True) the files at the old place "
            "no longer belong to the account. Nothing was changed."
        )
    if not known:
        raise UsageError(
            f"No file at {', '.join(there.where)} is known as a file of {row.label!r}: the files "
            "were rewritten, copied with another modification time or never read by a run, or "
            "they are other data. If they are the account's data, add --yes (sure=True). Nothing "
            "was changed."
        )
