"""Replay: the same request on the same data returns the earlier release and spends nothing.

A request is its verb, options, corpus, account and price. Files are the same if their names, sizes
and modification times are; the ledger keeps a few bits of a hash of these with each run. A table in
memory is the same if it is the same object in the same process; no other comparison is made.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dphh.errors import Notice, UsageError
from dphh.ledger import Ledger, Request
from dphh.wording.warned import warn

#: A function that shows a line of progress.
Say = Callable[[str], None]

#: For each request on a table in memory that this process ran, by `LedgerRequest._key`: the table
#: and the run's id.
_runs_on_tables: dict[tuple[str, str, int], tuple[weakref.ref[Any], str]] = {}


class Note(str):
    """A line of progress about the budget; it is shown even if the caller passed no `progress`."""

    text: str

    def __new__(cls, said: str) -> Note:
        note = super().__new__(cls, f"note: {said}")
        note.text = said
        return note


@dataclass(frozen=True)
class LedgerRequest:
    """A request to a ledger, and the hash by which the ledger recognises the request's files."""

    request: Request
    ledger: Ledger
    #: The hash; '' if the data are not local files.
    files: str

    def earlier_run(self, note_if_run: Say) -> str | None:
        """The id of the run whose release this request gets, or which it continues; None if this is
        a new run. Refuses a request that may be a repeat, if a cap would pay for it twice.
        `note_if_run` is called with a note that is true only if a run begins."""
        found = _runs_on_tables.get(self._key)
        if found is not None and found[0]() is self.request.corpus.source:
            return found[1]
        if (earlier := self.ledger.last_like(self.request)) is None:
            return None
        if self.files and self.files == earlier.files:
            return earlier.run_id
        if self.files:
            return None  # the files have changed since
        said = (
            f"run {earlier.run_id} of {earlier.when:%Y-%m-%d} was the same request, and whether "
            "its data were the same cannot be seen"
        )
        if self.request.corpus.account is not None:
            raise UsageError(
                f"run: {said}. Nothing was spent. Pass run_id={earlier.run_id!r} for that release, "
                "which is free, or again=True to spend again"
            )
        note_if_run(Note(f"{said}; this run spends anew, and run_id={earlier.run_id!r} would not"))
        return None

    def remember(self, run_id: str) -> None:
        """Remember a run on a table in memory, for as long as this process has the table."""
        if self.request.corpus.source is not None:
            with suppress(TypeError):  # an object that takes no weak reference
                _runs_on_tables[self._key] = (weakref.ref(self.request.corpus.source), run_id)

    @property
    def _key(self) -> tuple[str, str, int]:
        asked = f"{self.request.digest} {self.ledger.analyst}"
        return str(self.ledger.path), asked, id(self.request.corpus.source)


def show_budget_notes(said: str) -> None:
    """The default `progress`: shows only lines about the budget."""
    if not isinstance(said, Note):
        return
    if _in_notebook_kernel():  # a notebook would show a warning in red, with a path of its own
        print(said)
    else:
        # Where warnings are errors, this one must not end a run that has been paid for.
        with suppress(Notice):
            warn(said.text, Notice)


def _in_notebook_kernel() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
