"""What a run drew before is not drawn again: each drawn level is stored in the ledger before it is
used.

Before a draw the ledger is asked for the stored rows of that step. If there are none, the level is
drawn, and its rows are stored in one transaction and read back. If another process with the same
run id stored its rows first, both processes use those. From the same rows both continue in the
same way: all else that a level needs, a host finds again in the corpus.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pyarrow as pa

from dphh.columns import TEXT_TYPES, as_parquet, stored_table
from dphh.engines.host import Draw, DrawOnce
from dphh.errors import Notice, warn
from dphh.ledger import BookedRun, Ledger


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


class Note(str):
    """A line of progress about the budget; it is shown even if the caller passed no `progress`."""

    def __new__(cls, said: str) -> Note:
        return super().__new__(cls, f"note: {said}")


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
