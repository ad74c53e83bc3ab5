"""Warnings that name the line of the caller, and no file of dphh."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn(said: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside dphh, or without a line if there is none, as when DuckDB
    answers a macro on a thread of its own."""
    frame: FrameType | None = sys._getframe()
    up = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dphh."):
        frame, up = frame.f_back, up + 1
    if frame is None:
        warnings.warn_explicit(said, category, "dphh", 0)
    else:
        warnings.warn(said, category, stacklevel=up)
