"""Counts of public keys: what a user adds, and intervals that hold the true number of users."""

from dataclasses import dataclass, replace
from functools import cache
from math import isqrt, sqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from dphh.errors import UsageError
from dphh.privacy.counts import (
    chosen_bound,
    count_intervals,
    counts_grid_bits,
    factors_of_sizes,
    interval_margins,
    sigma_on_grid,
)
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.counts import (
    HeldHistogram,
    HeldItems,
    RoughWeights,
    Weighing,
    contributions_to_counts,
)

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
    losses = weighing.lost(weights)
    assert (weights[: most + 1] == 2**bits).all() and not losses[: most + 1].any()
    assert (held * weights**2 + losses**2 <= most * 4**bits).all()
    for each in np.unique(np.linspace(0, keys, 300).astype(int)):
        is_the_most_within(most * 4**bits, each, weights[each], losses[each], most, bits)


def added(rule, holdings, own=()):
    """What these users add, each holding a list of keys, through the function that engines call."""
    ids = [key for held in holdings for key in held]
    columns = [[len(held) for held in holdings], ids, list(own)]
    lengths, keys, caps = (pa.array([x or None], pa.list_(pa.int64())) for x in columns)
    vector = np.zeros(rule.coordinates, np.int64)
    for pair in contributions_to_counts(lengths, keys, caps, rule).to_pylist()[0]:
        vector[pair["key"]] = pair["weight"]
    return vector


HOLDINGS = st.lists(st.lists(st.integers(0, 59), min_size=1, max_size=90), min_size=1, max_size=4)


@given(
    bits=st.integers(0, 10),
    most=st.integers(1, 4_000),
    groups=st.sampled_from([1, 2, 3, 10]),
    factors=st.one_of(
        st.just(()), st.lists(st.integers(1, 20), min_size=60, max_size=60).map(tuple)
    ),
    holdings=HOLDINGS,
    own=st.lists(st.floats(0, 3), min_size=4, max_size=4),
)
@settings(max_examples=80)
def test_no_user_moves_the_vector_by_more_than_their_cap(
    bits, most, groups, factors, holdings, own
):
    """Each user alone, by factors that differ, in groups; and all together as their sum."""
    weighing, f = Weighing(60, most, bits, groups, factors), np.array(factors or [1] * 60)
    caps = [int(weighing.least_cap * 10**more) for more in own[: len(holdings)]]
    each = [added(weighing, [held], [cap]) for held, cap in zip(holdings, caps, strict=True)]
    for vector, cap, held in zip(each, caps, holdings, strict=True):
        of_user = sorted({*held})
        m, adds, reports = (f[of_user] ** 2).sum(), vector[of_user[0]] // f[of_user[0]], vector[60:]
        assert (vector**2).sum() <= cap
        assert (vector[of_user] == adds * f[of_user]).all()
        assert vector.sum() == vector[of_user].sum() + reports.sum()
        is_the_most_within(cap, m, adds, reports.sum(), min(most, (f**2).sum()), bits)
        if reports.any():  # to the loss of the user's group, or the last; it tells no less
            their = {key % groups for key in of_user}
            assert np.flatnonzero(reports).tolist() == [min(their) if len(their) == 1 else groups]
            assert (2**bits - adds) * weighing.loss_unit <= reports.sum() * 2**bits
            assert adds >= weighing.least_weight
    assert (added(weighing, holdings, caps) == sum(each)).all()


@given(
    bits=st.integers(0, 10),
    groups=st.sampled_from([1, 3]),
    factors=st.lists(st.integers(1, 9), min_size=60, max_size=60).map(tuple),
    holdings=HOLDINGS,
)
@settings(max_examples=40)
def test_rough_counts_and_the_histogram_have_norm_one(bits, groups, factors, holdings):
    rough, histogram = RoughWeights(60, bits), HeldHistogram(Weighing(60, 9, 4, groups, factors))
    for rule in (rough, histogram):
        each = [added(rule, [held]) for held in holdings]
        assert (added(rule, holdings) == sum(each)).all()
        for vector, held in zip(each, map(set, holdings), strict=True):
            if rule is rough:
                weights = {isqrt(4**bits // len(held))}
                assert {*vector[[*held]]} == weights
                assert vector.sum() == vector[[*held]].sum()
                assert (vector**2).sum() <= 4**bits
            else:
                m = sum(factors[key] ** 2 for key in held)
                several = len({key % groups for key in held}) > 1
                (at,) = np.flatnonzero(vector)
                place, tops = at - several * len(rule.tops), rule.tops
                assert vector[at] == 1 and 0 <= place < len(tops)
                assert m <= tops[place] and (place == 0 or m > tops[place - 1])


def test_a_cap_below_the_least_is_refused():
    weighing = Weighing(100, 9, 8)
    with pytest.raises(ValueError):
        weighing.weights(np.array([99]), np.array([weighing.least_cap - 1]))


@dataclass(frozen=True)
class Population:
    weighing: Weighing
    #: The keys of these columns.
    keys: np.ndarray
    #: Of each key: its users, and the sum of their weights.
    users: np.ndarray
    weights: np.ndarray
    losses: np.ndarray


def people(keys, most, bits, users, heaviest, groups=1, factors=()):
    """Users of 1 to `heaviest` keys; all hold key 0, the heaviest alone the last but one. With
    groups, two of three users hold keys of one group alone."""
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
    if groups > 1:
        holdings = [
            keys_of if user % 3 == 0 else np.unique(keys_of // groups * groups + user % groups)
            for user, keys_of in enumerate(holdings)
        ]
    held = np.array([len(keys_of) for keys_of in holdings])
    weighing = Weighing(keys, most, bits, groups, factors)
    of_users = HeldItems(len(held), np.repeat(np.arange(len(held)), held), np.concatenate(holdings))
    coordinates, what = weighing.added(of_users, np.zeros(0, np.int64))
    sums = np.bincount(coordinates, what, minlength=weighing.coordinates).astype(np.int64)
    every = np.arange(keys)
    true = np.bincount(of_users.keys, minlength=keys)
    return Population(weighing, every, true, sums[:keys], sums[keys:])


def test_a_few_exact_ends():
    noise = rounded_gaussian(500)
    found = interval_margins(500, 0.95)
    assert found.below == found.above == 980  # 1.96 sigma, and half a unit
    assert noise.tail_upper_bound(found.below + 1) <= 0.025 < noise.tail_upper_bound(found.below)
    together = interval_margins(500, 0.95, keys_at_once=1_000)
    assert together.below == pytest.approx(4.05 * 500, abs=5)
    bounded = interval_margins(500, 0.95, losses=1)
    assert bounded.below == 980
    assert bounded.deviations == pytest.approx(norm.isf(0.02))
    assert bounded.above == pytest.approx(norm.isf(0.005) * 500, abs=1)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("losses", "keys"), [(0, 1), (1, 1), (5, 1), (0, 40), (5, 40)])
def test_all_that_can_fail_of_an_interval_fails_as_seldom_as_is_said(confidence, losses, keys):
    """The key's noise on either side, and together with that of its losses."""
    sigma = 5_000
    margins = interval_margins(sigma, confidence, losses, keys)
    ends = [(end + 0.5) / sigma for end in (margins.below, margins.above)]
    each = norm.sf([*ends, *([margins.deviations] if losses else [])]).sum()
    failing = 1 - (1 - each) ** keys
    assert 0.99 * (1 - confidence) < failing < 1 - confidence


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("factor", [1, 4])
def test_a_high_end_is_missed_by_the_noise_of_its_key_and_of_its_losses_together(groups, factor):
    """Where a key has lost all that losses say: as often as is said, and hardly less."""
    weighing = Weighing(300, 9, 10, groups, (factor,) * 300)
    unit, sigma, keys = weighing.unit, 8 * weighing.unit, np.arange(300)
    lost, runs, random = 400, 400, np.random.default_rng(4)
    losses = np.zeros(weighing.losses, np.int64)
    losses[-1] = lost * weighing.loss_unit  # of users of several groups, if there are groups
    weights = np.full(300, (20_000 - lost) * factor * unit)
    missed = 0
    for _ in range(runs):
        noise = np.rint(random.normal(0, sigma, 300 + len(losses))).astype(np.int64)
        drawn = weights + noise[:300], losses + noise[300:], weighing, sigma, 0.95
        missed += (count_intervals(*drawn, keys=keys)[2] < 20_000).mean()
    # The runs' own losses move all keys of a run together; an end is cut to a whole user.
    assert 0.02 * 0.6 < missed / runs < 0.02 * 1.3


def test_factors_are_exact_fourth_roots_and_never_of_less_than_the_noise():
    rough = np.array([16_000_000, 1_000_000, 62_500, 5, -(10**6), 16_000_000])
    assert factors_of_sizes(rough, 1_000_000) == (4, 8, 8, 8, 8, 4)
    assert factors_of_sizes(rough, 62_500) == (4, 8, 16, 16, 16, 4)
    assert factors_of_sizes(np.array([0, -5]), 9) == (4, 4)


def test_k_follows_what_users_hold_and_how_many_of_them_in_one_group():
    """Half of 20,000 users hold 10 of 400 keys, half 100: few in one group, or all in several."""
    weighing = Weighing(400, 1, 0, 4)
    tops = HeldHistogram(weighing).tops

    def chosen(heavy, in_several, noise=0):
        held = np.zeros(2 * len(tops), np.int64)
        held[np.searchsorted(tops, 10)] = 10_000
        held[np.searchsorted(tops, 100) + in_several * len(tops)] += heavy
        return chosen_bound(held + noise, weighing, 5.0)

    assert 10 <= chosen(0, 0) <= tops[np.searchsorted(tops, 10)]
    assert 85 <= chosen(10_000, 0) <= 118
    # Of 1,000 such users, bounding takes from a quarter of all keys, or from all.
    assert chosen(1_000, 0) < 20 and 85 <= chosen(1_000, 1) <= 118
    # Bins that noise alone has filled or emptied change little.
    noise = np.random.default_rng(3).normal(0, 27, 2 * len(tops)).astype(np.int64)
    assert 7 <= chosen(0, 0, noise) <= 20


# Few keys and many; a bound that none meets, and one that most do; noise of few and of many users.
SETTINGS = {
    "five keys, nobody bounded": ((5, 5, 10, 400, 3), 8.0),
    "1,000 keys, nobody bounded": ((1_000, 1_000, 6, 300, 600), 120.0),
    "300 keys, most are bounded": ((300, 3, 8, 2_000, 290), 6.0),
    "1,000 keys, some are bounded": ((1_000, 100, 8, 1_000, 900), 40.0),
    "little noise": ((60, 20, 10, 500, 55), 0.4),
    "users of 1 to 10,000 keys": ((10_002, 100, 8, 1_000, 10_000), 40.0),
    "factors of 1 to 9": (
        (400, 900, 8, 1_000, 300, 1, (9, *[1 + n % 9 for n in range(399)])),
        90.0,
    ),
    "in four groups": ((400, 30, 8, 1_500, 200, 4), 25.0),
}


@cache
def setting_of(name):
    """The population, of which the first key, which all hold, the last two, and 200 others."""
    shape, sigma = SETTINGS[name]
    found = people(*shape)
    keys = np.unique(np.linspace(0, found.weighing.keys - 1, 200).astype(int))
    keys = np.union1d(keys, [found.weighing.keys - 2])
    some = replace(found, keys=keys, users=found.users[keys], weights=found.weights[keys])
    return some, sigma


def draws(found, sigma, runs, seed):
    """Noised weights and losses, run by run."""
    rng, grid = np.random.default_rng(seed), round(sigma * found.weighing.unit)
    for _ in range(runs):
        coordinates = len(found.weights) + len(found.losses)
        noise = np.rint(rng.normal(0, grid, coordinates)).astype(np.int64)
        weights, lost = np.split(noise, [len(found.weights)])
        yield found.weights + weights, found.losses + lost, grid


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
        drawn = noisy, lost, found.weighing, grid, confidence
        estimates, low, high = count_intervals(*drawn, keys=found.keys)
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
        drawn = noisy, lost, found.weighing, grid, 0.9
        _, low, high = count_intervals(*drawn, keys=found.keys, simultaneous=True)
        all_held += bool(holding(low, high, found).all())
    assert all_held / RUNS >= 0.9 - 3 * sqrt(0.09 / RUNS)


def test_sums_of_estimates_are_right_in_the_mean():
    """A sum of `users` over the groups of a rare item said 137 where the truth was 11."""
    found, sigma = setting_of("five keys, nobody bounded")
    sums = [
        count_intervals(noisy, lost, found.weighing, grid, 0.95, keys=found.keys)[0].sum()
        for noisy, lost, grid in draws(found, sigma, RUNS, seed=9)
    ]
    error = sigma * sqrt(len(found.users) / RUNS)
    assert abs(np.mean(sums) - found.users.sum()) < 4 * error


def test_below_none_an_interval_reaches_as_far_up_as_from_none():
    """It was "0 (0 to 0)" where the noise had taken a true 27: as if nobody were sure."""
    sigma, weighing = sigma_on_grid(10.0, 1, 4), Weighing(1, 1, 4)
    noisy = np.array([-60, -1, 0, 1, 60], np.int64) * weighing.unit
    drawn = noisy, np.zeros(0, np.int64), weighing, sigma, 0.95
    estimates, low, high = count_intervals(*drawn, keys=np.zeros(5, np.int64))
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
        weighing = Weighing(keys, most, counts_grid_bits(sigma))
    except UsageError:
        assert sigma > 2**16
    else:
        assert weighing.loss_unit
