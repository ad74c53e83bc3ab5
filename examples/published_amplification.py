"""What papers print of shuffled reports' central epsilon, beside `amplification`, which prices.

For comparison: no price rests on these.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from dphh.errors import UsageError
from dphh.mechanisms.ldp_trie.amplification import (
    BISECTION_PRECISION,
    LEFT_OUT_PART,
    Blanket,
    central_delta,
    divergence_of_counts,
)


def blanket_of_any_randomiser(epsilon: float) -> Blanket:
    """The blanket of any randomiser with this local epsilon: the numeric analysis of 2021. Share
    e^-epsilon, tell 1, own / other = e^epsilon, no idle."""
    share = math.nextafter(math.exp(-epsilon), 0.0)
    return Blanket(epsilon, share, 1.0, 1 / (1 + math.exp(-epsilon)), 0.0)


def closed_form_2021(epsilon: float, reports: int, delta: float) -> float:
    """Theorem 3.1 of "Hiding among the clones", for whatever is epsilon-LDP."""
    if not 0 < epsilon <= math.log(reports / (16 * math.log(2 / delta))):
        raise UsageError(
            f"the closed form of 2021 needs epsilon <= ln(n / (16 ln(2/delta))), found {epsilon!r} "
            f"with n = {reports}; take central_epsilon, which has no such condition"
        )
    spread = 8 * math.sqrt(math.exp(epsilon) * math.log(4 / delta) / reports)
    return math.log1p(math.tanh(epsilon / 2) * (spread + 8 * math.exp(epsilon) / reports))


def closed_form_2023(epsilon: float, reports: int, delta: float) -> float:
    """The closed form that the Gboard paper prints as Theorem 2. For comparison: no price.

    It rests on the general theorem of the paper of 2023, which its authors have withdrawn but for a
    class of randomisers. Randomised response (subsets of one value) is in it, subset selection with
    d >= 2 was not shown to be: two values' sets that hold both weigh more than the theorem allows.
    """
    if not 0 < epsilon <= math.log(reports / (8 * math.log(2 / delta)) - 1):
        raise UsageError(
            f"the closed form of 2023 needs epsilon <= ln(n / (8 ln(2/delta)) - 1), found "
            f"{epsilon!r} with n = {reports}"
        )
    spread = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(epsilon) + 1) * reports))
    return math.log1p(math.expm1(epsilon) * (spread + 4 / reports))


def epsilon_by_blocks(
    epsilon: float, reports: int, delta: float, step: int = 100, bisections: int = 10
) -> float:
    """The numeric analysis of 2021 as its authors' public tool does it, with its steps.

    C is taken in blocks of `step` from its mean outwards, each at the end with fewer clones (fewer
    hide less), and epsilon is halved `bisections` times from the closed form. The Gboard paper's
    0.315 comes from this.
    """
    blanket = blanket_of_any_randomiser(epsilon)
    n, r = reports - 1, blanket.share
    start = math.ceil(n * r) % step
    edges = np.arange(start - step, n + step, step, dtype=np.float64)
    edges = edges[(edges > n * r - 60 * math.sqrt(n * r) - 3 * step)]
    edges = edges[(edges < n * r + 60 * math.sqrt(n * r) + 3 * step)]
    chances = np.diff(binom.cdf(np.append(edges - 1, n), n, r))
    fewest = np.maximum(edges, 0.0)
    outside = float(binom.cdf(edges[0] - 1, n, r))

    def suffices(central: float) -> bool:
        nothing = np.zeros_like(chances)
        return (
            divergence_of_counts(blanket, central, fewest + 1, chances, nothing) + outside < delta
        )

    low, high = 0.0, closed_form_2021(epsilon, reports, delta)
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def reports_needed(blanket: Blanket, epsilon: float, delta: float) -> int:
    """The least number of reports, within 1 in 100,000, that keeps to central (epsilon, delta)."""
    if epsilon <= 0:
        raise UsageError(f"a central epsilon must be above 0, found {epsilon!r}")

    def suffices(reports: int) -> bool:
        return central_delta(blanket, reports, epsilon, LEFT_OUT_PART * delta) <= delta

    high = 1
    while not suffices(high):
        high *= 2
        if high > 1 << 50:
            raise UsageError(
                f"more than 2^50 reports would be needed for a central epsilon of {epsilon!r} at "
                f"delta {delta!r}; ask for a smaller local epsilon"
            )
    low = high // 2
    while high - low > max(1, int(BISECTION_PRECISION * high)):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def local_epsilon(
    epsilon: float,
    delta: float,
    reports: int,
    blanket: Callable[[float], Blanket] = blanket_of_any_randomiser,
) -> float:
    """The largest local epsilon, rounded down, with at most this central (epsilon, delta).

    `blanket` returns the blanket for a local epsilon, for instance of subset selection on a domain.
    """
    if epsilon <= 0:
        raise UsageError(f"a central epsilon must be above 0, found {epsilon!r}")

    def keeps(local: float) -> bool:
        found = blanket(local)
        return (
            found.epsilon <= epsilon
            or central_delta(found, reports, epsilon, LEFT_OUT_PART * delta) <= delta
        )

    low = high = epsilon  # a local epsilon holds centrally too
    while keeps(high):
        low, high = high, high * 1.5
        if high > 600:
            return low
    while high - low > BISECTION_PRECISION * low:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
