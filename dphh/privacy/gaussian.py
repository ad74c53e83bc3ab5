"""The analytic Gaussian mechanism at L2 sensitivity 1: calibration and composition.

Balle and Wang, "Improving the Gaussian mechanism for differential privacy: analytical calibration
and optimal denoising" (ICML 2018). All rounding is conservative: a delta, an epsilon and a
calibrated sigma are rounded up, a composed sigma down. Verbs, caps and events have checked the
numbers that come here: epsilons are finite, sigmas are above 0.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dphh.privacy.search import erfcx, ndtr
from dphh.udfs.arrays import Floats

# `gaussian_deltas` raises its result by both: by more than its relative error, which is below 4e-13
# where measured against 60 digits, and by a bound on what underflow loses.
_DELTA_ERROR = 1e-11
_UNDERFLOW_ERROR = sys.float_info.min
# `gaussian_sigma` finds the sigma for a delta lower by this fraction, more than the measured error.
# So the epsilon computed from that sigma is never above the one asked for.
_CALIBRATION_MARGIN = 2e-12
#: More than the relative rounding error of a few roots, sums and quotients. `split_sigma` rounds up
#: by this, `compose_sigmas` down by a quarter of it: split sigmas compose to no less.
ROUNDING_MARGIN = 2.0**-48

_QUADRATURE = np.polynomial.legendre.leggauss(10)
_QUADRATURE_NODES: Floats = np.asarray((_QUADRATURE[0] + 1) / 2, dtype=np.float64)
_QUADRATURE_WEIGHTS: Floats = np.asarray(_QUADRATURE[1] / 2, dtype=np.float64)


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """The smallest delta of N(0, sigma^2) noise at sensitivity 1, for any epsilon, also negative.

    Theorem 8 of the paper: delta = Phi(1/(2 sigma) - epsilon sigma)
    - e^epsilon Phi(-1/(2 sigma) - epsilon sigma). An infinite sigma means that nothing is released.
    """
    return float(gaussian_deltas(np.array([epsilon], dtype=np.float64), sigma)[0])


def gaussian_deltas(epsilons: Floats, sigma: float) -> Floats:
    """`gaussian_delta` for an array of epsilons.

    With h = 1/sigma, x = epsilon sigma - h/2, y = x + h and the Mills ratio M = (1 - Phi)/phi, the
    curve is phi(x) (M(x) - M(y)), because phi(x) = e^epsilon phi(y): no factor overflows in the
    tail. For small h the difference would lose precision, so M'(u) = u M(u) - 1 is integrated.
    """
    if math.isinf(sigma):
        curve = np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0)
        # Rounded up by more than the error of expm1; 0 is exact.
        above = np.nextafter(np.nextafter(curve, 2.0), 2.0)
        return np.asarray(np.where(curve > 0, np.minimum(above, 1.0), 0.0), dtype=np.float64)
    h, magnitudes = 1.0 / sigma, np.abs(epsilons)
    # The normal tails beyond -100 and 100 underflow, so clipping x there changes no result.
    x = np.clip(magnitudes * sigma - h / 2, -100.0, 100.0)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if h < 0.5:
        u = x[:, np.newaxis] + h * _QUADRATURE_NODES
        curve = density * h * ((1.0 - u * _mills_ratio(u)) @ _QUADRATURE_WEIGHTS)
    else:
        second = density * _mills_ratio(x + h)
        curve = np.where(x < 0, ndtr(-x), density * _mills_ratio(np.maximum(x, 0.0))) - second
    # The two distributions mirror each other, so delta(-e) = 1 - e^-e + e^-e delta(e).
    mirrored = -np.expm1(-magnitudes) + np.exp(-magnitudes) * curve
    curve = np.where(epsilons < 0, mirrored, curve)
    return np.minimum(np.maximum(curve, 0.0) * (1.0 + _DELTA_ERROR) + _UNDERFLOW_ERROR, 1.0)


def gaussian_epsilon(delta: float, sigma: float) -> float:
    """The smallest epsilon >= 0 with gaussian_delta(epsilon, sigma) <= delta, or infinity."""
    return smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, sigma) <= delta)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma with gaussian_delta(epsilon, sigma) <= delta, for a delta far above
    `_UNDERFLOW_ERROR`."""

    def suffices(sigma: float) -> bool:
        return gaussian_delta(epsilon, sigma) <= delta * (1 - _CALIBRATION_MARGIN)

    return smallest_positive(suffices)


def smallest_positive(suffices: Callable[[float], bool]) -> float:
    """The smallest float above 0 that suffices (`suffices` is monotone)."""
    high = 1.0
    while not suffices(high):
        high *= 2
    while suffices(high / 2):
        high /= 2
    return _smallest_between(suffices, high / 2, high)


def smallest_epsilon(suffices: Callable[[float], bool]) -> float:
    """The smallest epsilon >= 0 that suffices (`suffices` is monotone); infinity if none does."""
    if suffices(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not suffices(high):
        if high > 1e30:
            return math.inf
        low, high = high, 2 * high
    return _smallest_between(suffices, low, high)


def _smallest_between(suffices: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest float that suffices, by bisection. `low` does not suffice, and `high` does."""
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def compose_sigmas(sigmas: Iterable[float]) -> float:
    """The sigma of the composition of these Gaussian releases: 1/sigma^2 = sum 1/sigma_k^2.

    DPNE, Proposition 2.3. Without a release, sigma is infinite.
    """
    finite = [sigma for sigma in sigmas if sigma < math.inf]
    if len(finite) < 2:
        return finite[0] if finite else math.inf
    return (1 - ROUNDING_MARGIN / 4) / math.hypot(*(1.0 / sigma for sigma in finite))


def split_sigma(sigma: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Sigmas that compose to `sigma`, each taking its share of 1/sigma^2. Shares that sum to less
    than 1 leave the rest unspent."""
    total = max(math.fsum(shares), 1.0)
    return tuple(sigma * math.sqrt(total / share) * (1 + ROUNDING_MARGIN) for share in shares)


def _mills_ratio(u: Floats) -> Floats:
    """(1 - Phi(u)) / phi(u)."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(u / math.sqrt(2)), dtype=np.float64)
