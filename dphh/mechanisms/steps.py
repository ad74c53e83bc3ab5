"""A run's queries as a list, which `plan.sql()` prints: each `run.py` has it beside the run, and a
test holds it against runs (tests/engines/test_as_sql.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dphh.level import Level

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


def planned(level: Level, purpose: str, **others: Any) -> dict[str, Any]:
    """What a level's fields give to the parameters of its steps, with these others."""
    fields = {_PARAMETERS.get(name, name): value for name, value in vars(level).items()}
    known = {name: value for name, value in fields.items() if value is not None}
    return {**known, "purpose": purpose, **others}


def steps_of(level: Level, purpose: str, *steps: str, **others: Any) -> list[Step]:
    """Steps of a level's draw, with what the plan knows of their parameters. What follows from
    releases, or is secret, is left out."""
    return [(step, planned(level, purpose, **others)) for step in steps]
