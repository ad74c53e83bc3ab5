"""What DuckDB and Polars share as hosts: users, words and functions are in this process, so what is
brought to users is an object that functions look up."""

from __future__ import annotations

from typing import Any

from dphh.engines.host import Host
from dphh.udfs.kernel.words import by_key
from dphh.udfs.text.vocabulary import Vocabulary


class InOneProcess(Host):
    """A host with one vocabulary for all words of a run."""

    def __init__(self) -> None:
        self.words = Vocabulary()
        #: By name, the table to whose users the value was brought, and the value.
        self._brought: dict[str, tuple[str, Any]] = {}

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        found = self.take(step, **parameters)
        self._brought[name] = to, by_key(found, None if to == "positions" else self.words)

    def forget_brought(self, table: str) -> None:
        """Forget what was brought to a table that goes."""
        self._brought = {
            name: (to, value) for name, (to, value) in self._brought.items() if to != table
        }
