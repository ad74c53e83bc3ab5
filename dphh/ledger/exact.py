"""The rule "divergence": two amounts, fixed before anything is released, that runs draw from.

Divergence: the sum of the Renyi divergences, of one fixed order, of all Gaussian releases and all
steps with an epsilon of their own. Delta: the sum of the deltas of all thresholds. Neither amount
can be exchanged for the other, so the guarantee holds for adaptive requests in any
order. The theorem, with its proof: docs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dphh.privacy.events import Event, costs_of
from dphh.privacy.set_union import NEW_ITEMS_SHARE

#: The share of a cap's delta for thresholds, as large as that for new items in one run, so that k
#: runs of (epsilon, delta) / k fit a cap of (epsilon, delta). The rest is the divergence's.
THRESHOLDS_SHARE = NEW_ITEMS_SHARE
#: A bound on the relative rounding error of a few logarithms, products and sums.
_ROUNDINGS = 2.0**-44


@dataclass(frozen=True)
class Amounts:
    """A Renyi divergence of this order, and a delta: allowed by a cap, or drawn by runs."""

    order: float
    divergence: float
    delta: Fraction

    def within(self, most: Amounts) -> bool:
        return self.divergence <= most.divergence and self.delta <= most.delta

    def up_to(self, most: Amounts) -> Amounts:
        """What is left of the allowed amounts `most` after these were drawn."""
        return Amounts(
            self.order,
            max(most.divergence - self.divergence, 0.0),
            max(most.delta - self.delta, Fraction(0)),
        )

    @property
    def sigma(self) -> float:
        """The sigma of one Gaussian release that draws exactly this divergence."""
        return math.sqrt(self.order / 2 / self.divergence) if self.divergence > 0 else math.inf


@lru_cache(maxsize=64)
def allowed(epsilon: float, delta: float) -> Amounts:
    """The two amounts of a cap, at the order of divergence that allows the least noise.

    d + (1 - d) R <= delta, where R is the delta that the divergence B leaves at epsilon:
    e^((order - 1) (B - epsilon)) (1 - 1/order)^order / (order - 1).
    """
    for_thresholds = THRESHOLDS_SHARE * delta
    rest = delta - for_thresholds
    if rest < 1e-290:
        return Amounts(2.0, 0.0, Fraction(delta))

    def divergence(order: float) -> float:
        gained = math.log(rest) + math.log(order - 1) - order * math.log1p(-1 / order)
        return epsilon + gained / (order - 1)

    from scipy.optimize import minimize_scalar  # slow to import, and only caps need it

    best = minimize_scalar(
        lambda x: -divergence(1 + 2**x) / (1 + 2**x), bounds=(-10.0, 40.0), method="bounded"
    )
    # A cap's order must not depend on the last digits of a search.
    order = 1 + 2 ** (round(8 * best.x) / 8)
    slack = _ROUNDINGS * (epsilon + (1 + abs(math.log(rest))) / (order - 1))
    return Amounts(order, max(divergence(order) - slack, 0.0), Fraction(for_thresholds))


def drawn(events: Iterable[Event], order: float) -> Amounts:
    """The amounts that these events draw, rounded up."""
    divergences: list[float] = []
    delta = Fraction(0)
    for cost in costs_of(events):
        if cost.sigma is not None:
            divergences.append(order / 2 / cost.sigma**2)
        if cost.response is not None:
            divergences.append(_divergence_of_response(cost.response, order))
        if cost.certain is not None:
            divergences.append(cost.certain)
        if cost.delta is not None:
            delta += Fraction(cost.delta)
    return Amounts(order, math.fsum(divergences) * (1 + _ROUNDINGS), delta)


def _divergence_of_response(epsilon: float, order: float) -> float:
    """The Renyi divergence of randomised response at this order, rounded up: its privacy loss is
    epsilon or, less often, -epsilon."""
    log_p = -math.log1p(math.exp(-epsilon))
    more, less = (order - 1) * epsilon, -order * epsilon
    log_mean = log_p + more + math.log1p(math.exp(less - more))
    return min(epsilon, (log_mean + _ROUNDINGS * (1 + more)) / (order - 1))
