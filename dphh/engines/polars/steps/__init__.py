"""The steps of `sql/` as lazy queries of Polars, by their names.

A step takes the host, and the parameters that its text names. It gives the tables that it makes, by
their names; a query to take gives its rows. What a step is for, and the columns of its tables, the
head of its text says, once for all engines; here are remarks on what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import polars as pl

#: Stands between the parts of a name, and between tokens in the spelling of a sequence.
SEPARATOR = "\x1f"
#: The tables that a step makes, by their names.
Tables = dict[str, pl.DataFrame | pl.LazyFrame]
#: For each step, by its name: the function that runs it.
STEPS: dict[str, Callable[..., Any]] = {}


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a step under the name of its function."""
    STEPS[function.__name__] = function
    return function


# Importing a file registers its steps.
for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
