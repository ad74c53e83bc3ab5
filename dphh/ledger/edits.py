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
from typing import Any

from dphh.errors import DphhError
from dphh.ledger.budget import Booking, Budget, events_booked
from dphh.ledger.entries import Request, canonical_json
from dphh.ledger.schema import empty_ledger
from dphh.ledger.tables import RELEASE_STEP, STATE, accounts_in, changes_in
from dphh.privacy.events import events_from_json
from dphh.reader.corpus import corpus_from_json

#: What reading a row raises that has something else in place of JSON, numbers and days.
_NOT_WHAT_DPHH_WROTE = (
    *(ArithmeticError, AttributeError, DphhError, LookupError),
    *(OSError, TypeError, ValueError),
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
_RUN_TWICE = """SELECT run_id, verb, parameters, source, events, epsilon, delta, digest,
    data IS NULL, recorded, changed, json_extract(manifest, '$.run_id', '$.verb', '$.parameters',
    '$.events', '$.privacy', '$.is_test', '$.day') FROM runs ORDER BY sequence"""


def edit_in(con: sqlite3.Connection) -> str | None:
    """A sentence on something in the file that dphh did not write; None if nothing is found."""
    for found in _edits(con):
        return (
            f"{found}. Somebody edited the ledger's file, and nothing that it says is sure; "
            "docs/ledger.md says how to put a copy back"
        )
    return None


def _edits(con: sqlite3.Connection) -> Iterator[str]:
    """What was found. Kinds of values come first: what is after them reads values."""
    with closing(empty_ledger()) as made:
        if _schema_of(con) != _schema_of(made):
            yield "the ledger has a table, trigger, view or index, which dphh did not make"
    for table, column in _of_another_kind(con):
        yield f"the table {table} has a value in {column} of another kind than dphh writes"
    for run_id, *row in con.execute(_RUN_TWICE):
        if not _reads(_agrees_with_itself, run_id, *row):
            yield f"the ledger's row of the run {run_id!r} is not what its release.json says"
    for said, query in _ODD_ROWS.items():
        yield from (said.format(name) for name, *_ in con.execute(query))
    if not _reads(accounts_in, con) or not _reads(lambda: [str(each) for each in changes_in(con)]):
        yield "an account or a change has something that dphh cannot read"
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


def _agrees_with_itself(
    run_id: str, verb: str, parameters: str, source: str, events: str, epsilon: float, delta: float,
    digest: str, of_no_data: bool, recorded: float, changed: float, said: str | None,
) -> bool:  # fmt: skip
    corpus, asked = corpus_from_json(json.loads(source)), json.loads(parameters)
    booking = Booking(events_from_json(json.loads(events)), epsilon, delta)
    booked_on, _ = (datetime.fromtimestamp(each, UTC) for each in (recorded, changed))
    if not booking.events or digest != Request(corpus, verb, asked, booking).digest:
        return False
    if said is None:  # it has not settled
        return True
    *named, asked_of, events_of, privacy, is_test, day = json.loads(said)
    claim = Budget(float(privacy.get("user_epsilon", privacy["epsilon"])), float(privacy["delta"]))
    booked = Booking(events_booked(events_from_json(events_of), claim), claim.epsilon, claim.delta)
    took = datetime.fromisoformat(day).replace(tzinfo=UTC) - booked_on
    return (
        named == [run_id, verb]
        and canonical_json(asked_of) == parameters
        and booked == booking
        and bool(is_test) == of_no_data
        # A run that was killed may go on long after it was booked. Clocks may differ.
        and timedelta(-1) <= took <= timedelta(366)
    )
