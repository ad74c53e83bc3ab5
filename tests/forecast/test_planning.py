"""Prior, weights, thresholds and shares: what they promise, on tables made for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions, counts_within_purses
from dphh.mechanisms.ngrams.forecast.plan_round import (
    THRESHOLDS,
    Rows,
    mass_distributions,
    mass_grid,
    plan_round,
    tails_by_signs,
    weight_scaling,
    widened_posteriors,
)
from dphh.mechanisms.ngrams.forecast.purses import (
    FIRST_OF_TWO_ROUNDS_PART,
    LATE_PURSES_PART,
    WORD_ROUND_PARTS,
    PursesSeen,
    counted_in_full,
    finds_in_full,
    gain_of,
    mean_freed,
    one_round_part,
    parts_by_climb,
    parts_of_round_2,
    reserve_for_counts,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.ngrams.price import price_ngrams
from dphh.mechanisms.ngrams.run import full_purse
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import (
    LIST_SIZE_BIN_STARTS,
    ONE_PART,
    Reserve,
    count_weight,
    round_1_weight,
)


def histogram(masses: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    noised = masses / sigma + np.random.default_rng(seed).normal(size=len(masses))
    return np.histogram(noised, np.r_[BIN_STARTS_IN_SIGMAS, np.inf])[0].astype(float)


def test_the_prior_knows_how_many_hold_something():
    sigma, rng = 10.0, np.random.default_rng(6)
    some = np.exp(rng.normal(np.log(60), 0.5, 4_000))
    counts = histogram(np.r_[np.zeros(100_000), some], sigma, 7)
    prior = mass_distributions(counts[None], np.array([3.0]), sigma, some.sum())
    grid = prior.masses
    assert prior.by_class.sum() == pytest.approx(1)
    found = prior.by_class[0] * counts.sum()
    assert found[grid > 30].sum() == pytest.approx((some > 30).sum(), rel=0.15)
    seen = grid > 30
    assert found[seen] @ grid[seen] == pytest.approx(some[some > 30].sum(), rel=0.15)


def planned(budget: float, sigma: float = 3.0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(8)
    masses = mass_grid(6.0, 1e4)
    posterior = rng.dirichlet(np.full(len(masses), 0.2), 60)
    counts = rng.integers(0, 500, 60).astype(float)
    nulls = np.exp(rng.normal(0, 4, 60))
    rows = Rows(np.arange(60), counts, nulls, posterior)
    plan = plan_round(rows, masses, sigma, budget, lambda g: g)
    return plan, counts, nulls, widened_posteriors(posterior), masses


@pytest.mark.parametrize("budget", [0.05, 1.0, 30.0])
def test_planned_tails_keep_the_budget(budget):
    plan, _, nulls, _, _ = planned(budget)
    assert (nulls * plan.tails).sum() <= budget
    assert plan.tails.max() <= ndtr(-THRESHOLDS[0])


def test_weights_have_a_mass_weighted_mean_square_of_one_at_most():
    plan, counts, _, posterior, masses = planned(5.0)
    mass = counts * (posterior @ masses)
    assert 0.8 <= (mass * plan.weights**2).sum() / mass.sum() <= 1.0 + 1e-9


def test_weight_counts_in_proportion_in_long_lists_and_a_list_of_one_gram_has_no_more_to_give():
    g = np.array([0.1, 1.0, 9.0])
    for size, given_to_each in ((0, [1, 1, 1]), (-1, g)):
        lists = np.zeros(len(LIST_SIZE_BIN_STARTS))
        lists[size] = 100
        assert weight_scaling(lists)(g) == pytest.approx(given_to_each, rel=0.01)


def test_a_weight_in_a_short_list_gets_what_its_holder_spends():
    """A user whose squares sum to less than `saturation` spends that part less."""
    lists = np.zeros(len(LIST_SIZE_BIN_STARTS))
    lists[0] = 100
    g = np.array([0.5, 1.0, 2.0, 9.0])
    assert weight_scaling(lists, 4.0)(g) == pytest.approx([0.25, 0.5, 1.0, 1.0])


@given(
    st.integers(2, 9), st.integers(0, 8), st.floats(0, 1e7), st.floats(1, 4), st.integers(0, 10**6)
)
def test_parts_of_a_purse_are_parts_and_who_climbs_further_keeps_more(
    level, above, finds, growth, below
):
    parts = parts_of_round_2(level, level + above, finds, finds * growth, below)
    assert len(parts) == above + 1
    assert all(0 < part <= 1 for part in parts)
    assert parts == sorted(parts, reverse=True)
    assert parts[0] >= 0.5


def test_parts_go_by_worths_of_what_can_still_be_reached():
    assert parts_by_climb([3.0, 1.0, 2.0]) == [1.0, 3 / 4, 3 / 6]
    assert gain_of(100, 200) == 1.0 and gain_of(100, 100) == 0.05 and gain_of(0, 0) == 0.05
    assert gain_of(100, 100 * 2**0.5) == pytest.approx(0.5)


def test_a_mean_of_purses_is_that_of_the_noised_numbers():
    """Two climbs, in eighths: 30 with the least, 10 with the most."""
    counts = np.zeros(16)
    counts[0], counts[15] = 30, 10
    seen = PursesSeen(counts, 800.0, 400.0)
    assert seen.mean() == pytest.approx((30 * 50 + 10 * 750) / 40)
    assert seen.mean(less=100) == pytest.approx((30 * 0 + 10 * 650) / 40)
    assert seen.mean(least_climb=1) == 750
    assert seen.mean_spent([ONE_PART, ONE_PART // 2]) == pytest.approx((30 * 50 + 10 * 375) / 40)
    seen.after_spending([0, ONE_PART], 0.8)
    assert seen.mean() == pytest.approx((30 * 50 + 10 * 150) / 40)
    nothing = PursesSeen(np.zeros(16), 800.0, 400.0)
    assert nothing.mean() == 400 and nothing.mean(less=500) == 1.0
    alike = PursesSeen(counts, 800.0, 800.0)
    assert alike.mean(less=200) == 600


@pytest.mark.parametrize("max_items", [1, 4, 100])
@pytest.mark.parametrize("max_n", [2, 20])
def test_a_plan_that_is_priced_can_run_at_any_epsilon(max_n, max_items):
    """What a user with a full purse spends in round 1 is enough for a weight above 0, on a gram and
    on the numbers of users; and no purse overflows where it is multiplied."""
    priced = 0
    for epsilon in np.geomspace(1e-4, 60, 19).tolist():
        try:
            price = price_ngrams(max_n=max_n, max_items=max_items, epsilon=epsilon, delta=1e-6)
        except UsageError as refused:
            assert "larger epsilon" in str(refused)
            continue
        above = [level for level in price.levels if isinstance(level, ForecastLevel)]
        used = WORD_ROUND_PARTS[0] + one_round_part(max_n)
        purse = full_purse(above[0], 1 - used / max_n)
        first = int(FIRST_OF_TWO_ROUNDS_PART * above[0].whole / max_n)
        assert 0 < first < purse
        assert count_weight(first) >= 1 and round_1_weight(first, 1) >= 1
        assert int(LATE_PURSES_PART * above[0].whole) >= 1
        assert purse * max(ONE_PART, 2 * 64**2) < 2**62
        priced += 1
    assert priced >= 5


ROWS = [
    ((5,), (0.2,)),
    ((3, 100), (0.25, 0.001)),
    ((1_000, 20, 5), (1e-3, 0.05, 0.25)),
    ((10**6, 500), (1e-6, 0.01)),
    ((2, 2, 2, 2), (0.25, 0.25, 0.01, 1e-4)),
]


@pytest.mark.parametrize(("nulls", "planned"), ROWS)
@pytest.mark.parametrize("budget", [0.05, 1.0, 20.0])
def test_the_rule_of_signs_keeps_the_budget(nulls, planned, budget):
    rng = np.random.default_rng(4)
    number, tails = np.array(nulls), np.array(planned)
    spurious = []
    for _ in range(4_000):
        nonpositive = rng.binomial(number, 0.5)
        passing = 2 * tails_by_signs(tails, nonpositive, budget)
        spurious.append(rng.binomial(number - nonpositive, passing).sum())
    assert np.mean(spurious) <= budget + 4 * np.std(spurious) / len(spurious) ** 0.5


def test_finds_are_counted_for_more_where_users_hold_more_and_never_for_less():
    """By noised numbers alone. What users keep for a find never grows, so what a round left for the
    least number of finds is enough in the end."""
    level, nobody = ForecastLevel(2, 2.0, 4_000, 0.01), np.zeros(len(LIST_SIZE_BIN_STARTS))

    def of(now: int, *users: tuple[int, float]) -> int:
        held = nobody.copy()
        for finds, number in users:
            held[finds == LIST_SIZE_BIN_STARTS] = number
        return finds_in_full(133, now, held, level, int(0.8 * level.whole))

    assert of(133) == of(133, (16, 1e5)) == 133
    many = of(133, (16, 1e3), (512, 1e3))
    assert many == int(133 * 512 * 1.15 / 40)  # a tenth of users, or fewer, hold more
    assert of(many, (16, 1e5)) == of(many) == many
    # A few of many users hold more, whom bounding would remove from all that they hold.
    assert 133 < of(133, (16, 1e6), (256, 5e3)) < many
    for now, then in ((133, many), (133, 134), (1, 2**20)):
        before, after = (Reserve(int(level.whole / n) + 1, 16, n) for n in (now, then))
        assert after.each <= before.each
    kept = Reserve(90, 4, 30)
    freed = mean_freed(nobody + 10.0, kept, Reserve(45, 4, 60))
    sizes = [int(x * (1.15 if x > 4 else 1)) for x in LIST_SIZE_BIN_STARTS.tolist()]
    by_hand = [90 * min(max(x, 4), 30) - 45 * min(max(x, 4), 60) for x in sizes]
    assert freed == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("max_n", [2, 3, 6])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.999])
def test_who_may_hold_any_number_of_finds_spends_a_part_of_a_purse(max_n, share):
    """The part that words took of the whole: who spends nothing in round 1 is in no bin, and a
    run would not see that its users hold more finds than was planned."""
    level = ForecastLevel(2, 2.0, 4_000, 0.01)
    purse = full_purse(level, 1 - 1 / max_n)
    counting = counts_within_purses(level.total_sigma, CountsOptions(share))
    for in_full in (counting.within_purses, 10 * counting.within_purses):
        reserve = reserve_for_counts(level, purse, counting, in_full)
        kept = reserve.of_users(np.array([0, 10**9]))
        assert counting.max_items * reserve.each <= kept[0] <= kept[1]
        assert kept[1] <= 1.02 * purse * (1 - 1 / max_n)  # a find costs a whole unit more


def test_a_count_of_more_finds_has_the_noise_that_it_pays_for():
    counting = counts_within_purses(3.0, CountsOptions(0.3))
    for in_full in (133, 1_000, 12_345):
        chosen = counted_in_full(counting, in_full)
        assert chosen.within_purses == in_full
        per_find = chosen.relative_sigma * chosen.max_items**0.5
        assert 3.0 * in_full**0.5 <= per_find <= 3.0 * in_full**0.5 * 1.01
