"""Registers `frame.dphh` on Polars frames: now if Polars is imported, else when it is imported.

So `import dphh` does not import Polars.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphh.asking.frames import FrameVerbs


def register() -> None:
    if "polars" in sys.modules:
        _register_now()
    else:
        sys.meta_path.insert(0, _RegisterAfterImport())


class _RegisterAfterImport:
    """An import hook that registers `frame.dphh` as soon as Polars is imported."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "polars":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("polars")
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: Any) -> None:
            execute(module)
            _register_now()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _register_now() -> None:
    import polars as pl

    if hasattr(pl.DataFrame, "dphh"):  # dphh was imported before, and is reloaded
        return
    pl.api.register_dataframe_namespace("dphh")(_namespace_of)  # type: ignore[arg-type]
    pl.api.register_lazyframe_namespace("dphh")(_namespace_of)  # type: ignore[arg-type]


def _namespace_of(frame: Any) -> FrameVerbs:
    """The object `frame.dphh`, which Polars makes when it is first used."""
    from dphh.asking.frames import FrameVerbs

    return FrameVerbs(frame)
