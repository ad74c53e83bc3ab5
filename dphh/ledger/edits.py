"""What in a ledger's file dphh did not write: somebody edited it.

The file says most things twice, and they are compared: a run's row with its digest and its release,
an account, a share and a token with the last change of each. Who edits both passes.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from dphh.columns import (
    DIGEST_FIELD,
    as_release_table,
    digest_of,
    release_file,
    stored_table,
)
from dphh.errors import DphhError
from dphh.ledger.budget import Booking, Budget, events_booked
from dphh.ledger.entries import Request, canonical_json
from dphh.ledger.paying import is_surely_in
from dphh.ledger.schema import empty_ledger
from dphh.ledger.tables import RELEASE_STEP, STATE, accounts_in, changes_in
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import corpus_from_json

#: What reading a row raises that has something else in place of JSON, numbers and days.
_NOT_WHAT_DPHH_WROTE = (
    *(ArithmeticError, AttributeError, DphhError, LookupError),
    *(OSError, TypeError, ValueError, pa.ArrowException),
)

#: Each part of an account is compared with the last change of it: no change of another part, and
#: none of another account, covers an edit.
_OF_LAST_CHANGE = " OR ".join(
    f"""json_extract({STATE}, '$[{place}]') IS NOT (
        SELECT json_extract(state, '$[{place}]') FROM history
        WHERE account = name AND what IN ('account', '{what}') ORDER BY id DESC LIMIT 1
    )"""
    for place, what in enumerate(("cap", "corpus", "groups"))
)

#: What is said of each row that a query finds.
_ODD_ROWS = {
    "the account {!r}: its cap, data or groups are not those that its last change has recorded": (
        f"SELECT name FROM accounts WHERE {_OF_LAST_CHANGE}"
    ),
    "the analyst {!r} has a token that nobody gave": """
        SELECT analyst FROM tokens WHERE sha256 IS NOT (
            SELECT state FROM history WHERE what = 'token' AND history.analyst = tokens.analyst
            ORDER BY id DESC LIMIT 1
        )
    """,
    "the ledger has something else beside the release of the run {!r}, or in place of it": f"""
        SELECT run_id FROM runs LEFT JOIN drawn ON run = sequence
        GROUP BY sequence HAVING (state = 'settled') IS NOT
            coalesce(group_concat(step) = '{RELEASE_STEP}', FALSE)
            OR (state = 'settled' AND (manifest IS NULL OR coalesce(key, setting) IS NOT NULL))
    """,
    "the ledger has {} keys of its digests of data, where it made one": (
        "SELECT keys FROM (SELECT count(*) AS keys FROM data_key) WHERE keys <> 1"
    ),
    "the ledger counts its runs otherwise than dphh": """
        SELECT name, seq FROM sqlite_sequence
        EXCEPT SELECT 'runs', max(sequence) FROM runs HAVING count(*) = max(sequence)
    """,
}

_SHARES = """
    SELECT analyst, shares.epsilon, shares.delta, (
        SELECT now FROM history
        WHERE what = 'share' AND history.account = name AND history.analyst = shares.analyst
        ORDER BY history.id DESC LIMIT 1
    ) FROM shares LEFT JOIN accounts ON shares.account = accounts.id
"""

#: What the ledger says of a run, and of a settled one what its release says.
_RUNS = f"""SELECT runs.*, drawn.data AS release FROM runs
    LEFT JOIN drawn ON run = sequence AND step = '{RELEASE_STEP}' ORDER BY sequence"""

#: The data of an account, and until after which run they were those.
_DATA_OF_ACCOUNTS = """
    SELECT account, json_extract(state, '$[1]'),
        lead(after, 1, 9e99) OVER (PARTITION BY account ORDER BY id)
    FROM history WHERE what IN ('account', 'corpus')
"""


def edit_in(con: sqlite3.Connection) -> str | None:
    """A sentence on something in the file that dphh did not write; None if nothing is found."""
    for found in _edits(con):
        path = con.execute("PRAGMA database_list").fetchone()["file"]
        return (
            f"{found}. Somebody edited the ledger's file, {path}, and nothing that it says is "
            "sure. To go on, its owner takes the last copy of which `dphh ledger show --ledger "
            f"COPY` does not say this, stops all runs, and puts it back: `rm -f {path}-journal && "
            f"cp COPY {path}`. docs/ledger.md (A copy) says what a copy forgets"
        )
    return None


def _edits(con: sqlite3.Connection) -> Iterator[str]:
    """What was found. Kinds of values come first: what is after them reads values."""
    with closing(empty_ledger()) as made:
        if _schema_of(con) != _schema_of(made):
            yield "the ledger has a table, trigger, view or index, which dphh did not make"
    for table, column in _of_another_kind(con):
        yield f"the table {table} has a value in {column} of another kind than dphh writes"
    for row in con.execute(_RUNS):
        if not _reads(_agrees_with_itself, row):
            yield f"the ledger's row of the run {row['run_id']!r} is not what its release.json says"
        elif None not in (row["manifest"], row["release"]) and not _reads(_has_its_release, row):
            yield (
                f"the release that the ledger has of the run {row['run_id']!r} is not as dphh "
                "stored it, whose hash its release.json has"
            )
    for said, query in _ODD_ROWS.items():
        yield from (said.format(name) for name, *_ in con.execute(query))
    unpaid: list[tuple[str, str]] = []
    if not (
        _reads(accounts_in, con)
        and _reads(lambda: [str(each) for each in changes_in(con)])
        and _reads(lambda: unpaid.extend(_unpaid(con)))
    ):
        yield "an account or a change has something that dphh cannot read"
    for run_id, account in unpaid:
        yield f"the run {run_id!r} read data of the account {account!r}, which was not charged"
    for analyst, epsilon, delta, given in con.execute(_SHARES):
        if given != str(Budget(epsilon, delta)):
            yield f"the analyst {analyst!r} has a share that nobody gave"
    for pragma, sound in (("foreign_key_check", []), ("integrity_check(1)", [("ok",)])):
        if [*map(tuple, con.execute(f"PRAGMA {pragma}"))] != sound:
            yield f"the ledger's rows do not belong together ({pragma})"


def _schema_of(con: sqlite3.Connection) -> set[tuple[str, ...]]:
    """All that the file has of tables and the like, without comments, which may change."""
    found = con.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(*named, " ".join(re.sub("--[^\n]*", "", made).split())) for *named, made in found}


def _of_another_kind(con: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The columns, each with its table, that have a value of another kind than is declared: SQLite
    takes any."""
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
    """Whether what dphh reads, as JSON, numbers and days, is there and is what it should be."""
    try:
        return read(*row) is not False
    except _NOT_WHAT_DPHH_WROTE:
        return False


def _agrees_with_itself(row: sqlite3.Row) -> bool:
    corpus, asked = corpus_from_json(json.loads(row["source"])), json.loads(row["parameters"])
    events = events_from_json(json.loads(row["events"]))
    booking = Booking(events, row["epsilon"], row["delta"])
    booked_on, ended = (datetime.fromtimestamp(row[each], UTC) for each in ("recorded", "changed"))
    if not booking.events or row["digest"] != Request(corpus, row["verb"], asked, booking).digest:
        return False
    if row["manifest"] is None:  # it has not settled
        return True
    said = json.loads(row["manifest"])
    privacy, day = said["privacy"], datetime.fromisoformat(said["day"]).replace(tzinfo=UTC)
    claim = Budget(float(privacy.get("user_epsilon", privacy["epsilon"])), float(privacy["delta"]))
    events = events_booked(events_from_json(said["events"]), claim)
    # A run that was killed may go on long after it was booked. Clocks may differ.
    longest = timedelta(31 if row["attempts"] == 1 else 366)
    return (
        (said["run_id"], said["verb"]) == (row["run_id"], row["verb"])
        and canonical_json(said["parameters"]) == row["parameters"]
        and booking == Booking(events, claim.epsilon, claim.delta)
        and bool(said.get("is_test")) == (row["data"] is None)
        and timedelta(-1) <= day - booked_on <= longest
        and abs(ended - day) <= timedelta(1)
    )


def _has_its_release(row: sqlite3.Row) -> bool:
    """Whether the stored table is the one whose hash the manifest has, and its file as dphh writes
    it, where the same versions can tell: else it may carry more, which no reader shows."""
    said, stored = json.loads(row["manifest"]), row["release"]
    table = as_release_table(stored_table(stored).replace_schema_metadata(None))
    made_with = said["versions"]
    is_of_this = (made_with["dphh"], made_with["pyarrow"]) == (version("dphh"), pa.__version__)
    written = release_file(table, row["run_id"]) if is_of_this else stored
    return (digest_of(table), written) == (said[DIGEST_FIELD], stored)


def _unpaid(con: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The runs on an account's data for which it was not charged, each with the account."""
    sources = [of for (of,) in con.execute("SELECT DISTINCT source FROM runs")]
    query = """SELECT run_id FROM runs WHERE source = ? AND sequence <= ? AND sequence NOT IN (
        SELECT run FROM charges JOIN accounts ON account = id WHERE name = ?)"""
    for account, source, until in con.execute(_DATA_OF_ACCOUNTS):
        if source is None:  # it was removed
            continue
        owned = corpus_from_json(json.loads(source))
        for of in sources:
            if is_surely_in(owned, corpus_from_json(json.loads(of))):
                yield from ((run, account) for (run,) in con.execute(query, (of, until, account)))
