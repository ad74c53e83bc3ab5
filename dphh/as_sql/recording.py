"""A host that runs nothing: it records what levels ask of it, and answers with made-up releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.host import Draw, Host, Lookup
from dphh.mechanisms.ngrams.ladder.rungs import GRAM_NUMBER_BITS
from dphh.udfs.kernel.numbering import Numbering
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import LIST_SIZE_BIN_STARTS

#: A step's name with its parameters; or a text of SQL or comments, with no parameters.
RecordedStep = tuple[str, dict[str, Any]]


class RecordingHost(Host):
    """Answers each query with about `rows` made-up rows. Their noised weights are the query's
    threshold times `weight_in_thresholds`; those of n-grams are the threshold."""

    name, version = "none", ""

    def __init__(self, rows: int, weight_in_thresholds: int) -> None:
        self.rows, self.weight_in_thresholds = rows, weight_in_thresholds
        self.randomness = SystemRandomness()
        #: For the title of each draw, the steps from that draw to the next one.
        self.sections: dict[str, list[RecordedStep]] = {}
        self._title = "before the first level"
        self._put: dict[str, Any] = {}
        self._valid: Any = None
        self._words = 0

    def begin_section(self, title: str, draw: Draw) -> Any:
        """Begin the section of a draw, and draw."""
        self._title = title
        return draw()

    def _record(self, step_or_text: str, **parameters: Any) -> None:
        """Add a step to the section. A parameter that functions look something up in is left out,
        so that the text shows its name."""
        shown = {
            name: None if isinstance(value, Lookup) else value
            for name, value in parameters.items()
            if not isinstance(value, Lookup) or value.value is None
        }
        self.sections.setdefault(self._title, []).append((step_or_text, shown))

    def has_rows_without_user(self) -> bool:
        return False

    def open(self) -> None: ...  # `text.corpus_sql` shows how the corpus is read

    def close(self) -> None: ...

    def gather(self, table: str, numbering: Numbering) -> None:
        self._record("gather_texts")

    def run(self, step: str, **parameters: Any) -> None:
        self._record(step, **parameters)
        if "valid" in parameters:
            self._valid = parameters["valid"].value

    def put(self, table: str, rows: Any) -> None:
        self._put[table] = rows
        columns = ", ".join(rows.schema.names)
        self._record(f"-- {table} ({columns}): public, from the plan and earlier releases")

    def bring(self, name: str, step: str, to: str, **parameters: Any) -> None:
        self._record(step, **parameters)
        self._record(f"-- ${name}: the values of the query above, looked up by key at {to}")

    def rename_replacing(self, table: str, name: str) -> None:
        self._record(f"ALTER TABLE {table} RENAME TO {name};")

    def drop(self, *tables: str) -> None:
        self._record("\n".join(f"DROP TABLE IF EXISTS {table};" for table in tables))

    def take(self, step: str, **parameters: Any) -> Any:
        self._record(step, **parameters)
        made_up_columns = getattr(self, step, None)
        # A step without made-up columns gives no rows: with rows the run would be refused.
        return pa.table({} if made_up_columns is None else made_up_columns(**parameters))

    # The made-up columns that `take` returns: a method for each step, with the step's name.

    def released_words(self, threshold: int) -> dict[str, Any]:
        self._words += self.rows  # no word is released twice
        keys = [f"{number:09}" for number in range(self._words - self.rows, self._words)]
        return {"key": keys, "noisy": [threshold * self.weight_in_thresholds] * self.rows}

    def released_grams(self, threshold: int) -> dict[str, Any]:
        keys = self._valid.keys(np.arange(len(self._valid)))
        # Only grams that begin or end with gram 0, so that some valid grams are not released.
        keys = keys[(keys >> GRAM_NUMBER_BITS == 0) | (keys % 2**GRAM_NUMBER_BITS == 0)]
        return {"key": keys, "noisy": np.full(len(keys), threshold)}

    def forecast_cells(self, **_: Any) -> dict[str, Any]:
        group, valid = self._put["classes"].columns
        # All made-up grams are in one bin: the lowest if their weight is the threshold, the middle
        # one if it is a multiple.
        bin_number = len(BIN_STARTS_IN_SIGMAS) // 2 if self.weight_in_thresholds > 1 else 0
        cell = group.to_numpy() * len(BIN_STARTS_IN_SIGMAS) + bin_number
        return {"cell": cell, "grams": valid, "nonpositive": valid}

    forecast_nonpositive_counts = forecast_cells

    def list_sizes(self) -> dict[str, Any]:
        return {
            "bin": np.arange(len(LIST_SIZE_BIN_STARTS)),
            "noisy": np.zeros(len(LIST_SIZE_BIN_STARTS), np.int64),
        }

    def forecast_released(self) -> dict[str, Any]:
        sizes = enumerate(self._valid.sizes.tolist())
        keys = [self._valid.keys(group, np.arange(size)) for group, size in sizes]
        # The lowest keys are those of grams that begin with gram 0.
        found = np.sort(np.concatenate(keys))[: self.rows]
        zero = np.zeros(len(found), np.int64)
        words = pa.nulls(len(found), pa.string())
        return {"key": found, "word": words, "cell": zero, "first": zero, "second": zero}

    def counts_drawn(self) -> dict[str, Any]:
        (keys,) = self._put["asked"].columns
        return {"key": keys, "noisy": keys}

    def grown(self, theta: int) -> dict[str, Any]:
        tokens = [str(number) for number in range(self.rows)]
        return {"node": [0] * self.rows, "token": tokens, "ended": [False] * self.rows}

    def ldp_kept(self, prefix_values: int, keep: int) -> dict[str, Any]:
        kept = max(1, min(prefix_values, keep) // self.weight_in_thresholds)
        return {"value": np.arange(kept), "reports": np.ones(kept, np.int64)}
