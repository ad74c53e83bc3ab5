"""The ledger's rule where each run follows from the one before (docs/composition.md)."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from dphh import items, ngrams
from dphh.ledger.budget import Booking, Cap, Rule, allowed, amounts_of, checked_booking, fits, left
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, Event, GaussianEvent, SetUnionEvent
from dphh.privacy.gaussian import gaussian_sigma
from tests.draws import curve
from tests.ledger.asked import items_price

CAPS = [(1.0, 1e-6), (4.0, 1e-6), (1.0, 1e-8)]
NOTHING = DeltaEvent(0.0)
ANSWERS = np.linspace(-12, 12, 20_001)


def response(size: float, epsilon: np.ndarray) -> np.ndarray:
    """The delta of randomised response with losses of plus and minus `size`."""
    likely = 1 / (1 + np.exp(-size))
    worth = np.maximum(0, 1 - np.exp(np.minimum(epsilon - size, 0)))
    return likely * worth + (1 - likely) * np.maximum(0, 1 - np.exp(np.minimum(epsilon + size, 0)))


def with_loss(delta: float, worth: np.ndarray) -> np.ndarray:
    return delta + (1 - delta) * worth


def alone(*events: Event) -> list[Booking]:
    return [Booking(events, 50.0, 0.999)]


def granted(cap: Cap, *events: Event) -> bool:
    # A run that costs nothing comes first: none of the others is alone.
    return fits([Booking((event,), 50.0, 0.999) for event in (NOTHING, *events)], cap)


def most(event: Callable[[float], Event], cap: Cap, *before: Event) -> float:
    """The largest size of one more event that is granted."""
    low, high = 0.0, 9.0
    while high - low > 1e-9 * high and high > 1e-40:
        middle = (low + high) / 2
        grant = granted(cap, *before, event(middle))
        low, high = (middle, high) if grant else (low, middle)
    return low


def best_attack(cap: Cap, share: float) -> float:
    """The delta at the cap's epsilon of an attack that takes a share of the noise first, looks, and
    then takes, for each answer, what tells most of all that is granted."""
    whole = most(lambda mu: GaussianEvent(1 / mu), cap)
    first = whole * np.sqrt(share)
    released = GaussianEvent(1 / first)
    assert granted(cap, released)
    left_over = cap.epsilon - (first**2 / 2 + first * ANSWERS)
    nothing = np.maximum(0, 1 - np.exp(left_over))
    mu = most(lambda mu: GaussianEvent(1 / mu), cap, released)
    delta = most(lambda delta: DeltaEvent(min(delta, 1.0)), cap, released)
    size = most(lambda size: EpsilonDeltaEvent(size, 0.0), cap, released)
    choices = [
        with_loss(delta, nothing),
        curve(left_over, mu),
        response(size, left_over) if size else nothing,
    ]
    for some in (0.5, 0.9, 1 - 1e-9):
        lost = DeltaEvent(delta * some)
        mu = most(lambda mu: GaussianEvent(1 / mu), cap, released, lost)
        size = most(lambda size: EpsilonDeltaEvent(size, 0.0), cap, released, lost)
        for worth in (
            curve(left_over, mu),
            response(size, left_over) if size else nothing,
        ):
            choices.append(with_loss(lost.delta, worth))
    return float(trapezoid(norm.pdf(ANSWERS) * np.maximum.reduce(choices), ANSWERS))


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_nobody_who_chooses_adaptively_gets_past_divergence(epsilon, delta, share):
    cap = Cap(epsilon, delta, "divergence")
    got = best_attack(cap, share)
    assert got <= delta * (1 + 1e-6)
    assert got > 0.9 * delta  # and the search comes close, so it does look for it


# What still fits.


def like_items(epsilon: float, delta: float) -> Booking:
    """What `items` costs, but for the rounding of its noise and threshold to a grid."""
    return checked_booking(items_price(epsilon, delta), epsilon, delta)


def as_published(epsilon: float, delta: float) -> Booking:
    """Half of delta for new items, half for the Gaussian curve, as `sips` and `ngrams` have it."""
    events = [GaussianEvent(gaussian_sigma(epsilon, delta / 2)), DeltaEvent(delta / 2)]
    return checked_booking(events, epsilon, delta)


def of_its_own(epsilon: float, delta: float) -> Booking:
    return checked_booking([], epsilon, delta)


KINDS: list[tuple[Callable[[float, float], Booking], Rule]] = [
    (like_items, "divergence"),
    (as_published, "divergence"),
    (of_its_own, "sums"),
]


@pytest.mark.parametrize(("epsilon", "delta"), [*CAPS, (0.1, 1e-12), (20.0, 0.01)])
@pytest.mark.parametrize(("price", "rule"), KINDS)
def test_a_run_may_take_the_whole_cap_and_then_nothing_is_left(epsilon, delta, price, rule):
    cap = Cap(epsilon, delta, rule)
    run = price(epsilon, delta)
    assert fits([run], cap)
    assert not fits([run, price(epsilon / 100, delta / 10)], cap)
    assert left([run], cap).epsilon == 0 or left([run], cap).delta < delta / 10


@pytest.mark.parametrize("plan", [items, partial(items, method="sips"), partial(ngrams, max_n=3)])
def test_a_plan_of_the_whole_cap_fits(plan):
    made = plan(epsilon=1.0, delta=1e-6)
    price = checked_booking(made.events, made.privacy.booked_epsilon, made.privacy.delta)
    assert fits([price], Cap(1.0, 1e-6, "divergence"))


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
@pytest.mark.parametrize("runs", [2, 3, 10])
@pytest.mark.parametrize(("price", "rule"), KINDS)
def test_equal_runs_that_add_up_to_the_cap_fit(epsilon, delta, runs, price, rule):
    # To the digit: thirds of a decimal are none.
    run = price(epsilon / runs * (1 - 1e-9), delta / runs * (1 - 1e-9))
    assert fits([run] * runs, Cap(epsilon, delta, rule))


@pytest.mark.parametrize("rule", ["divergence", "sums"])
def test_what_one_rule_allows_the_other_refuses(rule):
    cap = Cap(1.0, 1e-6, rule)
    assert fits([like_items(0.3, 1e-8)] * 5, cap) == (rule == "divergence")
    assert fits([of_its_own(0.5, 1e-8)] * 2, cap) == (rule == "sums")


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0, 700.0])
def test_what_a_step_draws_is_its_divergence_rounded_up(order, epsilon):
    with mpmath.workdps(400):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
        exact = mpmath.log(moment) / (order - 1)
    got = amounts_of(alone(EpsilonDeltaEvent(epsilon, 0.0)), order).loss
    assert exact <= got <= exact * (1 + 1e-9) + 1e-11
    assert amounts_of(alone(GaussianEvent(2.0)), order).loss == pytest.approx(order / 8)


def test_a_set_union_draws_as_its_noise_and_its_threshold_do():
    together = alone(SetUnionEvent(2.0, 1e-3))
    apart = alone(GaussianEvent(2.0), DeltaEvent(1e-3))
    assert amounts_of(together, 3.0) == amounts_of(apart, 3.0)
    assert amounts_of(apart, 3.0).delta == Fraction(1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [*CAPS, (0.1, 1e-12), (20.0, 0.01), (0.0, 1e-3)])
def test_what_is_allowed_leaves_the_caps_delta(epsilon, delta):
    most = allowed(Cap(epsilon, delta, "divergence"))
    with mpmath.workdps(60):
        order = mpmath.mpf(most.order)
        tail = mpmath.exp((order - 1) * (mpmath.mpf(most.loss) - epsilon))
        left_over = tail * (1 - 1 / order) ** order / (order - 1)
        lost = mpmath.mpf(most.delta.numerator) / most.delta.denominator
        assert lost + (1 - lost) * left_over <= delta
    if epsilon > 0:  # and is most of what noise there is: the Gaussian's own curve allows
        alone = gaussian_sigma(epsilon, delta - float(most.delta))
        assert 0.85 < alone**2 * 2 * most.loss / most.order < 1
