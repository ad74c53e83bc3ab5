"""What TrieHH finds: exact fractions on small populations, many digits on large ones, inverses."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom
from triehh_knob import knob, knob_plan
from triehh_sizes import (
    batch_needed,
    epsilon_needed,
    frequency_needed,
    least_population,
    p_needed,
    plan_of,
    population_needed,
    unit_levels,
    unit_sizes,
)

from dphh.errors import UsageError
from dphh.mechanisms.trie.triehh import largest_batch, theorem_epsilon
from dphh.mechanisms.trie.triehh_votes import (
    Bernoulli,
    FixedSize,
    binomial_tail,
    discovery_rate,
    holders_needed,
    hypergeometric_tail,
)


def exact_tail(holders: int, users: int, batch: int, theta: int) -> Fraction:
    """Proposition 2, by whole numbers."""
    ways = sum(
        math.comb(holders, i) * math.comb(users - holders, batch - i)
        for i in range(theta, min(holders, batch) + 1)
    )
    return Fraction(ways, math.comb(users, batch))


# --- tails ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [1, 2, 7, 16])
def test_hypergeometric_tails_are_exact_on_every_small_population(users: int) -> None:
    cases = [
        (holders, batch, theta)
        for holders in range(users + 1)
        for batch in range(1, users + 1)
        for theta in range(users + 2)
    ]
    holders, batch, theta = np.array(cases).T
    tails = hypergeometric_tail(holders, users, batch, theta)
    for case, tail in zip(cases, tails, strict=True):
        exact = exact_tail(case[0], users, case[1], case[2])
        assert tail == pytest.approx(float(exact), rel=1e-12, abs=0 if exact else 1e-300), case


def test_hypergeometric_tails_by_counting_batches() -> None:
    users, holders, batch = 9, 4, 5
    batches = list(itertools.combinations(range(users), batch))
    for theta in range(1, 6):
        hits = sum(sum(user < holders for user in drawn) >= theta for drawn in batches)
        tail = float(hypergeometric_tail(holders, users, batch, theta))
        assert tail == pytest.approx(hits / len(batches), rel=1e-12)


@pytest.mark.parametrize(
    ("holders", "users", "batch", "theta"),
    [
        (1000, 10**6, 1000, 12),
        (9_999, 10**10, 10**5, 16),
        (10**6, 10**10, 10**5, 16),
        (2694, 10**7, 79_302, 12),
        (500, 10**12, 10**9, 20),
        (60, 10**5, 10**4, 60),
    ],
)
def test_hypergeometric_tails_have_eleven_digits_on_large_populations(
    holders: int, users: int, batch: int, theta: int
) -> None:
    with mpmath.workdps(60):
        exact = sum(
            mpmath.binomial(holders, i) * mpmath.binomial(users - holders, batch - i)
            for i in range(theta, min(holders, theta + 150) + 1)
        ) / mpmath.binomial(users, batch)
        tail = float(hypergeometric_tail(holders, users, batch, theta))
        assert abs(tail / exact - 1) < 1e-11


def test_binomial_tails() -> None:
    for holders, p, theta in [
        (10, 0.3, 4),
        (1000, 0.01, 20),
        (5, 0.5, 6),
        (5, 1.0, 5),
        (0, 0.2, 1),
    ]:
        exact = sum(binom.pmf(i, holders, p) for i in range(theta, holders + 1))
        assert float(binomial_tail(holders, p, theta)) == pytest.approx(exact, rel=1e-10)
    assert binomial_tail([3, 4], 0.5, 0).tolist() == [1.0, 1.0]


def test_a_fraction_of_a_holder_does_not_count() -> None:
    assert hypergeometric_tail(10.9, 100, 20, 3) == hypergeometric_tail(10, 100, 20, 3)
    assert binomial_tail(10.9, 0.2, 3) == binomial_tail(10, 0.2, 3)


def test_both_ways_to_sample_meet_in_large_populations() -> None:
    holders = np.arange(0, 3000, 50)
    fixed = discovery_rate(FixedSize(10**11, 10**9), 12, 10, holders)
    coins = discovery_rate(Bernoulli(0.01), 12, 10, holders)
    assert np.allclose(fixed, coins, rtol=1e-4, atol=1e-12)


# --- discovery ------------------------------------------------------------------------------------


def test_proposition_1_by_simulation_of_whole_runs() -> None:
    users, holders, batch, theta, levels = 60, 20, 15, 4, 3
    rng = np.random.default_rng(5)
    votes = rng.hypergeometric(holders, users - holders, batch, size=(200_000, levels))
    seen = (votes >= theta).all(axis=1).mean()
    rate = float(discovery_rate(FixedSize(users, batch), theta, levels, holders))
    assert float(rate) == pytest.approx(float(exact_tail(holders, users, batch, theta)) ** levels)
    assert seen == pytest.approx(rate, abs=5 * math.sqrt(rate / 200_000))


@pytest.mark.parametrize("sampling", [FixedSize(10**5, 2000), Bernoulli(0.02)])
def test_discovery_grows_with_holders_and_falls_with_theta_and_levels(
    sampling: FixedSize | Bernoulli,
) -> None:
    holders = np.arange(0, 3000)
    rates = discovery_rate(sampling, 12, 10, holders)
    assert (np.diff(rates) >= -1e-13).all()
    assert rates[:12].max() == 0
    assert rates[-1] > 0.99
    assert (discovery_rate(sampling, 13, 10, holders) <= rates + 1e-13).all()
    assert (discovery_rate(sampling, 12, 11, holders) <= rates).all()


# epsilon, delta, theta, and the holders found 9 times in 10 over 10 levels.
RULES = [
    (1.0, 1e-8, 12, 2694),
    (2.0, 1e-8, 12, 1412),
    (4.0, 1.5e-8, 12, 774),
    (4.0, 2.3e-12, 15, 1148),
]


@pytest.mark.parametrize(("epsilon", "delta", "theta", "holders"), RULES)
def test_what_the_papers_rule_finds(epsilon: float, delta: float, theta: int, holders: int) -> None:
    plan = plan_of(10**7, epsilon, 10, delta)
    assert plan.theta == theta
    fixed, coins = FixedSize(plan.users, plan.batch), Bernoulli(plan.batch / plan.users)
    assert holders_needed(fixed, theta, 10) == holders
    assert holders_needed(coins, theta, 10) == holders
    assert frequency_needed(plan) == holders / 10**7
    # Independently: the binomial at the formula's own sampling rate.
    p = -math.expm1(-epsilon / 10) / theta
    assert binom.sf(theta - 1, holders, p) ** 10 >= 0.9 > binom.sf(theta - 1, holders - 1, p) ** 10


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9, 0.999])
def test_inverses_invert(rate: float) -> None:
    users, theta, levels = 10**5, 11, 6
    for sampling in (FixedSize(users, 3000), Bernoulli(0.03)):
        least = holders_needed(sampling, theta, levels, rate)
        near = discovery_rate(sampling, theta, levels, [least - 1, least])
        assert near[0] < rate <= near[1]
    holders = 700
    batch = batch_needed(holders, users, theta, levels, rate)
    assert float(discovery_rate(FixedSize(users, batch), theta, levels, holders)) >= rate
    assert float(discovery_rate(FixedSize(users, batch - 1), theta, levels, holders)) < rate
    p = p_needed(holders, theta, levels, rate)
    assert float(discovery_rate(Bernoulli(p), theta, levels, holders)) >= rate
    assert float(discovery_rate(Bernoulli(p * (1 - 1e-9)), theta, levels, holders)) < rate


def test_epsilon_needed_is_the_inverse_of_holders_needed() -> None:
    for holders in (300, 1000, 5000):
        plan = epsilon_needed(10**6, holders, 1e-8, 10)
        needed = holders_needed(FixedSize(plan.users, plan.batch), plan.theta, 10)
        assert needed <= holders
        cheaper = FixedSize(plan.users, plan.batch - 1)
        assert (
            plan.batch < 1.01 * plan.users**0.5 or holders_needed(cheaper, plan.theta, 10) > holders
        )
    assert (
        epsilon_needed(10**6, 1000, 1e-8, 10).epsilon < epsilon_needed(10**6, 500, 1e-8, 10).epsilon
    )
    with pytest.raises(UsageError, match="at most n /"):
        epsilon_needed(10**6, 100, 1e-8, 10)


@pytest.mark.parametrize("delta", [None, 1e-9])
def test_population_needed_finds_the_word_and_one_much_smaller_does_not(
    delta: float | None,
) -> None:
    for frequency, epsilon in [(0.01, 1.0), (0.01, 4.0), (0.001, 2.0), (0.1, 1.0)]:
        plan = population_needed(frequency, epsilon, 10, delta)
        assert plan.epsilon <= epsilon
        holders = math.floor(frequency * plan.users)
        sampling = FixedSize(plan.users, plan.batch)
        assert holders_needed(sampling, plan.theta, 10) <= holders
        fewer = int(plan.users * 0.97)
        if delta is not None:
            less = plan_of(fewer, epsilon, 10, delta)
            rate = discovery_rate(FixedSize(fewer, less.batch), less.theta, 10, frequency * fewer)
            assert float(rate) < 0.9
    needed = [population_needed(f, 2.0, 10, delta).users for f in (0.003, 0.01, 0.03)]
    assert needed == sorted(needed, reverse=True)


def test_least_population_takes_the_first_decade_that_will_do() -> None:
    assert least_population(lambda users: float(users >= 4321)) == 4321
    assert least_population(lambda users: float(50 <= users <= 100 or users > 5000)) == 50
    with pytest.raises(UsageError, match="no population"):
        least_population(lambda users: 0.0)


# --- K --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [10**5, 10**6])
def test_the_knob_trades_epsilon_for_delta_and_has_the_theorem_on_it(users: int) -> None:
    theta, batch = (11, 317) if users == 10**5 else (12, 1000)
    plan = plan_of(users, theorem_epsilon(users, theta, batch, 1), 1, None)
    ks = np.arange(theta, users // batch)
    epsilons, deltas = knob(users, theta, batch, 1, ks)
    assert (np.diff(epsilons) < 0).all()
    assert (np.diff(deltas) > 0).all()
    # At the theorems' K the epsilon is the theorem's, and delta is the tail that Lemma 2 bounds.
    assert epsilons[-1] == pytest.approx(plan.epsilon, rel=0.01)
    assert plan.delta / 5 < deltas[-1] < plan.delta
    assert epsilons[0] == pytest.approx(math.log1p(theta))
    assert epsilons.shape == deltas.shape == ks.shape


@pytest.mark.parametrize("k", [5, 8, 20, 60])
def test_what_the_knob_says_is_true_on_single_paths(k: int) -> None:
    users, theta, batch, levels = 200, 5, 30, 4
    epsilons, deltas = knob(users, theta, batch, levels, k)
    tails = hypergeometric_tail(np.arange(users + 1), users, batch, theta)
    # Every non-increasing path of holders up to 60, and then none.
    few = np.arange(theta - 1, 61, 2)
    ks = np.array(list(itertools.combinations_with_replacement(few[::-1], levels)))
    ones = np.ones((len(ks), 1))
    with_user, without = (
        np.hstack([ones, np.cumprod(p, axis=1)]) * np.hstack([1 - p, ones])
        for p in (tails[ks + 1], tails[ks])
    )
    excess = np.maximum(with_user - math.exp(float(epsilons)) * without, 0).sum(axis=1)
    assert excess.max() <= float(deltas)


def test_the_knob_finds_rarer_words_than_the_theorems_own_k() -> None:
    for epsilon, delta, _, holders in RULES:
        plan = knob_plan(10**7, epsilon, delta, 10)
        assert plan.epsilon <= epsilon
        assert plan.delta <= delta
        epsilons, deltas = knob(10**7, plan.theta, plan.batch, 10, plan.k)
        assert (float(epsilons), float(deltas)) == (plan.epsilon, plan.delta)
        sampling = FixedSize(10**7, plan.batch)
        assert holders_needed(sampling, plan.theta, 10) == plan.holders < 0.6 * holders


def test_the_knobs_best_theta_is_the_best_by_hand() -> None:
    users, epsilon, delta, levels = 2000, 2.0, 1e-6, 3
    best = knob_plan(users, epsilon, delta, levels, most_theta=20)
    batches = np.arange(1, users + 1)
    for theta in range(2, 21):
        ks = np.arange(theta, 500)
        k = int(ks[knob(users, theta, 1, levels, ks)[0] <= epsilon][0])
        batch = int(batches[hypergeometric_tail(k + 1, users, batches, theta) <= delta][-1])
        try:
            holders = holders_needed(FixedSize(users, batch), theta, levels)
        except UsageError:
            continue
        assert best.holders <= holders
        if theta == best.theta:
            assert (k, batch, holders) == (best.k, best.batch, best.holders)


# --- unit sizes -----------------------------------------------------------------------------------


def test_larger_units_find_rarer_words() -> None:
    rows = unit_sizes(658_769, 2.0, 10)
    assert [row.levels for row in rows] == [10, 5, 4, 3]
    assert [row.holders for row in rows] == sorted((row.holders for row in rows), reverse=True)
    batches = [row.plan.batch for row in rows]
    assert batches == sorted(batches)
    assert all(row.plan.epsilon <= 2.0 for row in rows)
    # As in Figure 9, the step from 1 to 2 is the largest.
    steps = [a.holders - b.holders for a, b in itertools.pairwise(rows)]
    assert steps[0] > 2 * max(steps[1:])
    assert batches[0] == largest_batch(658_769, 12, 10, 2.0)


def test_units_round_up() -> None:
    assert [unit_levels(10, unit) for unit in (1, 2, 3, 4, 10, 11)] == [10, 5, 4, 3, 1, 1]
    with pytest.raises(UsageError, match="unit"):
        unit_levels(10, 0)


# --- refusals -------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused() -> None:
    fixed = FixedSize(1000, 20)
    with pytest.raises(UsageError, match="rate must lie"):
        holders_needed(fixed, 5, 3, 1.0)
    with pytest.raises(UsageError, match="every user holds"):
        holders_needed(fixed, 21, 3)
    with pytest.raises(UsageError, match="levels must be"):
        discovery_rate(fixed, 5, 0, 10)
    with pytest.raises(UsageError, match="holders must be"):
        batch_needed(3, 1000, 5, 3)
    with pytest.raises(UsageError, match="holders must be"):
        p_needed(3, 5, 3)
    with pytest.raises(UsageError, match="p must be"):
        Bernoulli(0.0)
    with pytest.raises(UsageError, match="at most the users"):
        discovery_rate(fixed, 5, 3, 1001)
    with pytest.raises(UsageError, match="at most the users"):
        FixedSize(1000, 1001).tail(10, 5)
    with pytest.raises(UsageError, match="K must be"):
        knob(1000, 5, 20, 1, [4, 10])
    with pytest.raises(UsageError, match="no theta"):
        knob_plan(1000, 0.01, 1e-9, 10)
    with pytest.raises(UsageError, match="frequency must be"):
        population_needed(0.0, 1.0, 10)
