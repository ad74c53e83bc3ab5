"""Stores each drawn level in the ledger before it is used, so that no level is drawn twice.

A session's draws return released rows. The journal wraps the session: before each draw it
looks in the ledger for the stored rows of that step. If there are none, it draws, stores the rows
in one transaction, and reads them back. If another process with the same run id stored its rows
first, both processes use those. The levels know nothing of this: from the same rows they
continue in the same way, and the session recomputes everything else from the corpus.
"""

from __future__ import annotations

import io
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.files.stored_table import stored_table
from dphh.ledger import Booked, Ledger
from dphh.session.protocol import Session


def journaled(session: Session, book: Ledger, run: Booked) -> Session:
    """The same session, but each of its draws is stored in the ledger before it is returned."""
    return cast(Session, _Journaled(session, book, run))


class _Journaled:
    """A session whose drawn levels are stored in the ledger before they are returned."""

    def __init__(self, session: Session, book: Ledger, run: Booked) -> None:
        self._session = session
        self._book = book
        self._run = run
        self._drawn: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def draw(self, asked: object, step: str) -> Any:
        if step in self._drawn:  # the second draw would get the rows of the first
            raise AssertionError(f"two draws of one run are called {step!r}")
        self._drawn.add(step)
        stored = self._book.level(self._run, step)
        if stored is None:
            drawn = as_stored(self._session.draw(asked, step))
            stored = self._book.keep_level(self._run, step, drawn)
        return stored_table(stored)


def as_stored(released: Any) -> bytes:
    """The rows as Parquet, sorted by their values. The order in which an engine found them could
    reveal how the table was made, for instance which of its grams are spurious."""
    plain = pa.table(
        {
            name: column.cast(pa.string()) if _is_text(column.type) else column
            for name, column in zip(released.schema.names, released.columns, strict=True)
        }
    )
    ordered = plain.sort_by([(name, "ascending") for name in plain.schema.names])
    buffer = io.BytesIO()
    pq.write_table(ordered, buffer, compression="zstd")
    return buffer.getvalue()


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())
