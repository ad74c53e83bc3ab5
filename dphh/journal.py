"""Stores each drawn level in the ledger before it is used, so that no level is drawn twice.

Before a draw the ledger is asked for the stored rows of that step. If there are none, the level is
drawn, and its rows are stored in one transaction and read back. If another process with the same
run id stored its rows first, both processes use those. From the same rows both continue in the
same way: all else that a level needs, a host finds again in the corpus.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.columns import TEXT_TYPES, as_parquet, stored_table
from dphh.engines.host import Draw, DrawOnce
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
