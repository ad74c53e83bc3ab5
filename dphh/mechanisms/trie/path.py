"""The path accountant: the privacy cost of a trie grown from sampled votes, and its theta and p.

At each of up to L levels every user tosses a fresh coin of probability p. A user whose coin shows
heads votes for the next prefix of the one word that the user has for the whole run, if the prefix
before it was kept. A prefix is kept with theta votes or more, and all kept prefixes are released.
Add or remove one user, and let k_i other users share the i-th prefix of the user's word. That
prefix is kept with probability b(k_i) = P[Bin(k_i, p) >= theta] without the user, and with
a(k_i) = b(k_i + 1) with the user. Nothing else depends on the user, so the likelihood ratio depends
only on how far the path of the user's word reaches.

    user added:    delta(epsilon) = max over k_1, ..., k_L of sum over J of [A_J - e^epsilon B_J]_+
    user removed:  epsilon = ln(1 / (1 - p)) with delta = 0

A_J and B_J are the probabilities, with and without the user, that exactly J levels are passed. The
proof is in docs/trie.md; `path_bound.py` bounds the maximum from above, `path_choice.py`
chooses theta and p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dphh.mechanisms.trie.path_bound import FINE, delta_bound
from dphh.mechanisms.trie.path_rates import (
    LARGEST_THETA,
    RATE_BITS,
    check_epsilon,
    check_whole_number,
    rate_numerator,
    removal,
    rounded_up,
)


@dataclass(frozen=True)
class PathGuarantee:
    """(epsilon, delta)-differential privacy when one user is added or removed."""

    epsilon: float
    delta: float


def path_delta(epsilon: float, p: float | int, theta: int, levels: int) -> float:
    """An upper bound on delta at this epsilon when one user is added, within 2% down to 1e-80.

    Below `removal_epsilon(p)` it does not hold in both directions.
    """
    check_epsilon(epsilon)
    rate = rounded_up(p)
    check_whole_number("theta", theta, LARGEST_THETA, "20 is a common choice")
    check_whole_number("levels", levels, 10**4, "give the longest length that sequences may have")
    return delta_bound(epsilon, rate, theta, levels, FINE) if rate < 1 else 1.0


def removal_epsilon(p: float | int) -> float:
    """ln(1 / (1 - p)), rounded up: the epsilon when one user is removed, with delta 0."""
    numerator = rate_numerator(p)
    return removal(
        math.ldexp(numerator, -RATE_BITS), math.ldexp(2**RATE_BITS - numerator, -RATE_BITS)
    )


def path_guarantee(epsilon: float, p: float | int, theta: int, levels: int) -> PathGuarantee:
    """The guarantee in both directions at this epsilon, or at the removal epsilon if larger."""
    check_epsilon(epsilon)
    reached = max(epsilon, removal_epsilon(p))
    return PathGuarantee(reached, path_delta(reached, p, theta, levels))
