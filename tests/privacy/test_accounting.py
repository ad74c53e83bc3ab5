"""Composition: against brute force, against dp_accounting, and never below either."""

import itertools
import math
from collections.abc import Sequence

import mpmath
import pytest
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dphh.privacy.accounting import compose
from dphh.privacy.events import (
    DeltaEvent,
    EpsilonDeltaEvent,
    Event,
    GaussianEvent,
    SetUnionEvent,
)
from dphh.privacy.gaussian import gaussian_delta

INTERVAL = 2.0**-10  # of dp_accounting's grid of losses
few = settings(max_examples=30, deadline=None)
epsilon_delta_steps = st.lists(
    st.builds(
        EpsilonDeltaEvent,
        st.floats(0, 3),
        st.floats(0, 1e-3, allow_subnormal=False),
    ),
    min_size=1,
    max_size=4,
)


def brute_force(steps: Sequence[EpsilonDeltaEvent], epsilon: float) -> mpmath.mpf:
    """Every outcome of every step's own pair, in many digits: sum of (P - e^epsilon Q)_+."""
    with mpmath.workdps(60):
        pairs = []
        for step in steps:
            d, e = mpmath.mpf(step.delta), mpmath.exp(step.epsilon)
            up, down = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
            pairs.append([(d, mpmath.mpf(0)), (up, down), (down, up), (mpmath.mpf(0), d)])
        total = mpmath.mpf(0)
        for outcome in itertools.product(*pairs):
            p, q = (mpmath.fprod(masses) for masses in zip(*outcome, strict=True))
            total += max(p - mpmath.exp(epsilon) * q, 0)
        return total


def theirs(events: Sequence[Event], pessimistic: bool = True) -> PrivacyLossDistribution:
    """dp_accounting's estimate. Epsilons on its grid add no error to it; Gaussians always do."""
    parts = []
    for event in events:
        if isinstance(event, GaussianEvent):
            part = from_gaussian_mechanism(
                event.sigma,
                pessimistic_estimate=pessimistic,
                value_discretization_interval=INTERVAL,
            )
        else:
            epsilon = event.epsilon if isinstance(event, EpsilonDeltaEvent) else 0.0
            steps = round(epsilon / INTERVAL)
            rare = (1 - event.delta) / (1 + math.exp(epsilon))
            masses = {-steps: rare, steps: 1 - event.delta - (rare if steps else 0.0)}
            part = PrivacyLossDistribution.create_from_rounded_probability(
                masses, event.delta, INTERVAL, pessimistic_estimate=pessimistic
            )
        parts.append(part)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


def test_one_event_costs_what_it_says():
    assert compose([DeltaEvent(1e-8)]).epsilon(1e-8) == 0
    assert compose([EpsilonDeltaEvent(0.7, 1e-8)]).epsilon(1e-8) == 0.7
    assert compose([EpsilonDeltaEvent(0.7, 1e-8)]).delta(0.7) == 1e-8
    assert compose([GaussianEvent(4.0)]).delta(1.0) == gaussian_delta(1.0, 4.0)


def test_deltas_add_up_to_less_than_their_sum():
    whole = compose([DeltaEvent(0.1), DeltaEvent(0.2), DeltaEvent(0.3)])
    assert whole.delta(5.0) == pytest.approx(1 - 0.9 * 0.8 * 0.7, rel=1e-15)
    assert whole.delta(math.inf) == whole.delta(5.0) < 0.6


def test_an_impossible_delta_needs_infinite_epsilon():
    assert compose([DeltaEvent(1e-6), EpsilonDeltaEvent(1.0, 0.0)]).epsilon(1e-7) == math.inf
    assert compose([DeltaEvent(1e-6), GaussianEvent(1.0)]).epsilon(1e-6) == math.inf
    assert compose([GaussianEvent(1.0)]).epsilon(0.0) == math.inf
    assert compose([DeltaEvent(1.0), GaussianEvent(1.0)]).epsilon(1.0) == 0


@few
@given(epsilon_delta_steps, st.floats(0, 8))
def test_steps_compose_to_the_brute_force_sum(steps, epsilon):
    exact = brute_force(steps, epsilon)
    found = compose(steps).delta(epsilon)
    assert exact - mpmath.mpf(10) ** -55 <= found <= exact * (1 + mpmath.mpf(1e-10)) + 1e-14


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_a_gaussian_beside_steps_is_the_integral_over_both(epsilon):
    sigma, first, second = 1.5, 0.4, 1.1

    def excess(x: float, p: float, q: float) -> float:
        density = p * norm.pdf(x, 1, sigma) - math.exp(epsilon) * q * norm.pdf(x, 0, sigma)
        return float(max(density, 0.0))

    integral = 0.0
    for signs in itertools.product((1, -1), repeat=2):
        loss = signs[0] * first + signs[1] * second
        p = math.prod(
            1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, (first, second), strict=True)
        )
        q = p * math.exp(-loss)
        kink = 0.5 + sigma**2 * (epsilon - loss)
        integral += quad(excess, -25, 25, (p, q), points=[kink], epsabs=1e-12, limit=200)[0]
    whole = compose(
        [EpsilonDeltaEvent(first, 0.01), GaussianEvent(sigma), EpsilonDeltaEvent(second, 0.02)]
    )
    assert whole.delta(epsilon) == pytest.approx(1 - 0.99 * 0.98 * (1 - integral), rel=1e-8)


def test_composition_lies_between_the_estimates_of_dp_accounting():
    events: list[Event] = [GaussianEvent(3.0), GaussianEvent(5.0), DeltaEvent(1e-7)]
    events += [EpsilonDeltaEvent(0.25, 1e-8)] * 5 + [EpsilonDeltaEvent(0.5, 0.0)]
    whole = compose(events)
    above, below = theirs(events), theirs(events, pessimistic=False)
    for epsilon in (0.2, 1.0, 2.0, 3.0):
        lower, upper = (pld.get_delta_for_epsilon(epsilon) for pld in (below, above))
        assert lower * (1 - 1e-6) <= whole.delta(epsilon) <= upper * (1 + 1e-6)


def test_many_equal_steps_are_as_dp_accounting_has_them():
    events = [EpsilonDeltaEvent(0.125, 1e-9)] * 400
    exact = theirs(events)
    for epsilon in (3.0, 8.0, 12.0):
        assert compose(events).delta(epsilon) == pytest.approx(
            exact.get_delta_for_epsilon(epsilon), rel=1e-6
        )


def test_many_different_steps_are_priced_on_a_grid():
    events: list[Event] = [GaussianEvent(4.0), DeltaEvent(1e-8)]
    events += [EpsilonDeltaEvent((50 + k) * INTERVAL, 1e-10) for k in range(100)]
    whole = compose(events)
    found = whole.epsilon(1e-6)
    assert len(whole._response_losses[0]) <= 2**12
    assert whole.delta(found) <= 1e-6
    assert theirs(events, pessimistic=False).get_epsilon_for_delta(1e-6) <= found
    assert found <= theirs(events).get_epsilon_for_delta(1e-6) * (1 + 1e-3)


@few
@given(epsilon_delta_steps, st.floats(0.5, 5), st.floats(1e-2, 0.5))
def test_epsilon_is_the_smallest_that_suffices(steps, sigma, delta):
    whole = compose([*steps, GaussianEvent(sigma)])
    epsilon = whole.epsilon(delta)
    assert whole.delta(epsilon) <= delta
    assert epsilon == 0 or whole.delta(epsilon * (1 - 1e-9)) > delta


def test_the_epsilon_over_shares_is_the_largest_of_all_shares():
    """It is found without asking each of them, where it can be."""
    for sigma, more in ((5.0, []), (2.0, [GaussianEvent(20.0), DeltaEvent(1e-8)] * 3)):
        composed = compose([SetUnionEvent(sigma, 1e-6), *more])
        for delta in (1e-7, 1e-6, 1.1e-6, 1e-5, 1e-2, 1.0):
            each = [some.epsilon(delta) for some in composed.by_new_share]
            assert composed.epsilon(delta) == max(each)
