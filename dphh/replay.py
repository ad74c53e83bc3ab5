"""Replay: the same request on the same data returns the earlier release and spends nothing.

A request is its verb, options, corpus and booking; of a table in memory, its account too. Files are
the same if their names, sizes and modification times are; the ledger keeps a few bits of a hash of
these with each run. A table in memory is the same if it is the same object in the same process; no
other comparison is made.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any

from dphh.errors import Notice, UsageError
from dphh.ledger import Ledger, Request
from dphh.wording.warned import warn

#: For each request on a table in memory that this process ran: the table and the run's id.
_runs_on_tables: dict[tuple[str, str, int], tuple[weakref.ref[Any], str]] = {}


class Note(str):
    """A line of progress about the budget; it is shown even if the caller passed no `progress`."""

    def __new__(cls, said: str) -> Note:
        return super().__new__(cls, f"note: {said}")


def earlier_run(
    request: Request, ledger: Ledger, hash_of_files: str
) -> tuple[str | None, Note | None]:
    """The id of an earlier run of the same request on the same data, which this request continues
    or gets the release of; None if there is none. If the data cannot be compared, the request is
    refused where an account pays; elsewhere it is a new run, with a note that says so.

    `hash_of_files`: '' if the data are not local files.
    """
    remembered = _runs_on_tables.get(_key_of_request(request, ledger))
    if remembered is not None and remembered[0]() is request.corpus.source:
        return remembered[1], None
    earlier = ledger.last_like(request)
    if earlier is None:
        return None, None
    if hash_of_files:
        return (earlier.run_id if hash_of_files == earlier.files else None), None
    said = (
        f"run {earlier.run_id} of {earlier.when:%Y-%m-%d} was the same request, and whether its "
        "data were the same cannot be seen"
    )
    if ledger.accounts_of(request.corpus):
        raise UsageError(
            f"run: {said}. Nothing was spent. Pass run_id={earlier.run_id!r} for that release, "
            "which is free, or again=True to spend again"
        )
    return None, Note(f"{said}; this run spends anew, and run_id={earlier.run_id!r} would not")


def remember(request: Request, ledger: Ledger, run_id: str) -> None:
    """Remember the run id of a request on a table in memory, while this process has the table."""
    if (table := request.corpus.source) is not None:
        with suppress(TypeError):  # tables of some libraries take no weak reference
            _runs_on_tables[_key_of_request(request, ledger)] = (weakref.ref(table), run_id)


def _key_of_request(request: Request, ledger: Ledger) -> tuple[str, str, int]:
    return str(ledger.path), f"{request.digest} {ledger.analyst}", id(request.corpus.source)


def show_budget_notes(said: str) -> None:
    """The default `progress`: shows only lines about the budget."""
    if not isinstance(said, Note):
        return
    shell = sys.modules.get("IPython")
    if shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None:
        print(said)  # a notebook would show a warning in red, with the path of a temporary file
    else:
        # Where warnings are errors, this one must not end a run that has been paid for.
        with suppress(Notice):
            warn(said.removeprefix("note: "), Notice)
