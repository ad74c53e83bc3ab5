"""Finds edits: what somebody other than dphh wrote into a ledger's file.

The file has most facts twice, and this file compares them: the rows of runs and changes with their
seals, a run with its release, and accounts, shares, tokens and charges with the state that all runs
and changes in their order lead to. An edit of both places is not found.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from dphh.columns import DIGEST_FIELD, as_release_table, digest_of, release_file, stored_table
from dphh.errors import DphhError
from dphh.ledger.budget import Booking, Budget, events_booked
from dphh.ledger.changes import STATES, replayed
from dphh.ledger.entries import canonical_json
from dphh.ledger.schema import empty_ledger
from dphh.ledger.tables import RELEASED, accounts_in, seal_of
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import corpus_from_json

#: The errors that reading raises where JSON, a number or a day was replaced by something else.
_NOT_WHAT_DPHH_WROTE = (
    *(ArithmeticError, AttributeError, DphhError, LookupError),
    *(OSError, TypeError, ValueError, pa.ArrowException),
)

#: A sentence for each row that a query finds.
_ODD_ROWS = {
    "the ledger has something else beside the release of the run {!r}, or in place of it": f"""
        SELECT run_id FROM runs LEFT JOIN drawn ON run = sequence
        GROUP BY sequence HAVING (state = 'settled') IS NOT
            coalesce(group_concat(name) = '{RELEASED}', FALSE)
    """,
    "the ledger has {} keys of its digests of data, where it made one": (
        "SELECT keys FROM (SELECT count(*) AS keys FROM data_key) WHERE keys <> 1"
    ),
    "the ledger counts its runs otherwise than dphh": """
        SELECT name, seq FROM sqlite_sequence
        EXCEPT SELECT 'runs', max(sequence) FROM runs HAVING count(*) = max(sequence)
        UNION ALL SELECT run_id, 0 FROM runs WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence)
    """,
    "a run is missing that was there before a change": """
        SELECT max(after) FROM history
        HAVING max(after) > (SELECT coalesce(max(sequence), 0) FROM runs)
    """,
    "a change that was recorded is missing": (
        "SELECT max(id) FROM history HAVING count(*) < max(id)"
    ),
}

#: Each run with its release, if it has settled.
_RUNS = f"""SELECT runs.*, drawn.data AS release FROM runs
    LEFT JOIN drawn ON run = sequence AND name = '{RELEASED}' ORDER BY sequence"""


def edit_in(con: sqlite3.Connection) -> str | None:
    """A sentence on something in the file that dphh did not write; None if nothing is found."""
    for edit in _edits(con):
        path = con.execute("PRAGMA database_list").fetchone()["file"]
        return (
            f"{edit}. Somebody edited the ledger's file, {path}, and nothing that it says is "
            "sure. To go on, its owner takes the last copy of which `dphh ledger show --ledger "
            f"COPY` does not say this, stops all runs, and puts it back: `rm -f {path}-journal && "
            f"cp COPY {path}`. docs/ledger.md (A copy) says what a copy forgets"
        )
    return None


def _edits(con: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each edit. Kinds of values are checked first: later checks read the values."""
    with closing(empty_ledger()) as empty:
        if _schema_of(con) != _schema_of(empty):
            yield "the ledger has a table, trigger, view or index, which dphh did not make"
    for table, column in _of_another_kind(con):
        yield f"the table {table} has a value in {column} of another kind than dphh writes"
    for row in con.execute(_RUNS):
        if not _reads(_is_as_written, row):
            yield f"the ledger's row of the run {row['run_id']!r} is not as dphh wrote it"
        elif None not in (row["manifest"], row["release"]) and not _reads(_has_its_release, row):
            yield (
                f"the release that the ledger has of the run {row['run_id']!r} is not as dphh "
                "stored it, whose hash its release.json has"
            )
    for sentence, query in _ODD_ROWS.items():
        yield from (sentence.format(name) for name, *_ in con.execute(query))
    edits_of_owners: list[str] = []
    if not _reads(lambda: edits_of_owners.extend(_edits_of_owners(con))):
        edits_of_owners.append("an account or a change has something that dphh cannot read")
    yield from edits_of_owners
    for pragma, sound in (("foreign_key_check", []), ("integrity_check(1)", [("ok",)])):
        if [*map(tuple, con.execute(f"PRAGMA {pragma}"))] != sound:
            yield f"the ledger's rows do not belong together ({pragma})"


def _schema_of(con: sqlite3.Connection) -> set[tuple[str, ...]]:
    """The tables, indexes, triggers and views of the file, without comments, which may change."""
    rows = con.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(*names, " ".join(re.sub("--[^\n]*", "", text).split())) for *names, text in rows}


def _of_another_kind(con: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The columns, each with its table, that have a value of another kind than declared, which
    SQLite allows."""
    declared = con.execute("""
        SELECT of.name, part.name, lower(part.type) || iif(part."notnull", '', ' null')
        FROM sqlite_master AS of, pragma_table_info(of.name) AS part
        WHERE of.type = 'table' AND part.type <> ''
    """)
    for table, column, kinds in declared.fetchall():
        query = f"""SELECT 1 FROM {table} WHERE instr(?, typeof("{column}")) = 0"""
        if con.execute(query, (kinds,)).fetchone():
            yield table, column


def _reads(read: Callable[..., Any], *row: Any) -> bool:
    """Whether `read` can read what dphh wrote and does not return False."""
    try:
        return read(*row) is not False
    except _NOT_WHAT_DPHH_WROTE:
        return False


def _is_as_written(row: sqlite3.Row) -> bool:
    """Whether the row of a run has its seal and, if the run has settled, agrees with its
    manifest."""
    wrote = {name: row[name] for name in row.keys() if name != "release"}  # noqa: SIM118
    corpus_from_json(json.loads(row["source"]))  # for what it raises
    booking = Booking(events_from_json(json.loads(row["events"])), row["epsilon"], row["delta"])
    if row["seal"] != seal_of(wrote) or not booking.events:
        return False
    if row["manifest"] is None:
        return True
    manifest = json.loads(row["manifest"])
    privacy = manifest["privacy"]
    claim = Budget(float(privacy.get("user_epsilon", privacy["epsilon"])), float(privacy["delta"]))
    events = events_booked(events_from_json(manifest["events"]), claim)
    return (
        (manifest["run_id"], manifest["verb"]) == (row["run_id"], row["verb"])
        and canonical_json(manifest["parameters"]) == row["parameters"]
        and booking == Booking(events, claim.epsilon, claim.delta)
        and bool(manifest.get("is_test")) == (row["data"] is None)
    )


def _has_its_release(row: sqlite3.Row) -> bool:
    """Whether the stored table has the hash that the manifest names. With the same versions also
    whether its file is as dphh writes it: else it may contain more, which no reader shows."""
    manifest, stored = json.loads(row["manifest"]), row["release"]
    table = as_release_table(stored_table(stored).replace_schema_metadata(None))
    made_with = manifest["versions"]
    is_same = (made_with["dphh"], made_with["pyarrow"]) == (version("dphh"), pa.__version__)
    expected = release_file(table, row["run_id"]) if is_same else stored
    return (digest_of(table), expected) == (manifest[DIGEST_FIELD], stored)


def _edits_of_owners(con: sqlite3.Connection) -> Iterator[str]:
    """Edits of what owners decide: changes that are not as dphh recorded them; accounts, shares,
    tokens and charges that are not as the recorded changes have left them."""
    for row in con.execute("SELECT * FROM history"):
        if row["seal"] != seal_of(dict(row)):
            yield f"the change of number {row['id']} is not as dphh recorded it"
    changes, left = replayed(con)
    present = {(account, analyst): state for account, analyst, state in con.execute(STATES)}
    for (account, analyst), _ in present.items() ^ left.items():
        if analyst is None:
            yield (
                f"the account {account!r}: its cap, data or groups are not those that its last "
                "change has recorded"
            )
        else:
            what = "token" if account is None else "share"
            yield f"the {what} of the analyst {analyst!r} is not the one that was given last"
    accounts_in(con), [*map(str, changes)]  # for what they raise
    names, payers = {}, {(run, change.account) for change in changes for run in change.earlier}
    for run, names[run], booked in con.execute("SELECT sequence, run_id, payers FROM runs"):
        payers |= {(run, name) for name in json.loads(booked)}
    charged = con.execute("SELECT run, name FROM charges JOIN accounts ON account = id")
    for run, account in payers ^ {*map(tuple, charged)}:
        yield (
            f"the charge of the run {names.get(run, run)!r} to the account {account!r} is missing, "
            "or dphh did not make it"
        )
