"""What all runs share: the rows that a level releases, as Arrow columns; and a run's queries as a
list, which `plan.sql()` prints. Each `run.py` has that list beside the run, and a test holds it
against runs (tests/engines/test_as_sql.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.columns import SCORED_SCHEMA
from dphh.level import Level
from dphh.price import Price
from dphh.udfs.arrays import one_array
from dphh.udfs.kernel.gathering import ReadWords


@dataclass(frozen=True)
class LevelDone:
    """One level as it was run, and the rows that it releases."""

    level: Level
    rows: Any

    def manifest_entry(self) -> dict[str, Any]:
        """This level's entry in the manifest, with how many rows it releases."""
        return {**self.level.to_json(), "released": self.rows.num_rows}


def words_of_texts(price: Price, *, marks_ends: bool = False) -> ReadWords:
    """How texts are gathered, to find items and then to count in the groups that the price has, if
    any: a text's end says its group."""
    groups = () if price.counting is None else price.counting.groups
    return ReadWords(marks_ends or bool(groups), groups)


def scored_rows(level: int, items: Any, tokens: Any, noisy: Any, grid_bits: int) -> Any:
    """Released rows with the columns SCORED_SCHEMA. The score is the noised weight, in users."""
    scores = np.asarray(noisy, dtype=np.float64) / 2.0**grid_bits
    return pa.table(
        [pa.array(np.full(len(items), level, np.int32)), items, tokens, pa.array(scores)],
        schema=SCORED_SCHEMA,
    )


def as_array(column: Any, arrow_type: Any) -> Any:
    """A column of an Arrow table as a single array of this type."""
    return one_array(column.cast(arrow_type))


def integer_columns(table: Any, *names: str) -> list[Any]:
    """These columns of an Arrow table as NumPy arrays of 64-bit integers."""
    return [as_array(table.column(name), pa.int64()).to_numpy() for name in names]


def scored_words(words: Any, noisy: Any, grid_bits: int) -> Any:
    """`scored_rows` of words: each is one token."""
    offsets = pa.array(np.arange(len(words) + 1, dtype=np.int32))
    tokens = pa.ListArray.from_arrays(offsets, words)
    return scored_rows(1, words, tokens, noisy, grid_bits)


#: A step's name, or a line of SQL; and values of parameters, of which a step may use some.
Step = tuple[str, dict[str, Any]]
#: The draws of a run in order: the title of each, and its steps.
Draws = Iterator[tuple[str, list[Step]]]

BEFORE_LEVELS = "before the first level"
GATHER: list[Step] = [("gather_texts", {})]
#: The parameters that have other names than the field of a level with their value.
_PARAMETERS = {
    "sigma_grid": "sigma",
    "threshold_grid": "threshold",
    "characters": "character_count",
    "size": "subset_size",
    "first_seat": "seats_before",
    "listed": "first_unlisted_key",
    "first_threshold_grid": "unlisted_threshold",
}


def renamed(table: str, name: str) -> str:
    """The line of SQL that renames a table."""
    return f"ALTER TABLE {table} RENAME TO {name};"


def parameters_of(level: Level, purpose: str, **others: Any) -> dict[str, Any]:
    """What a level's fields give to the parameters of its steps, with these others."""
    fields = {_PARAMETERS.get(name, name): value for name, value in vars(level).items()}
    known = {name: value for name, value in fields.items() if value is not None}
    return {**known, "purpose": purpose, **others}


def steps_of(level: Level, purpose: str, *steps: str, **others: Any) -> list[Step]:
    """Steps of a level's draw, with what the plan knows of their parameters. What follows from
    releases, or is secret, is left out."""
    return [(step, parameters_of(level, purpose, **others)) for step in steps]
