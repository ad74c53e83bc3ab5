"""For dphh's own processes: makes pandas unavailable, as if it were not installed.

If pandas is installed, Arrow imports it with the first array, to check whether its input is a
pandas frame. That takes a quarter of a second, and no command has such frames.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


def leave_pandas_out() -> None:
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder, Loader):
    """Finds pandas but fails to load it: Polars checks that a spec exists without importing."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "pandas" else None

    def create_module(self, spec: ModuleSpec) -> None:
        raise ModuleNotFoundError("pandas is left out of commands (dphh)", name=spec.name)
