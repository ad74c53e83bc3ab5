"""Finds a sign change, a minimum or the least number that suffices; rounds up or down to floats.

SciPy's special functions are imported on the first call: the import takes longer than most
commands, and the prices of few verbs need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from dphh.udfs.arrays import Floats


def float_at_least(exact: Fraction) -> float:
    """The least float that is at least `exact`."""
    near = float(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def least_whole(suffices: Callable[[int], bool], above: int, high: int | None = None) -> int:
    """The least whole number greater than `above` that suffices; `suffices` is monotone, and true
    at `high`."""
    low = above
    if high is None:
        high = low + 1
        while not suffices(high):
            low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def sign_change(
    slack: Callable[[float], float],
    low: float,
    high: float,
    precision: float,
    relative: bool = False,
) -> tuple[float, float]:
    """The ends of an interval in which `slack` changes its sign, as it does from `low` to `high` (0
    counts as positive). The interval is at most `precision` wide; with `relative`, at most that
    fraction of its higher end."""
    at_low, at_high = slack(low), slack(high)
    side = 0
    while high - low > (least := precision * high if relative else precision):
        middle = low + (high - low) * at_low / (at_low - at_high)
        middle = min(max(middle, low + 0.4 * least), high - 0.4 * least)
        here = slack(middle)
        if (here >= 0) == (at_low >= 0):
            low, at_low = middle, here
            at_high, side = (at_high / 2 if side == 1 else at_high), 1
        else:
            high, at_high = middle, here
            at_low, side = (at_low / 2 if side == -1 else at_low), -1
    return low, high


def ndtr_of_few(values: Floats | float) -> Floats:
    """`ndtr` by the C library's `erfc`, which waits for no import, 0.1 microseconds a number."""
    twice = np.frompyfunc(math.erfc, 1, 1)(values * -math.sqrt(0.5))
    return np.asarray(twice, dtype=np.float64) / 2


def integer_minimiser(function: Callable[[int], float], largest: int) -> int:
    """The argument, from 1 to `largest`, at which a function that falls and then rises is least."""
    low, middle = 0, 8
    while 2 * middle <= largest and function(2 * middle) < function(middle):
        low, middle = middle, 2 * middle
    high = min(2 * middle, largest + 1)
    while high - low > 2:  # golden section: a new point in the wider side
        if high - middle > middle - low:
            other = middle + max(round(0.382 * (high - middle)), 1)
        else:
            other = middle - max(round(0.382 * (middle - low)), 1)
        left, right = min(middle, other), max(middle, other)
        if function(left) <= function(right):
            middle, high = left, right
        else:
            low, middle = left, right
    return middle


def _import_when_called(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return getattr(import_module("scipy.special"), name)(*args)

    function.__name__ = function.__qualname__ = name
    return function


bdtrc = _import_when_called("bdtrc")
betaincc = _import_when_called("betaincc")
betaln = _import_when_called("betaln")
gammaln = _import_when_called("gammaln")
log_expit = _import_when_called("log_expit")
ndtr = _import_when_called("ndtr")
