"""For a process of dphh's own: pandas is not imported, as if it were not installed.

To ask whether what it is given is a frame of pandas, Arrow imports pandas with the first array, if
it is installed: a quarter of a second of a processor. No command has such frames.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


def leave_pandas_out() -> None:
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder, Loader):
    """Finds pandas, and fails to load it: Polars looks for it without an import."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "pandas" else None

    def create_module(self, spec: ModuleSpec) -> None:
        raise ModuleNotFoundError("pandas is left out of commands (dphh)", name=spec.name)
