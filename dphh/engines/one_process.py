"""A host in this process: what DuckDB and Polars share."""

from __future__ import annotations

from typing import Any

from dphh.engines.host import Host, Lookup
from dphh.reader.corpus import Corpus
from dphh.reader.rows import Limits, Rows
from dphh.udfs.functions import functions
from dphh.udfs.kernel.words import values_by_key
from dphh.udfs.noise.randomness import Randomness
from dphh.udfs.text.vocabulary import Vocabulary


class OneProcessHost(Rows, Host):
    """The rows, as DuckDB reads them, one vocabulary for all words of a run, and
    functions in this process, which look up a brought value in an object."""

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness = randomness
        self.functions = functions(randomness)
        self.words = Vocabulary()
        #: For each brought value, by its name: the table whose users have it, and the value.
        self._brought: dict[str, tuple[str, Any]] = {}
        super().__init__(corpus, limits)

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        found = self.take(step, **parameters)
        self._brought[name] = to, values_by_key(found, None if to == "positions" else self.words)

    def value_of_lookup(self, parameter: Lookup) -> Any:
        """What functions get for a parameter: its value or, of a value that knows words by their
        spelling, an array by word id."""
        value = parameter.value
        return value.by_id(self.words) if hasattr(value, "by_id") else value

    def forget_brought_values(self, table: str) -> None:
        """Forget the values that were brought to a table that is dropped or replaced."""
        self._brought = {
            name: (to, value) for name, (to, value) in self._brought.items() if to != table
        }
