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

from dphh.privacy.search import sign_change
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

_QUADRATURE = np.polynomial.legendre.leggauss(32)
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

    With h = 1/sigma, x = epsilon sigma - h/2 and I(u, f) the integral of f(t) exp(-t^2/2 - u t)
    over t > 0, the curve is phi(x) I(x, 1 - e^(-h t)): the mean of [1 - e^(epsilon - loss)]_+, and
    the loss exceeds epsilon by h t. No factor overflows or cancels. For large h that f is no
    polynomial, but I(x, 1) - I(x + h, 1), Mills's ratios of the normal tails, loses no precision.
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
        curve = density * _integral(x, lambda t: -np.expm1(-h * t))
    else:
        tail = density * _integral(np.abs(x))
        curve = np.where(x < 0, 1 - tail, tail) - density * _integral(x + h)
    # The two distributions mirror each other, so delta(-e) = 1 - e^-e + e^-e delta(e).
    mirrored = -np.expm1(-magnitudes) + np.exp(-magnitudes) * curve
    curve = np.where(epsilons < 0, mirrored, curve)
    return np.minimum(np.maximum(curve, 0.0) * (1.0 + _DELTA_ERROR) + _UNDERFLOW_ERROR, 1.0)


def _integral(u: Floats, factor: Callable[[Floats], Floats] = np.ones_like) -> Floats:
    """I(u, factor) of `gaussian_deltas`, for u >= -1/4 and its two factors.

    It ends at T, where T^2/2 + u T = 40: what is cut off is less than 1e-15 of it. On [0, T] the
    integrand is entire, and in Bernstein's ellipse of 3.5 at most e^26, so that the rule of 32
    nodes errs by less than 2.3 e^(26 - 80), or 1e-18 of the integral.
    """
    ends = 80 / (u + np.sqrt(u * u + 80))
    t = ends[:, np.newaxis] * _QUADRATURE_NODES
    values = np.exp(-t * (t / 2 + u[:, np.newaxis])) * factor(t)
    return np.asarray(ends * (values @ _QUADRATURE_WEIGHTS), dtype=np.float64)


def gaussian_epsilon(delta: float, sigma: float) -> float:
    """The smallest epsilon >= 0 with gaussian_delta(epsilon, sigma) <= delta, or infinity."""
    return smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, sigma), delta)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma with gaussian_delta(epsilon, sigma) <= delta, for a delta far above
    `_UNDERFLOW_ERROR`."""
    most = delta * (1 - _CALIBRATION_MARGIN)
    return smallest_sigma(lambda sigma: gaussian_delta(epsilon, sigma), most)


def smallest_sigma(delta_at: Callable[[float], float], most: float) -> float:
    """The smallest sigma with a delta of at most `most`; `delta_at` falls, and is above 0."""
    high = 1.0
    while delta_at(high) > most:
        high *= 2
    while delta_at(high / 2) <= most:
        high /= 2
    return _smallest_between(delta_at, most, high / 2, high)


def smallest_epsilon(delta_at: Callable[[float], float], most: float) -> float:
    """The smallest epsilon >= 0 with a delta of at most `most`, or infinity; `delta_at` falls."""
    if delta_at(0.0) <= most:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > most:
        if high > 1e30:
            return math.inf
        low, high = high, 2 * high
    return _smallest_between(delta_at, most, low, high)


def _smallest_between(
    delta_at: Callable[[float], float], most: float, low: float, high: float
) -> float:
    """The smallest float at which the delta is at most `most`, as it is at `high` and not at
    `low`."""

    def slack(number: float) -> float:
        delta = delta_at(number)
        if 0 < delta != most > 0:
            return math.log(min(most / delta, sys.float_info.max))
        return 1.0 if delta <= most else -1.0  # where the delta falls no further, too

    # Near it, bisection, which needs no digits of the slack.
    low, high = sign_change(slack, low, high, 2.0**-40, relative=True)
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if delta_at(middle) <= most else (middle, high)
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
