"""Warnings that show the line of the caller's code, and never a line of dphh."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn(said: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line of code outside dphh that led here; without a line if there is none,
    as when DuckDB calls a macro's function on its own thread."""
    frame: FrameType | None = sys._getframe()
    up = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dphh."):
        frame, up = frame.f_back, up + 1
    if frame is None:
        warnings.warn_explicit(said, category, "dphh", 0)
    else:
        warnings.warn(said, category, stacklevel=up)
