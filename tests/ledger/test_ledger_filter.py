"""The ledger's rule where each run is chosen in the light of the one before (docs/ledger.md)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import norm

from dphh.ledger.budget import Budget, checked_price, fits
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent


def curve(mu: float, epsilon: np.ndarray | float) -> np.ndarray:
    """The delta of N(0, 1) and N(mu, 1) at epsilon."""
    epsilon = np.asarray(epsilon, dtype=float)
    second = np.exp(epsilon + norm.logsf(epsilon / mu + mu / 2))
    return norm.sf(epsilon / mu - mu / 2) - second


def granted(cap: Budget, *events: Event) -> bool:
    return fits([checked_price([event], 50.0, 0.999) for event in events], cap)


@pytest.mark.parametrize("cap", [Budget(1.0, 1e-6), Budget(4.0, 1e-6), Budget(1.0, 1e-8)])
@pytest.mark.parametrize("spent_first", [0.5, 0.9, 0.99])
def test_a_choice_between_delta_and_noise_passes_the_caps_delta_by_less_than_twice(
    cap: Budget, spent_first: float
) -> None:
    mu = brentq(lambda mu: curve(mu, cap.epsilon) - cap.delta * (1 - 1e-6), 1e-3, 9)
    first, rest = mu * np.sqrt(spent_first), mu * np.sqrt(1 - spent_first)
    left = float(curve(first, cap.epsilon))
    delta = (cap.delta - left) / (1 - left) * (1 - 1e-6)
    # Either second run is granted, and nothing beyond it: the rule knows no more than its sums.
    released = GaussianEvent(1 / first)
    assert granted(cap, released, GaussianEvent(1 / rest))
    assert granted(cap, released, DeltaEvent(delta))
    assert not granted(cap, released, GaussianEvent(1 / rest), DeltaEvent(cap.delta / 100))
    assert not granted(cap, released, DeltaEvent(delta + cap.delta / 100))

    # Of all first answers, the attacker takes delta where it is worth more than another answer.
    answers = np.linspace(-12, 12, 100_001)
    losses = first**2 / 2 + first * answers
    as_noise = curve(rest, cap.epsilon - losses)
    as_delta = delta + (1 - delta) * np.maximum(0, 1 - np.exp(cap.epsilon - losses))
    fixed, chosen = (
        trapezoid(norm.pdf(answers) * worth, answers)
        for worth in (as_noise, np.maximum(as_noise, as_delta))
    )
    assert fixed == pytest.approx(cap.delta, rel=1e-4)
    assert 1.05 * cap.delta < chosen < 2 * cap.delta
