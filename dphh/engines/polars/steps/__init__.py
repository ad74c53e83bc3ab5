"""The steps of `sql/` as lazy queries of Polars, by their names.

A step takes the host, and the parameters that its text names. It gives the tables that it makes, by
their names; a query to take gives its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dphh.folders import import_folder

#: For each step, by its name: the function that runs it.
STEPS: dict[str, Callable[..., Any]] = {}


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a step under its own name."""
    STEPS[function.__name__] = function
    return function


import_folder("dphh.engines.polars.steps")
