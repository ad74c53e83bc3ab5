"""Differences of two noised counts: how often their intervals miss, also of what is said to have
risen, and of what was chosen first."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dphh.privacy.changes import NoisedCounts, changes, has_most, total
from dphh.privacy.counts import chosen_intervals
from dphh.udfs.rules.counts import Weighing

NONE = np.zeros(0, np.int64)
RUNS = 300
#: What is promised, of each interval and of what is said to have changed.
ERROR = 0.05


def drawn(random, true, weighing, sigma):
    """Noised weights of counts that bounding took nothing from."""
    noise = np.rint(random.normal(0, sigma, len(true))).astype(np.int64)
    return np.asarray(true) * weighing.unit + noise


def noised(weights, weighing, sigma, losses=NONE):
    rounded = (weights + weighing.unit // 2) // weighing.unit
    return NoisedCounts(rounded, losses, weighing, sigma, np.arange(len(rounded)))


def missed(found, true):
    return (true < found.low) | (found.high < true)


@pytest.mark.parametrize("moved", [0, 3, 200])
def test_each_interval_holds_and_of_what_is_said_to_have_changed_little_is_wrong(moved):
    """Of 400 things some of which changed by a little more than noise."""
    random = np.random.default_rng(5)
    coarse, fine = Weighing(400, 400, 4), Weighing(400, 400, 8)
    before = random.integers(0, 500, 400)
    now = before + np.where(np.arange(400) < moved, 60, 0)
    misses, wrong, told = np.zeros(400), [], 0
    for _ in range(RUNS):
        later, earlier = (
            noised(drawn(random, true, weighing, users * weighing.unit), weighing,
                   users * weighing.unit)
            for true, weighing, users in ((now, coarse, 12), (before, fine, 8))
        )  # fmt: skip
        found = changes(later, earlier, 400, 1 - ERROR)
        misses += missed(found, now - before)
        said = found.sign != 0
        wrong.append((missed(found, now - before) & said).sum() / max(said.sum(), 1))
        told += (found.sign > 0)[:moved].sum()
        assert (found.low <= found.difference).all() and (found.difference <= found.high).all()
    assert misses.mean() / RUNS <= ERROR
    assert np.mean(wrong) <= ERROR + 3 * np.std(wrong) / sqrt(RUNS)
    if moved:
        assert told > 0.5 * moved * RUNS


def test_the_rule_is_the_largest_of_all_and_its_intervals_are_the_gaussians():
    """Beside every possible R, with SciPy's tails, of intervals that are rounded to users."""
    random = np.random.default_rng(2)
    weighing, sigma = Weighing(50, 50, 6), 20 * 64
    for _ in range(30):
        now = drawn(random, random.integers(0, 200, 50), weighing, sigma)
        before = drawn(random, random.integers(0, 200, 50), weighing, sigma)
        sides = noised(now, weighing, sigma), noised(before, weighing, sigma)
        difference = sides[0].estimates - sides[1].estimates

        def ends(many, difference=difference):
            reach = norm.isf(ERROR / 2 * many / 70) * 20 * sqrt(2) + 1 + 2 / (2 * 64)
            return np.ceil(difference - reach), np.floor(difference + reach)

        def told(many, ends=ends):
            low, high = ends(many)
            return np.count_nonzero((low > 0) | (high < 0))

        found = changes(*sides, 70, 1 - ERROR)
        count = np.count_nonzero(found.sign)
        assert count == max((many for many in range(1, 51) if told(many) >= many), default=0)
        low, high = ends(max(count, 1))
        of_all, told_all = ends(50), found.sign != 0
        low = np.where(told_all, low, np.minimum(of_all[0], 0))
        high = np.where(told_all, high, np.maximum(of_all[1], 0))
        assert found.low.tolist() == low.tolist() and found.high.tolist() == high.tolist()


@pytest.mark.parametrize("true", [(100, 100, 100, 100), (60, 20, 20, 20), (200, 90, 60, 50)])
def test_half_is_not_called_most(true):
    """Of many things that are alike: no group has half; one has exactly half."""
    random = np.random.default_rng(8)
    weighing, users = Weighing(200, 200, 8), 8
    true = np.repeat(np.array(true)[:, None], 200, axis=1)
    wrong = 0
    for _ in range(RUNS // 10):
        counts = [
            noised(drawn(random, of, weighing, users * 256), weighing, users * 256) for of in true
        ]
        wrong += has_most(counts, 1 - ERROR).any(axis=0).sum()
    assert wrong / (RUNS // 10 * 200) <= ERROR
    counts = [NoisedCounts(np.array([number]), NONE, weighing, users * 256, np.zeros(1, int))
              for number in (900, 5, 0, -3)]  # fmt: skip
    assert has_most(counts, 1 - ERROR).ravel().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("of_what_was_shown", [False, True])
def test_after_min_users_of_both_or_of_the_list_of_the_other(of_what_was_shown):
    """Most things lie just below `min_users`: what is shown is high by its noise, and falls back
    in a count of its own. That is no change."""
    random = np.random.default_rng(6)
    true = np.where(np.arange(600) < 560, 45, 400)
    weighing, sigma, families = Weighing(600, 600, 6), 10 * 64, [np.zeros(600, int)]
    wrong, misses = [], []
    for _ in range(RUNS // 3):
        now, before = (drawn(random, true, weighing, sigma) for _ in "ab")
        how = NONE, weighing, sigma, 1 - ERROR, 30, families
        shown, _ = chosen_intervals(now, *how)
        if not of_what_was_shown:
            shown = np.intersect1d(shown, chosen_intervals(before, *how)[0])
        later, earlier = (noised(each[shown], weighing, sigma) for each in (now, before))
        found = changes(later, earlier, 600, 1 - ERROR)
        assert len(shown) >= 40
        missing = missed(found, 0)
        wrong.append(missing[found.sign != 0].sum() / max(np.count_nonzero(found.sign), 1))
        misses.append(missing.mean())
    assert np.mean(wrong) <= ERROR + 3 * np.std(wrong) / sqrt(RUNS)
    assert np.mean(misses) <= ERROR


def test_what_bounding_took_is_allowed_for_on_its_own_side():
    """Half of all users hold much more than counts in full; then nobody does."""
    random = np.random.default_rng(7)
    keys, most, users = 40, 4, 1_000
    weighing, sigma = Weighing(keys, most, 8), 3 * 256
    held = np.where(np.arange(users) < users // 2, keys, 1)
    adds = weighing.weights(held, np.full(users, weighing.least_cap))
    true = np.full(keys, users // 2) + np.where(np.arange(keys) == 0, users // 2, 0)
    weights = np.full(keys, adds[:500].sum()) + np.where(np.arange(keys) == 0, adds[500:].sum(), 0)
    losses = weighing.lost(adds[:1]) * 500
    few = Weighing(keys, keys, 8)
    for bounded_is_later in (True, False):
        misses = np.zeros(keys)
        for _ in range(RUNS):
            noise = np.rint(random.normal(0, sigma, keys + len(losses))).astype(np.int64)
            bounded = noised(weights + noise[:keys], weighing, sigma, losses + noise[keys:])
            plain = noised(drawn(random, true, few, sigma), few, sigma)
            sides = (bounded, plain) if bounded_is_later else (plain, bounded)
            found = changes(*sides, keys, 1 - ERROR)
            misses += missed(found, 0)
            one_sided = found.low if bounded_is_later else -found.high
            assert (one_sided < 0).mean() > 0.5  # the other end has no part for losses
        assert misses.max() / RUNS <= ERROR + 3 * sqrt(ERROR / RUNS)


def test_losses_have_their_part_of_the_error_once():
    weighing = Weighing(40, 4, 8)
    some = NoisedCounts(np.array([100]), np.array([9_000]), weighing, 700, np.zeros(1, int))
    assert (some.lost_users(0.01, 1 / 400) > some.lost_users(0.01, 1 / 40)).all()
    assert (some.lost_users(1e-6, 1 / 400) >= some.lost_users(0.01, 1 / 400)).all()


def test_losses_of_all_groups_hold_at_once():
    """Of two losses each: one of the group's own, and that of users of several."""
    weighing, sigma = Weighing(300, 4, 8, 3), 700
    many = np.array([10**6])
    found = NoisedCounts(many, np.zeros(4, np.int64), weighing, sigma, np.zeros(1, int))
    margin = norm.isf(0.01 / 3) * sqrt(2) * sigma / weighing.loss_unit
    assert margin < found.lost_users(1e-6, 0.01)[0] < margin + 4 / weighing.loss_unit


def test_a_sum_of_groups_holds_as_often_as_it_says_and_is_no_wider_than_its_noise():
    random = np.random.default_rng(8)
    weighing, sigma = Weighing(400, 400, 6), 12 * 64
    true = random.integers(0, 300, (4, 400))
    missing = []
    for _ in range(RUNS // 3):
        groups = [noised(drawn(random, each, weighing, sigma), weighing, sigma) for each in true]
        users, low, high = total(groups, 1 - ERROR)
        missing.append(((low > true.sum(0)) | (true.sum(0) > high)).mean())
        assert (low <= users).all() and (users <= high).all() and (low >= 0).all()
    assert 0.6 * ERROR <= np.mean(missing) <= ERROR


def test_a_sums_high_end_is_missed_by_all_its_noises_together_where_all_was_lost():
    """Each count has lost all that its group's loss says, and that of several groups."""
    random, keys, lost = np.random.default_rng(9), 300, 200
    weighing, sigma = Weighing(4 * keys, 4, 10, 4), 6 * 1024
    weights = np.full(4 * keys, (5_000 - 2 * lost) * weighing.unit)
    losses, missed_by_losses = np.full(5, lost * weighing.loss_unit), 0
    for _ in range(RUNS):
        noise = np.rint(random.normal(0, sigma, 4 * keys + 5)).astype(np.int64)
        noised_weights, noised_losses = weights + noise[:-5], losses + noise[-5:]
        groups = [
            NoisedCounts((noised_weights[at] + 512) // 1024, noised_losses, weighing, sigma, at)
            for at in (np.arange(group, 4 * keys, 4) for group in range(4))
        ]
        _, _, high = total(groups, 1 - ERROR)
        missed_by_losses += (high < 20_000).mean()
    # The losses' noise moves all sums of a run together.
    assert 0.1 * 0.3 * ERROR < missed_by_losses / RUNS < 1.6 * 0.3 * ERROR
