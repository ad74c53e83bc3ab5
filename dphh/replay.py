"""Replay: the same request on the same data returns the earlier release and spends nothing.

A request is its verb, options, corpus, account and price. Files are the same if their names, sizes
and modification times are; the ledger keeps a few bits of a hash of these with each run. A lazy
frame, a view or a relation is the same if its query and the files that it reads are. A table in
memory is identified by a keyed hash of its rows; so is a table of a DuckDB connection, and a view
over one, if the caller asks for this, as `dphh.connect()` does. The key stays in this process, so
another process cannot compare the table and never returns a release made from other rows.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.errors import DphhError, Notice, UsageError
from dphh.ledger import Entry, Ledger, Request
from dphh.ledger.origins import data_check
from dphh.ledger.requests import request_of
from dphh.price import Price
from dphh.sources.finding import is_in_memory, rows_in_memory
from dphh.sources.quoted import identifier
from dphh.wording.warned import warn

Say = Callable[[str], None]

_HASH_KEY = os.urandom(32)
#: Runs that this process made of tables in memory: (request, rows) -> run id.
_runs_on_tables: dict[tuple[Any, ...], str] = {}


class Note(str):
    """A line of progress about the budget; it is shown even if the caller passed no `progress`."""

    said: str

    def __new__(cls, said: str) -> Note:
        note = super().__new__(cls, f"note: {said}")
        note.said = said
        return note


class Before(NamedTuple):
    """An earlier run and its request, with the account that was charged."""

    run_id: str
    request: Request


@dataclass(frozen=True)
class Replay:
    """A request, and the fingerprints by which its data are recognised."""

    price: Price
    corpus: Corpus
    book: Ledger
    request: Request
    #: The fingerprint in the ledger; '' where the data are not local files.
    files: str
    #: The fingerprint of a table in memory, known to this process only.
    rows: bytes | None = field(repr=False)

    @classmethod
    def of(
        cls, price: Price, corpus: Corpus, book: Ledger, *, reads_tables: bool = False
    ) -> Replay:
        """`reads_tables`: whether a table of a DuckDB connection is read to be recognised."""
        request = request_of(price, corpus)
        files = data_check(corpus, request.source, str(book.path))
        rows = _hash_of_rows(corpus)
        if reads_tables and not files and isinstance(corpus.source, duckdb.DuckDBPyRelation):
            rows = _hash_of_relation(corpus)
        return cls(price, corpus, book, request, files, rows)

    @property
    def data(self) -> str | bytes | None:
        """What this process recognises the data by; None if they cannot be compared."""
        return self.files or self.rows

    def before(self, say: Say, later: Say) -> Before | None:
        """The earlier run of this request on the same data; None if there is none. `later` takes
        notes that are true only if a run begins, to be shown when no refusal can follow."""
        if self.book.analyst is not None:
            return None  # the gateway names analysts' runs; one must not get another's release
        if (run_id := _runs_on_tables.get(self.key)) is not None:
            say(
                Note(
                    f"nothing is spent: run {run_id} asked the same of the same rows; "
                    f"{_ADVICE_TO_SPEND}"
                )
            )
            return Before(run_id, self.request)
        for account in self._accounts_charged():
            request = replace(self.request, account=account)
            if (earlier := self.book.asked_before(request, self.files)) is not None:
                break
        else:
            self._warn_that_repeat_would_spend(later)
            return None
        if not self.files:
            if self.rows is not None and earlier.run_id in _runs_on_tables.values():
                later(_note_of_other_rows(earlier))
            else:
                self._refuse_or_warn_not_compared(earlier, later)
            return None
        if earlier.state == "settled":
            same = "files" if self.corpus.kind == "path" else "query and files"
            say(
                Note(
                    f"nothing is spent: this is the release of run {earlier.run_id}, made on "
                    f"{earlier.when:%Y-%m-%d} by the same request of the same {same}; "
                    f"{_ADVICE_TO_SPEND}"
                )
            )
        return Before(earlier.run_id, request)

    def _accounts_charged(self) -> list[str | None]:
        """The accounts that may have been charged: the same files may be named or unnamed."""
        if not self.files:
            return [self.corpus.name]
        others = [None, *self.book.accounts_touched(self.request.source)]
        return [self.corpus.name, *(name for name in others if name != self.corpus.name)]

    def remember(self, run_id: str) -> None:
        if self.rows is not None:
            _runs_on_tables[self.key] = run_id

    @property
    def key(self) -> tuple[Any, ...]:
        """The request, with the rows of a table, as this process knows them."""
        corpus = self.corpus
        about = (corpus.name, corpus.where, corpus.user, corpus.content, corpus.by)
        return str(self.book.path), self.price, about, self.rows

    @property
    def _is_capped(self) -> bool:
        return self.corpus.name is not None or bool(self.book.accounts_touched(self.request.source))

    def _warn_that_repeat_would_spend(self, say: Say) -> None:
        """Tell the caller that repeating this request would spend."""
        if self.files or self.corpus.kind == "path" or self._is_capped:
            return  # with a cap, spending twice on the same request is refused
        who = "nobody can" if self.rows is None else "no later session can"
        say(
            Note(
                f"{who} tell whether these rows are the same another time, so the same request "
                "would spend again; run_id= with this release's run_id would not"
            )
        )

    def _refuse_or_warn_not_compared(self, earlier: Entry, say: Say) -> None:
        said = (
            f"run {earlier.run_id} of {earlier.when:%Y-%m-%d} asked the same of a "
            f"{', '.join(self.corpus.where)}, and whether this is the same data cannot be told"
        )
        if self._is_capped:
            raise UsageError(
                f"run: {said}. Nothing was spent. Pass run_id={earlier.run_id!r} for that release, "
                "which is free, or again=True to spend again"
            )
        say(Note(f"{said}; this run spends anew, and run_id={earlier.run_id!r} would not"))


def _note_of_other_rows(earlier: Entry) -> Note:
    return Note(
        f"run {earlier.run_id} of {earlier.when:%Y-%m-%d} asked the same of other rows; this run "
        f"spends anew, and run_id={earlier.run_id!r} would not"
    )


_ADVICE_TO_SPEND = "again=True (--again) spends again"


def notice(said: str) -> None:
    """The default `progress`: shows only lines about the budget."""
    if not isinstance(said, Note):
        return
    if _in_notebook_kernel():  # a notebook would show a warning in red, with a path of its own
        print(said)
    else:
        # Where warnings are errors, this one must not end a run that has been paid for.
        with suppress(Notice):
            warn(said.said, Notice)


def _in_notebook_kernel() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


def _hash_of_rows(corpus: Corpus) -> bytes | None:
    """A hash that identifies a table in memory, to this process only (`_HASH_KEY`)."""
    if not is_in_memory(corpus):
        return None
    sink = _HashingFile()
    try:
        rows = rows_in_memory(corpus).combine_chunks()
        with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), rows.schema) as stream:
            stream.write_table(rows)
    except (DphhError, pa.ArrowException):
        return None  # the run itself will report what is wrong with the table
    return sink.hash.digest()


def _hash_of_relation(corpus: Corpus) -> bytes | None:
    """A hash of a relation's rows in any order, which is known to this process only."""
    row = ", ".join(identifier(column) for column in dict.fromkeys(corpus.columns.values()))
    keyed = f"concat('{_HASH_KEY.hex()}', CAST(row({row}) AS VARCHAR))"
    sums = ", ".join(f"sum(md5_number_{half}({keyed}))" for half in ("lower", "upper"))
    try:
        found = corpus.source.aggregate(f"count(*), {sums}").fetchall()
    except duckdb.Error:
        return None  # the run itself will report what is wrong with the table
    return hashlib.blake2b(repr(found).encode(), key=_HASH_KEY).digest()


class _HashingFile:
    """A writable file that keeps only a hash of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(key=_HASH_KEY)

    def write(self, data: Any) -> int:
        self.hash.update(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Nothing is buffered."""
