"""What was drawn before is not drawn again: neither a level of a run, nor a whole request.

Each drawn level is stored in the ledger before it is used, so that no level is drawn twice.

Before a draw the ledger is asked for the stored rows of that step. If there are none, the level is
drawn, and its rows are stored in one transaction and read back. If another process with the same
run id stored its rows first, both processes use those. From the same rows both continue in the
same way: all else that a level needs, a host finds again in the corpus.

Replay: the same request on the same data returns the earlier release and spends nothing.
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

import pyarrow as pa

from dphh.columns import TEXT_TYPES, as_parquet, stored_table
from dphh.engines.host import Draw, DrawOnce
from dphh.errors import Notice, UsageError, warn
from dphh.ledger import BookedRun, Ledger, Request


def once_for_run(book: Ledger, run: BookedRun) -> DrawOnce:
    """The function that draws each step of this run once, and stores what the step releases."""
    drawn: set[str] = set()

    def once(step: str, draw: Draw) -> Any:
        if step in drawn:  # the second draw would get the rows that the first one stored
            raise AssertionError(f"two draws of one run are called {step!r}")
        drawn.add(step)
        stored = book.level(run, step)
        if stored is None:
            stored = book.keep_level(run, step, rows_as_parquet(draw()))
        return stored_table(stored)

    return once


def rows_as_parquet(released: Any) -> bytes:
    """The rows as Parquet, sorted by their values. The order in which an engine found them could
    reveal how the table was made, for instance which of its grams are spurious."""
    plain = pa.table(
        {
            name: column.cast(pa.string()) if column.type in TEXT_TYPES else column
            for name, column in zip(released.schema.names, released.columns, strict=True)
        }
    )
    return as_parquet(plain.sort_by([(name, "ascending") for name in plain.schema.names]))


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
