"""The shell's planning against many digits and against the plans of dphh."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.mechanisms.ngrams.price import price_ngrams
from dphh.mechanisms.set_union.price import price_items
from dphh.mechanisms.trie.path import removal_epsilon, users_needed
from dphh.mechanisms.trie.price import price_trie
from dphh.mechanisms.trie.triehh import (
    fixed_size_plan,
    log10_theta,
    published_delta,
    published_theta,
)
from dphh.mechanisms.trie.triehh_discovery import discovery_rate, holders_needed
from dphh.mechanisms.trie.triehh_votes import Bernoulli, FixedSize
from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma

Value = Callable[..., Any]
Rows = Callable[..., list[dict[str, Any]]]
DIGITS = 60


def tail(x: float) -> Any:
    return mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize(
    "x", [-30.0, -5.0, -1.0, -1e-9, 0.0, 1e-9, 0.3, 1.0, 2.5, 6.0, 12.5, 12.6, 25.0, 37.0]
)
def test_the_normal_tail_has_its_digits_however_far_out(value: Value, x: float) -> None:
    with mpmath.workdps(DIGITS):
        exact = tail(x)
        # Squaring x in floats costs x^2 2^-53 of the density.
        assert abs(value("dphh_normal_tail(?)", x) / exact - 1) < 1e-14 + x * x * 2e-16
        assert value("dphh_normal_cdf(?)", -x) == value("dphh_normal_tail(?)", x)


@pytest.mark.parametrize("u", [-37.0, -13.0, -12.5, -3.0, 0.0, 1e-7, 1.0, 9.0, 12.57, 100.0, 1e6])
def test_the_mills_ratio_is_right_on_both_sides_of_its_pole(value: Value, u: float) -> None:
    with mpmath.workdps(DIGITS):
        exact = tail(u) / mpmath.npdf(mpmath.mpf(u))
        assert abs(value("dphh_mills(?)", u) / exact - 1) < 1e-14 + (u * u * 2e-16 if u < 0 else 0)


@pytest.mark.parametrize("q", [0.999, 0.9, 0.5000001, 0.5, 0.3, 1e-3, 1e-10, 1e-100, 1e-300])
def test_the_inverse_tail_comes_back(value: Value, q: float) -> None:
    with mpmath.workdps(DIGITS):
        x = value("dphh_normal_tail_inverse(?)", q)
        assert abs(tail(x) / q - 1) < 1e-12 if x == 0 or q < 0.4 else abs(tail(x) - q) < 1e-14


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 3.9, 4.1, 30.0, 1e4])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 5.0, 60.0])
def test_delta_of_sigma_is_that_of_many_digits(value: Value, epsilon: float, sigma: float) -> None:
    with mpmath.workdps(400):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(sigma)
        exact = mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)
        found = value("dphh_gaussian_delta(?, ?)", epsilon, sigma)
        if exact < 1e-290:
            assert found < 1e-280
        else:
            assert abs(found / exact - 1) < 1e-11
            assert gaussian_delta(epsilon, sigma) == pytest.approx(found, rel=2e-11)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1, 1e-5), (3, math.exp(-10)), (4, 1e-7), (1, 1e-8), (0.01, 1e-6), (50, 1e-12), (1, 1e-290)],
)
def test_calibration_is_that_of_dphh_and_never_below_it(
    value: Value, epsilon: float, delta: float
) -> None:
    exact = gaussian_sigma(epsilon, delta)
    sigma = value("dphh_gaussian_sigma(?, ?)", epsilon, delta)
    assert sigma == pytest.approx(exact, rel=1e-10)
    assert gaussian_delta(epsilon, sigma) <= delta
    back = value("dphh_gaussian_epsilon(?, ?)", delta, sigma)
    assert back == pytest.approx(gaussian_epsilon(delta, sigma), rel=1e-9)


# facts.md's golden table: sigma at delta / 2, and the papers' thresholds by max_items.
GOLDEN = [
    (1, 1e-5, 3.884, (18.16, 19.32, 20.34, 20.79, 21.51)),
    (3, math.exp(-10), 1.333, (6.44, 6.44, 6.69, 6.82, 7.06)),
    (4, 1e-7, 1.328, (8.07, 8.07, 8.11, 8.21, 8.40)),
    (1, 1e-8, 5.222, (30.92, 32.22, 33.36, 33.87, 34.68)),
]


@pytest.mark.parametrize(("epsilon", "delta", "sigma", "thresholds"), GOLDEN)
def test_the_papers_thresholds(
    value: Value, epsilon: float, delta: float, sigma: float, thresholds: tuple[float, ...]
) -> None:
    found = value("dphh_gaussian_sigma(?, ?)", epsilon, delta / 2)
    assert found == pytest.approx(sigma, abs=6e-4)
    for max_items, threshold in zip((1, 10, 50, 100, 300), thresholds, strict=True):
        at = value("dphh_continuous_threshold(?, ?, ?)", found, max_items, delta / 2)
        assert at == pytest.approx(threshold, abs=6e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (4.0, 1e-7), (1.0, 1e-8)])
@pytest.mark.parametrize("max_items", [1, 10, 100, 300])
def test_a_plans_threshold_is_the_papers_for_what_new_items_may_cost(
    value: Value, rows: Rows, epsilon: float, delta: float, max_items: int
) -> None:
    (row,) = rows("FROM dphh_price_items(?, ?, max_items := ?)", epsilon, delta, max_items)
    new = delta * 15 / 16
    papers = value("dphh_continuous_threshold(?, ?, ?)", row["sigma"], max_items, new)
    assert abs(row["threshold"] - papers) < 0.01


# The last has noise so large that the grid is coarser than 2^10.
@pytest.mark.parametrize(
    ("epsilon", "delta", "max_items", "method"),
    [
        (1.0, 1e-8, 1, "gaussian"),
        (1.0, 1e-8, 300, "gaussian"),
        (3.0, 4.5e-5, 7, "gaussian"),
        (8.0, 1e-12, 100, "gaussian"),
        (1.0, 1e-8, 100, "sips"),
        (8.0, 1e-12, 7, "sips"),
        (0.5, 0.1, 5, "gaussian"),
        (0.05, 1e-7, 100, "gaussian"),
    ],
)
def test_items_are_priced_as_the_plan_prices_them(
    rows: Rows, epsilon: float, delta: float, max_items: int, method: str
) -> None:
    plan = price_items(epsilon=epsilon, delta=delta, max_items=max_items, method=method)
    priced = rows(
        "FROM dphh_price_items(?, ?, max_items := ?, method := ?)",
        epsilon,
        delta,
        max_items,
        method,
    )
    for level, row in zip(plan.levels, priced, strict=True):
        assert isinstance(level, SetUnionLevel)
        for name in ("round", "max_items", "grid_bits", "sigma_grid", "threshold_grid"):
            assert row[name] == getattr(level, name), name
        assert (row["sigma"], row["threshold"]) == (level.sigma, level.threshold)
    needed = dict(plan.finds.users_by_held)
    assert min(row["users_needed"] for row in priced) == plan.finds.users
    assert min(row["users_needed_if_full"] for row in priced) == needed[max_items]


@pytest.mark.parametrize(
    "options",
    [
        {"max_n": 6, "epsilon": 1.0, "delta": 1e-7, "max_items": 10},
        {"max_n": 1, "epsilon": 2.0, "delta": 1e-9},
        {"max_n": 3, "epsilon": 2.0, "delta": 1e-8, "decay": 0.8, "spurious": 0.1},
        {"max_n": 2, "epsilon": 2.0, "delta": 1e-6, "shares": [1.0, 2.0]},
        {"max_n": 4, "epsilon": 4.0, "delta": 1e-7, "max_items": 2},
    ],
)
def test_dpne_is_priced_as_the_plan_prices_it(rows: Rows, options: dict[str, Any]) -> None:
    plan = price_ngrams(**options, method="dpne")
    named = ", ".join(f"{name} := ?" for name in options)
    priced = rows(f"FROM dphh_price_dpne({named})", *options.values())
    for level, row in zip(plan.levels, priced, strict=True):
        assert isinstance(level, SetUnionLevel | PrunedLevel)
        for name in ("level", "max_items", "grid_bits", "sigma_grid"):
            assert row[name] == getattr(level, name), name
        if isinstance(level, SetUnionLevel):
            assert row["threshold_grid"] == level.threshold_grid
    needed = {row["level"]: row["users_needed"] for row in priced if row["users_needed"]}
    assert needed == dict(plan.finds.users_by_length)


@pytest.mark.parametrize(
    "options",
    [
        {"max_n": 6, "epsilon": 1.0, "delta": 1e-7, "max_items": 10},
        {"max_n": 1, "epsilon": 2.0, "delta": 1e-9},
        {"max_n": 5, "epsilon": 4.0, "delta": 1e-7, "max_items": 300},
        {"max_n": 3, "epsilon": 0.1, "delta": 1e-8, "max_items": 2_000},
    ],
)
def test_ngrams_are_priced_as_the_plan_prices_them(rows: Rows, options: dict[str, Any]) -> None:
    plan = price_ngrams(**options)
    named = ", ".join(f"{name} := ?" for name in options)
    priced = rows(f"FROM dphh_price_ngrams({named})", *options.values())
    words = [level for level in plan.levels if isinstance(level, SetUnionLevel)]
    for level, row in zip(words, priced, strict=True):
        for name in ("level", "round", "max_items", "grid_bits", "sigma_grid", "threshold_grid"):
            assert row[name] == getattr(level, name), name
    assert priced[-1]["users_needed"] == plan.finds.users


@pytest.mark.parametrize(("below", "valid"), [(17, 289), (254, 4113), (2000, 6833), (5, 3), (0, 0)])
def test_thresholds_of_longer_ngrams_follow_what_was_released(
    value: Value, below: int, valid: int
) -> None:
    level = price_ngrams(max_n=6, epsilon=1.0, delta=1e-7, method="dpne").levels[3]
    assert isinstance(level, PrunedLevel)
    found = value(
        "dphh_spurious_threshold(?, ?, ?, ?)", level.sigma_grid, level.spurious, below, valid
    )
    assert found == spurious_threshold(level, below, valid)


def test_a_plan_costs_what_its_events_compose_to(value: Value) -> None:
    sigmas, deltas = [3.0, 11.0, 5.5], [1e-9, 2e-10]
    cost = compose([*(GaussianEvent(s, "") for s in sigmas), *(DeltaEvent(d, "") for d in deltas)])
    epsilon = value("dphh_cost_epsilon(?, ?, deltas := ?)", sigmas, 1e-7, deltas)
    assert epsilon == pytest.approx(cost.epsilon(1e-7), rel=1e-9)
    delta = value("dphh_cost_delta(?, ?, deltas := ?)", sigmas, 1.5, deltas)
    assert delta == pytest.approx(cost.delta(1.5), rel=1e-9)
    assert value("dphh_compose_sigmas(?)", sigmas) == pytest.approx(cost.sigma, rel=1e-13)


def test_what_fails_too_often_has_no_epsilon(value: Value) -> None:
    assert value("dphh_cost_epsilon([5.0], 1e-9, deltas := [1e-8])") == math.inf


def test_tiny_deltas_add_up(value: Value) -> None:
    assert value("dphh_compose_deltas([1e-30, 2e-30])") == pytest.approx(3e-30, rel=1e-14)
    assert value("dphh_compose_deltas([0.5, 0.5])") == 0.75
    assert value("dphh_compose_deltas([])") == 0


@pytest.mark.parametrize(
    ("holders", "theta", "p"),
    [
        (134, 20, 0.227),
        (19, 20, 0.3),
        (20, 20, 0.3),
        (10**7, 12, 1e-6),
        (500, 30, 0.4),
        (40, 1, 1.0),
    ],
)
def test_discovery_with_coins_is_the_binomials(
    value: Value, holders: int, theta: int, p: float
) -> None:
    exact = float(discovery_rate(Bernoulli(p), theta, 10, holders))
    found = value("dphh_discovery_rate(?, ?, ?, 10)", holders, theta, p)
    assert found == pytest.approx(exact, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(0, 50, 0.1), (50, 50, 0.1), (3, 10**6, 1e-6), (70, 400, 0.3), (10**6, 2 * 10**6, 0.499)],
)
def test_binomial_probabilities_keep_their_digits(value: Value, k: int, n: int, p: float) -> None:
    share = Fraction(p)
    with mpmath.workdps(DIGITS):
        chance = mpmath.mpf(share.numerator) / share.denominator
        exact = mpmath.binomial(n, k) * chance**k * (1 - chance) ** (n - k)
        assert abs(value("dphh_binomial(?, ?, ?)", k, n, p) / exact - 1) < 1e-11


@pytest.mark.parametrize(("epsilon", "delta", "length"), [(1.0, 1e-8, 10), (2.0, 1e-8, 5)])
def test_holders_needed_with_coins_are_the_plans(
    value: Value, epsilon: float, delta: float, length: int
) -> None:
    plan = price_trie(epsilon=epsilon, delta=delta, max_length=length)
    level: Any = plan.levels[0]
    assert value("dphh_holders_needed(?, ?, ?)", level.theta, level.p, length) == plan.finds.users
    assert plan.finds.users == users_needed(level.numerator, level.theta, length)
    assert value("dphh_removal_epsilon(?)", level.p) == pytest.approx(
        removal_epsilon(level.numerator), rel=1e-12
    )


@pytest.mark.parametrize(
    ("users", "epsilon", "length", "delta"),
    [
        (10**7, 4.0, 10, 2.3e-12),
        (10**5, 4.0, 1, 1e-8),
        (10**6, 2.0, 10, 1e-8),
        (658_769, 4.0, 10, 2.3e-12),
        (3 * 10**8, 1.0, 10, None),
    ],
)
def test_batches_are_priced_by_the_published_theorem(
    rows: Rows, users: int, epsilon: float, length: int, delta: float | None
) -> None:
    plan = fixed_size_plan(users, epsilon, length, delta)
    (row,) = rows(
        "FROM dphh_price_trie_batches(?, ?, ?, delta := ?)", users, epsilon, length, delta
    )
    assert (row["theta"], row["batch"]) == (plan.theta, plan.batch)
    for name in ("gamma", "fraction", "epsilon", "delta"):
        assert row[name] == pytest.approx(getattr(plan, name), rel=1e-12), name
    sampling = FixedSize(plan.users, plan.batch)
    assert row["holders_needed"] == holders_needed(sampling, plan.theta, length)


def test_no_batch_has_no_price(rows: Rows) -> None:
    assert rows("FROM dphh_price_trie_batches(10000, 0.1, 10, delta := 1e-10)") == []


# n, m and theta of Table 1 of TrieHH.
@pytest.mark.parametrize(
    ("users", "batch", "theta"), [(10**4, 1000, 10), (10**5, 3000, 11), (10**6, 20_000, 12)]
)
def test_discovery_with_batches_is_the_hypergeometrics(
    value: Value, users: int, batch: int, theta: int
) -> None:
    for holders in (theta - 1, theta, 40, 300, 1500, 4000):
        exact = float(discovery_rate(FixedSize(users, batch), theta, 10, holders))
        found = value("dphh_batch_discovery_rate(?, ?, ?, ?, 10)", holders, theta, batch, users)
        assert found == pytest.approx(exact, rel=1e-8, abs=1e-250)


def test_theta_is_the_least_that_keeps_delta(value: Value) -> None:
    for delta in (1e-3, 3.14e-7, 1e-8, 2.3e-12, 1e-100):
        assert value("dphh_triehh_theta(?)", delta) == published_theta(delta)
    for theta in (4, 10, 15, 100):
        assert value("dphh_triehh_delta(?)", theta) == pytest.approx(
            published_delta(theta), rel=1e-12
        )


@pytest.mark.parametrize("users", [10_000, 10_001, 10**6, 10**6 + 1])
def test_theta_without_a_delta_grows_with_the_users(rows: Rows, users: int) -> None:
    (row,) = rows("FROM dphh_price_trie_batches(?, 8.0, 1)", users)
    assert row["theta"] == log10_theta(users)


def test_the_subsets_of_gboard(rows: Rows) -> None:
    (row,) = rows("FROM dphh_subset_selection(1000001, 10)")
    assert row["size"] == 46
    assert row["p"] == pytest.approx(0.50329, abs=5e-6)
    assert row["q"] == pytest.approx(4.5497e-5, abs=5e-10)
    # Exactly the local epsilon: own value in or not, against another's.
    s, d, p = 1_000_001, 46, row["p"]
    assert math.log(p * (s - d) / (d * (1 - p))) == pytest.approx(10, rel=1e-12)


def test_shares_that_decay_give_the_noise_that_does(value: Value) -> None:
    shares = value("dphh_decaying_shares(4, 0.8)")
    assert math.fsum(shares) == pytest.approx(1, rel=1e-14)
    assert all(
        math.sqrt(before / after) == pytest.approx(0.8)
        for before, after in itertools.pairwise(shares)
    )
