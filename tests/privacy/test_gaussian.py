"""The analytic Gaussian: against many digits, against dp_accounting, and on the safe side."""

import math

import mpmath
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.privacy.gaussian import (
    compose_sigmas,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    split_sigma,
)

few = settings(max_examples=50, deadline=None)
sigmas = st.floats(0.05, 1e3)
epsilons = st.floats(0.0, 20.0)
deltas = st.floats(-40, -0.1).map(lambda exponent: 10.0**exponent)


def many_digits(epsilon: float, sigma: float) -> mpmath.mpf:
    """Theorem 8 of Balle and Wang, with digits enough for its difference."""
    with mpmath.workdps(80 + int(1 / sigma**2)):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(sigma)

        def phi(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return phi(1 / (2 * s) - e * s) - mpmath.exp(e) * phi(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 20.0, 100.0])
@pytest.mark.parametrize("x", [-0.9, 0.0, 1.0, 8.0, 20.0, 36.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_delta_has_ten_digits_from_the_middle_to_the_far_tail(epsilon, x, sign):
    # The sigma at which delta is about Phi(-x), or 1e-285 at the last x.
    sigma = (x + math.sqrt(x * x + 2 * epsilon)) / (2 * epsilon)
    exact = many_digits(sign * epsilon, sigma)
    assert 1 <= gaussian_delta(sign * epsilon, sigma) / exact < 1 + 1e-10


@few
@given(st.floats(-20.0, 20.0), st.floats(0.05, 1e4))
def test_delta_is_never_below_the_exact_one(epsilon, sigma):
    exact = many_digits(epsilon, sigma)
    assert exact <= gaussian_delta(epsilon, sigma) <= exact * (1 + mpmath.mpf(1e-10)) + 1e-307


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.1, 30.0), (1.0, 4.0), (3.0, 1.3), (8.0, 0.7)])
def test_delta_agrees_with_dp_accounting(epsilon, sigma):
    theirs = GaussianPrivacyLoss(standard_deviation=sigma).get_delta_for_epsilon(epsilon)
    assert gaussian_delta(epsilon, sigma) == pytest.approx(theirs, rel=1e-8)


def test_delta_of_no_release_is_zero_and_of_no_noise_is_one():
    assert gaussian_delta(0.0, math.inf) == 0
    assert gaussian_delta(-1.0, math.inf) == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert gaussian_delta(10.0, 1e-6) == 1


def test_delta_that_underflows_is_still_above_zero():
    assert 0 < gaussian_delta(100.0, 10.0) < 1e-300
    assert gaussian_epsilon(0.0, 10.0) == math.inf


@few
@given(deltas, sigmas)
def test_epsilon_is_the_smallest_that_suffices(delta, sigma):
    epsilon = gaussian_epsilon(delta, sigma)
    assert gaussian_delta(epsilon, sigma) <= delta
    if epsilon > 0:
        assert gaussian_delta(epsilon * (1 - 1e-9), sigma) > delta


@few
@given(epsilons, deltas)
def test_sigma_is_the_smallest_that_suffices(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    assert many_digits(epsilon, sigma) <= delta
    assert gaussian_delta(epsilon, sigma * (1 - 1e-9)) > delta


@few
@given(sigmas, st.lists(st.floats(0.01, 1.0), min_size=1, max_size=20))
def test_what_was_split_composes_to_no_less(sigma, weights):
    total = math.fsum(weights)
    split = split_sigma(sigma, [weight / total for weight in weights])
    assert sigma <= compose_sigmas(split) <= sigma * (1 + 1e-13)


def test_composing_rounds_down_but_leaves_one_alone():
    assert compose_sigmas([]) == math.inf
    assert compose_sigmas([0.1]) == compose_sigmas([math.inf, 0.1]) == 0.1
    assert 5 / math.sqrt(2) * (1 - 1e-14) < compose_sigmas([5.0, 5.0]) < 5 / math.sqrt(2)
