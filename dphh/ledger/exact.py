"""A cap kept exactly: two amounts, fixed before anything was released, that runs draw from.

Noise: 1 / sigma^2 of every Gaussian release. Delta: of every threshold. Neither amount can be had
for the other, so it does not matter who asks what, in what order, in the light of which release.
The theorem, with its proof: docs/ledger.md, "What a cap promises".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scipy.special import expit, ndtri

from dphh.privacy.events import (
    ApproximateEvent,
    DeltaEvent,
    Event,
    GaussianEvent,
    LocalEvent,
    OneDirectionEvent,
    SetUnionEvent,
)
from dphh.privacy.gaussian import gaussian_sigma
from dphh.privacy.set_union import NEW_ITEMS_SHARE

#: What of a cap's delta thresholds may have. As much as new items may have of a run's, so that
#: k runs of (epsilon, delta) / k fit a cap of (epsilon, delta); the rest is the Gaussian curve's.
THRESHOLDS_SHARE = NEW_ITEMS_SHARE
#: More than a few products, quotients and sums lose.
_ROUNDINGS = 2.0**-45


@dataclass(frozen=True)
class Amounts:
    """What is allowed, or drawn: noise as mu^2 = sum 1 / sigma^2, and delta."""

    noise: float
    delta: Fraction

    def within(self, allowed: Amounts) -> bool:
        return self.noise <= allowed.noise and self.delta <= allowed.delta

    def up_to(self, allowed: Amounts) -> Amounts:
        """What is left of what is allowed."""
        return Amounts(
            max(allowed.noise - self.noise, 0.0), max(allowed.delta - self.delta, Fraction(0))
        )


@lru_cache(maxsize=64)
def allowed(epsilon: float, delta: float) -> Amounts:
    """(mu^2, d) with d + (1 - d) G(mu, epsilon) <= delta."""
    for_thresholds = THRESHOLDS_SHARE * delta
    for_curve = delta - for_thresholds
    if for_curve < 1e-290:
        return Amounts(0.0, Fraction(delta))
    sigma = gaussian_sigma(epsilon, for_curve)
    return Amounts((1 - _ROUNDINGS) / sigma**2, Fraction(for_thresholds))


def drawn(events: Iterable[Event]) -> Amounts:
    """What events draw, rounded up."""
    noise: list[float] = []
    delta = Fraction(0)
    for event in events:
        match event:
            case GaussianEvent(sigma=sigma):
                noise.append(sigma**-2)
            case DeltaEvent(delta=lost):
                delta += Fraction(lost)
            case SetUnionEvent(sigma=sigma, delta=lost):
                noise.append(sigma**-2)
                delta += Fraction(lost)
            case ApproximateEvent(epsilon=epsilon, delta=lost):
                noise.append(_as_gaussian(epsilon) ** 2)
                delta += Fraction(lost)
            case OneDirectionEvent(epsilon=epsilon, delta=lost):
                # In the other direction nothing is known, and no Gaussian is like that.
                noise.append(math.inf if epsilon > 0 else 0.0)
                delta += Fraction(lost)
            case LocalEvent():
                pass  # what is published of it is an event of its own
    return Amounts(math.fsum(noise) * (1 + _ROUNDINGS), delta)


def is_noise(events: Iterable[Event]) -> bool:
    """Whether a run is Gaussian releases and thresholds, such as these amounts are made for."""
    made_for = (GaussianEvent, SetUnionEvent, DeltaEvent, LocalEvent)
    kinds = list(events)
    return any(isinstance(event, (GaussianEvent, SetUnionEvent)) for event in kinds) and all(
        isinstance(event, made_for) for event in kinds
    )


def _as_gaussian(epsilon: float) -> float:
    """mu = 2 PhiInv(e^epsilon / (1 + e^epsilon)): at least as telling as randomised response.

    The two pairs agree in the loss's sign, and the Gaussian one can be merged to the other: which
    of N(0, 1) and N(mu, 1) lies beyond mu / 2 is right with that probability.
    """
    return float(-2 * ndtri(expit(-epsilon)))
