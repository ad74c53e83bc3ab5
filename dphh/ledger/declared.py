"""Groups that a corpus's owner declares: values of a column that are public knowledge.

A request with `by=` one of these columns needs no list of groups. Analysts at the gateway may count
within declared groups only, so that a refusal does not disclose whether a column exists.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from dphh.errors import UsageError
from dphh.ledger import records
from dphh.ledger.history import note
from dphh.ledger.paying import account_by_name
from dphh.ledger.schema import has_column

#: The declared columns of an account, each with its declared values.
Groups = dict[str, tuple[str, ...]]


def declare(con: sqlite3.Connection, name: str, column: str, groups: Sequence[str]) -> None:
    """Replace the declared groups of this column; an empty list revokes them."""
    account = account_by_name(records.accounts(con), name)
    before = declared(con).get(name, {}).get(column)
    con.execute("DELETE FROM declared WHERE account = ? AND by = ?", (account.id, column))
    if groups:
        con.execute(
            "INSERT INTO declared VALUES (?, ?, ?)", (account.id, column, json.dumps(list(groups)))
        )
    elif before is None:
        raise UsageError(f"groups: none are declared of {column!r} in the account {name!r}")
    said = [f"{column}: {', '.join(each)}" if each else None for each in (before, groups)]
    note(con, records.now(con), "groups", name, *said)


def declared(con: sqlite3.Connection) -> dict[str, Groups]:
    """The declared groups of every account that has any, by the account's name."""
    if not has_column(con, "declared", "groups"):
        return {}
    found: dict[str, Groups] = {}
    query = "SELECT name, by, groups FROM declared JOIN accounts ON id = account ORDER BY id, by"
    for name, column, groups in con.execute(query):
        found.setdefault(name, {})[column] = tuple(json.loads(groups))
    return found
