"""Counts of public keys: what a user adds, and intervals that hold the true number of users."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, isqrt, sqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom, norm

from dphh.errors import UsageError
from dphh.privacy.counts import (
    IntervalMargins,
    count_intervals,
    counts_grid_bits,
    interval_margins,
    most_removed_by_bounding,
    sigma_on_grid,
)
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.counts import Weighing, contributions_to_counts

SHAPES = [(1, 1, 0), (2, 1, 4), (50, 1, 10), (50, 7, 3), (999, 30, 8), (10_000, 100, 10), (9, 9, 5)]
RUNS = 2_000


def is_the_most_within(cap, held, adds, reports, most, bits):
    """What a user of `held` keys adds keeps to the cap; no larger weight would."""
    assert held * adds**2 + reports**2 <= cap
    for more in range(adds + 1, 2**bits + 1):
        lost = -(isqrt(most * 4**bits) * (more - 2**bits) // 2**bits)
        assert held * more**2 + lost**2 > cap


@pytest.mark.parametrize("keys, most, bits", SHAPES)
def test_whoever_comes_or_goes_moves_the_whole_vector_by_the_priced_norm_at_most(keys, most, bits):
    weighing = Weighing(keys, most, bits)
    held = np.arange(keys + 1)
    weights = weighing.weights(held, np.full(keys + 1, most * 4**bits))
    losses = weighing.losses(weights)
    assert (weights[: most + 1] == 2**bits).all() and not losses[: most + 1].any()
    assert (held * weights**2 + losses**2 <= most * 4**bits).all()
    for each in np.unique(np.linspace(0, keys, 300).astype(int)):
        is_the_most_within(most * 4**bits, each, weights[each], losses[each], most, bits)


@given(
    bits=st.integers(0, 10),
    most=st.integers(1, 400),
    users=st.lists(
        st.tuples(st.integers(1, 2_000), st.floats(0, 3), st.integers(0, 100)),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=100)
def test_no_user_moves_the_vector_by_more_than_their_cap(bits, most, users):
    """Through the function that engines call: each user alone, and all together as their sum."""
    keys = max(held for held, _, _ in users) + 1
    weighing = Weighing(keys, most, bits)
    caps = [int(weighing.least_cap * 10**more) + odd for _, more, odd in users]
    holdings = [[*range(held), 0] for held, _, _ in users]  # key 0 twice

    def added(who):
        lengths, own = [len(holdings[i]) for i in who], [caps[i] for i in who]
        ids = [key for i in who for key in holdings[i]]
        columns = [pa.array([x], pa.list_(pa.int64())) for x in (lengths, ids, own)]
        found = contributions_to_counts(*columns, weighing=weighing).to_pylist()[0]
        vector = np.zeros(keys + weighing.class_count, np.int64)
        vector[[pair["key"] for pair in found]] = [pair["weight"] for pair in found]
        return vector

    each = [added([who]) for who in range(len(users))]
    for vector, cap, (held, _, _) in zip(each, caps, users, strict=True):
        adds, reports = int(vector[0]), int(vector[keys:].sum())
        assert (vector[:held] == adds).all() and not vector[held:keys].any()
        is_the_most_within(cap, held, adds, reports, min(most, keys), bits)
        if reports:  # to the class of the weight, whose loss ratio bounds what each key lost
            ((of,),) = np.nonzero(vector[keys:])
            parts = Fraction(19, 20), Fraction(7, 10)
            least_of_classes = [
                least for part in parts if (least := ceil(part * 2**bits)) < 2**bits
            ]
            assert of == sum(adds < least for least in least_of_classes)
            ratio = weighing.loss_ratios[of]
            assert not adds or 2**bits - adds <= ratio * adds * (1 + 1e-12)
            assert (2**bits - adds) * weighing.loss_unit <= reports * 2**bits
    assert (added(range(len(users))) == sum(each)).all()


def test_a_cap_below_the_least_is_refused():
    weighing = Weighing(100, 9, 8)
    with pytest.raises(AssertionError):
        weighing.weights(np.array([99]), np.array([weighing.least_cap - 1]))


@dataclass(frozen=True)
class Population:
    weighing: Weighing
    #: Of each key: its users, and the sum of their weights.
    users: np.ndarray
    weights: np.ndarray
    #: Of each class: the sum of its users' losses.
    lost: np.ndarray


def people(keys, most, bits, users, heaviest):
    """Users of 1 to `heaviest` keys; all hold key 0, the heaviest alone the last but one."""
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(0, np.log(heaviest + 1), users)).astype(int)
    sizes[0] = heaviest
    holdings = [np.append(0, 1 + rng.permutation(max(keys - 3, 0))[: size - 1]) for size in sizes]
    if heaviest > most:
        heavy = [user for user, keys_of in enumerate(holdings) if len(keys_of) > most]
        holdings = [
            np.append(keys_of, keys - 2) if user in heavy and len(keys_of) < keys - 1 else keys_of
            for user, keys_of in enumerate(holdings)
        ]
    weighing = Weighing(keys, most, bits)
    held = np.array([len(keys_of) for keys_of in holdings])
    owner, key = np.repeat(np.arange(len(held)), held), np.concatenate(holdings)
    weights = weighing.weights(held, np.full(len(held), weighing.least_cap))
    of_owner, bounded = weights[owner].astype(float), weights[weights < weighing.unit]
    lost = np.bincount(
        weighing.classes(bounded), weighing.losses(bounded), minlength=weighing.class_count
    )
    return Population(
        weighing,
        np.bincount(key, minlength=keys),
        np.bincount(key, of_owner, minlength=keys).astype(np.int64),
        lost.astype(np.int64),
    )


def test_the_most_that_can_be_lost_is_the_optimum_of_its_linear_program():
    weighing, rng = Weighing(900, 30, 8), np.random.default_rng(1)
    margins = IntervalMargins(0, 0, (100, 200, 250))
    for _ in range(20):
        lost = rng.integers(-200, 20_000, weighing.class_count)
        weight = int(rng.integers(0, 6_000))
        at_most = np.maximum(np.cumsum(lost[::-1]) + margins.lost, 0)
        upper = at_most * 256 / weighing.loss_unit
        best = linprog(
            -np.ones(weighing.class_count),
            A_ub=np.vstack(
                # the k uppermost
                [np.tri(weighing.class_count)[:, ::-1], 1 / weighing.loss_ratios]
            ),
            b_ub=np.append(upper, weight),
        )
        said = most_removed_by_bounding(np.array([weight]), lost, weighing, margins)[0]
        assert -best.fun <= said <= -best.fun + 2.1


def test_a_few_exact_ends():
    noise = rounded_gaussian(500)
    found = interval_margins(500, 0.95)
    assert found.below == found.above == 980  # 1.96 sigma, and half a unit
    assert noise.tail_upper_bound(found.below + 1) <= 0.025 < noise.tail_upper_bound(found.below)
    together = interval_margins(500, 0.95, keys_at_once=1_000)
    assert together.below == pytest.approx(4.05 * 500, abs=5)
    bounded = interval_margins(500, 0.95, loss_count=4)
    assert bounded.below == 980 and 980 < bounded.above < 1_030
    assert bounded.lost[3] == pytest.approx(2 * bounded.lost[0], rel=0.01)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("classes", "keys"), [(0, 1), (1, 1), (9, 1), (0, 40), (9, 40)])
def test_all_that_can_fail_of_an_interval_fails_as_seldom_as_is_said(confidence, classes, keys):
    """The key's noise on either side, and the sum of any of the losses' noises."""
    sigma = 5_000
    margins = interval_margins(sigma, confidence, classes, keys)
    of_key = sum(norm.sf((end + 0.5) / sigma) for end in (margins.below, margins.above))
    of_losses = sum(
        norm.sf(most / (sigma * sqrt(k))) for k, most in enumerate(margins.lost, start=1)
    )
    failing = of_losses + 1 - (1 - of_key) ** keys
    assert len(margins.lost) == classes
    assert 0.99 * (1 - confidence) < failing < 1 - confidence


# Few keys and many; a bound that none meets, and one that most do; noise of few and of many users.
SETTINGS = {
    "five keys, nobody bounded": ((5, 5, 10, 400, 3), 8.0),
    "1,000 keys, nobody bounded": ((1_000, 1_000, 6, 300, 600), 120.0),
    "300 keys, most are bounded": ((300, 3, 8, 2_000, 290), 6.0),
    "1,000 keys, some are bounded": ((1_000, 100, 8, 1_000, 900), 40.0),
    "little noise": ((60, 20, 10, 500, 55), 0.4),
    "users of 1 to 10,000 keys": ((10_002, 100, 8, 1_000, 10_000), 40.0),
}


@cache
def setting_of(name):
    """The population, of which the first key, which all hold, the last two, and 200 others."""
    shape, sigma = SETTINGS[name]
    found = people(*shape)
    keys = np.unique(np.linspace(0, found.weighing.keys - 1, 200).astype(int))
    keys = np.union1d(keys, [found.weighing.keys - 2])
    return Population(found.weighing, found.users[keys], found.weights[keys], found.lost), sigma


def draws(found, sigma, runs, seed):
    """Noised weights and losses, run by run."""
    rng, grid = np.random.default_rng(seed), round(sigma * found.weighing.unit)
    for _ in range(runs):
        noise = np.rint(rng.normal(0, grid, len(found.weights) + len(found.lost))).astype(np.int64)
        weights, lost = np.split(noise, [len(found.weights)])
        yield found.weights + weights, found.lost + lost, grid


def holding(low, high, found):
    return (low <= found.users) & (found.users <= high)


@pytest.mark.parametrize(
    "name, confidence",
    [*((name, 0.95) for name in SETTINGS), *((name, 0.5) for name in list(SETTINGS)[:3])],
)
def test_each_interval_holds_the_truth_as_often_as_it_says(name, confidence):
    found, sigma = setting_of(name)
    held = np.zeros(len(found.users))
    for noisy, lost, grid in draws(found, sigma, RUNS, seed=7):
        estimates, low, high = count_intervals(noisy, lost, found.weighing, grid, confidence)
        assert (low <= np.maximum(estimates, 0)).all() and (estimates <= high).all()
        held += holding(low, high, found)
    # The most luckless of these keys, and their mean, which the losses' noise moves as a whole.
    assert held.min() >= binom.ppf(0.001 / len(held), RUNS, confidence)
    assert held.mean() / RUNS >= confidence - 2 * sqrt(confidence * (1 - confidence) / RUNS)
    if name == "five keys, nobody bounded":  # nothing is wasted, but for the whole number's sake
        assert held[0] / RUNS <= confidence + 1 / (2 * sigma)


@pytest.mark.parametrize("name", SETTINGS)
def test_all_intervals_hold_at_once_as_often_as_they_say(name):
    found, sigma = setting_of(name)
    all_held = 0
    for noisy, lost, grid in draws(found, sigma, RUNS, seed=8):
        _, low, high = count_intervals(noisy, lost, found.weighing, grid, 0.9, simultaneous=True)
        all_held += bool(holding(low, high, found).all())
    assert all_held / RUNS >= 0.9 - 3 * sqrt(0.09 / RUNS)


def test_sums_of_estimates_are_right_in_the_mean():
    """A sum of `users` over the groups of a rare item said 137 where the truth was 11."""
    found, sigma = setting_of("five keys, nobody bounded")
    sums = [
        count_intervals(noisy, lost, found.weighing, grid, 0.95)[0].sum()
        for noisy, lost, grid in draws(found, sigma, RUNS, seed=9)
    ]
    error = sigma * sqrt(len(found.users) / RUNS)
    assert abs(np.mean(sums) - found.users.sum()) < 4 * error


def test_below_none_an_interval_reaches_as_far_up_as_from_none():
    """It was "0 (0 to 0)" where the noise had taken a true 27: as if nobody were sure."""
    sigma, weighing = sigma_on_grid(10.0, 1, 4), Weighing(1, 1, 4)
    noisy = np.array([-60, -1, 0, 1, 60], np.int64) * weighing.unit
    estimates, low, high = count_intervals(noisy, np.zeros(0, np.int64), weighing, sigma, 0.95)
    assert estimates.tolist() == [-60, -1, 0, 1, 60]
    assert low.tolist()[:4] == [0, 0, 0, 0] and low[4] > 30
    assert len({*high.tolist()[:3]}) == 1 and 15 < high[0] < 30
    assert high[3] - high[2] == 1


def test_noise_on_the_grid_is_never_less_than_was_priced():
    for sigma, most, bits in [(4.0, 100, 8), (4.8087, 7, 10), (0.3, 1, 0), (3.0, 10_000, 3)]:
        grid = sigma_on_grid(sigma, most, bits)
        exact = sigma * sqrt(most) * 2**bits
        assert exact * (1 - 1e-12) <= grid <= exact + 1 + exact * 1e-12


@pytest.mark.parametrize("sigma", [2.0**15, 2.0**16, 2.0**16 + 1, 2.0**17])
@pytest.mark.parametrize("most", [1, 3, 4, 100])
@pytest.mark.parametrize("keys", [1, 4, 8])
def test_a_grid_on_which_nothing_could_be_told_lost_is_refused_before_anything_is_paid(
    sigma, most, keys
):
    try:
        weighing = Weighing(keys, most, counts_grid_bits(sigma, keys, most))
    except UsageError:
        assert sigma > 2**16
    else:
        assert weighing.loss_unit
