"""Sampling rates of the path accountant: multiples of 2^-64, with their ranges and rounding."""

from __future__ import annotations

import math

from dphh.errors import UsageError

RATE_BITS = 64  # sampling rates are multiples of 2^-RATE_BITS
_UNIT = 2**RATE_BITS
LARGEST_THETA = 10**4
LARGEST_EPSILON = 300.0


def rate_numerator(p: float | int) -> int:
    """A sampling rate in units of 2^-64. An integer is in these units; a float must be a multiple.

    The rate is never rounded, so that the priced rate is the rate of the draws.
    """
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise UsageError(f"p must be a number, found {type(p).__name__}; 0.2 is a common choice.")
    if isinstance(p, float):
        if not 0 < p < 1:
            raise UsageError(f"p must lie between 0 and 1, found {p!r}; 0.2 is a common choice.")
        scaled = math.ldexp(p, RATE_BITS)
        if not scaled.is_integer():
            raise UsageError(
                f"p must be a multiple of 2^-{RATE_BITS}, found {p!r}; give its numerator "
                f"as an integer, such as {max(int(scaled), 1)}."
            )
        return int(scaled)
    if not 0 < p < _UNIT:
        raise UsageError(
            f"p as an integer counts units of 2^-{RATE_BITS} and must lie between 1 and "
            f"2^{RATE_BITS} - 1, found {p}; give a float for a plain probability."
        )
    return p


def multiple(p: float) -> float:
    """p rounded down to a multiple of 2^-64, at least one unit."""
    return math.ldexp(max(math.floor(math.ldexp(p, RATE_BITS)), 1), -RATE_BITS)


def rounded_up(p: float | int) -> float:
    """A rate rounded up to a float, at most 1: more sampling costs no less."""
    numerator = rate_numerator(p)
    rate = math.ldexp(numerator, -RATE_BITS)
    return rate if int(math.ldexp(rate, RATE_BITS)) >= numerator else math.nextafter(rate, 1.0)


def rounded_down(p: float | int) -> float:
    """A rate rounded down to a float: less sampling finds no more."""
    numerator = rate_numerator(p)
    rate = math.ldexp(numerator, -RATE_BITS)
    return rate if int(math.ldexp(rate, RATE_BITS)) <= numerator else math.nextafter(rate, 0.0)


def removal(p: float, q: float) -> float:
    """-ln q for q = 1 - p, increased by more than the rounding errors."""
    return (1 + 2.0**-50) * (-math.log1p(-p) if p < 0.5 else -math.log(q))


def check_epsilon(epsilon: float) -> None:
    if not 0 <= epsilon <= LARGEST_EPSILON:
        raise UsageError(
            f"epsilon must be at least 0 and at most {LARGEST_EPSILON:g}, found {epsilon!r}; "
            "1.0 is a common choice."
        )


def check_whole_number(name: str, value: int, largest: int, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise UsageError(
            f"{name} must be a whole number from 1 to {largest}, found {value!r}; {advice}."
        )
