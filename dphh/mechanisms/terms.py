"""What all verbs share: the unit and adjacency, and the checks of common options."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from dphh.errors import UsageError
from dphh.level import Level
from dphh.privacy.events import Event
from dphh.wording.options import check_whole

#: Levels; their events, which state their cost; and the parts of delta, each (purpose, amount).
LevelsEventsDeltaParts = tuple[tuple[Level, ...], tuple[Event, ...], tuple[tuple[str, float], ...]]
UNIT = "a user: all rows of one value of the user column"
ADJACENCY = "add or remove one user"
#: A plan says how many users an item needs in order to be found with this probability.
FINDING_PROBABILITY = Fraction(9, 10)
LARGEST_EPSILON = 100.0
#: Far above what the shortcut in `dphh.udfs.rules.votes` may add to a delta, and what floats hold.
LEAST_DELTA = 1e-100
#: What a price and a ledger say of the part of delta for the noise's arithmetic.
NOISE_TABLE_NOTE = "noise table's distance from the exact Gaussian"
BUDGET_HELP = {
    "epsilon": "The privacy budget: 1 is strict, 8 is weak.",
    "delta": "Probability on top of epsilon: well below 1 / users.",
}


def check_budget(epsilon: float, delta: float, epsilon_option: str = "epsilon") -> None:
    for name, value in ((epsilon_option, epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise UsageError(f"{name}: found {value!r}; give a number")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise UsageError(
            f"{epsilon_option}: found {epsilon:g}; give a number above 0, such as 1.0, "
            f"and at most {LARGEST_EPSILON:g}: a larger one protects no one. "
            "ngrams by its default method can be priced up to about 60"
        )
    if not LEAST_DELTA <= delta < 1:
        raise UsageError(
            f"delta: found {delta:g}; give a number between {LEAST_DELTA:g} and 1, "
            "well below one over the number of users, such as 1e-8"
        )


def check_max_items(max_items: int) -> None:
    advice = ", about as many different items as a typical user holds"
    check_whole("max_items", max_items, advice=advice)


def checked_arithmetic_delta(arithmetic: float, epsilon: float, delta: float) -> float:
    """`arithmetic`, the part of delta for the noise's arithmetic; refused unless it is small."""
    if arithmetic >= delta / 4:
        if 8 * arithmetic >= 1:
            raise UsageError(
                f"epsilon: found {epsilon:g}, at which the noise's guarantee cannot be proved at "
                "any delta; give a smaller epsilon, such as 1"
            )
        raise UsageError(
            f"epsilon, delta: found ({epsilon:g}, {delta:g}); at this epsilon the guarantee is "
            f"proved down to delta {8 * arithmetic:.1e}: give a larger delta or a smaller epsilon"
        )
    return arithmetic
