"""Colours that the colour-blind can tell (Okabe and Ito 2008), and shades that show on white."""

from __future__ import annotations

from typing import Any

from matplotlib import colormaps
from matplotlib.patches import Patch

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def shades(count: int) -> list[Any]:
    """From dark to light in order, without viridis' last quarter, which white paper swallows."""
    return [colormaps["viridis"](0.75 * i / max(count - 1, 1)) for i in range(count)]


def band(label: str) -> Patch:
    """What the shaded bands are, for a legend: one entry for the bands of all colours."""
    return Patch(color="0.5", alpha=0.3, linewidth=0, label=label)
