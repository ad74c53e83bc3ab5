"""Counts of which those are shown whose intervals begin high: which, and with which intervals."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dphh.privacy.counts import chosen_intervals
from dphh.udfs.rules.counts import Weighing

#: The error that is promised, and the part of it for low ends.
ERROR, TOO_HIGH = 0.05, 0.025
RUNS = 200


def chosen(noised, lost, weighing, sigma, least, families):
    shown, (users, low, high) = chosen_intervals(
        noised, lost, weighing, sigma, 1 - ERROR, least, families
    )
    return shown, users, low, high


@cache
def margin(sigma, failing):
    """The least m for which round(N(0, sigma^2)) > m is as seldom as that."""
    return ceil(norm.isf(failing) * sigma - 0.5)


def low_ends(noised, q, unit, sigma):
    """By SciPy's normal tails, for each count's own q."""
    return np.array(
        [
            ceil((weight - margin(sigma, TOO_HIGH * of)) / unit) if of else -1
            for weight, of in zip(noised.tolist(), q, strict=True)
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_set_that_its_own_intervals_choose_is_shown(seed):
    """Beside all sets of nine counts: those that are what their own intervals choose, together."""
    random = np.random.default_rng(seed)
    weighing, sigma, least = Weighing(9, 9, 6), 640, 20
    noised = np.rint(random.normal(25, 18, 9) * weighing.unit).astype(np.int64)
    families = [np.zeros(9, int), random.integers(0, 3, 9), np.arange(9) % 2]
    families[1][:3] = range(3)  # no family is empty
    largest = np.zeros(9, bool)
    for bits in product((False, True), repeat=9):
        inside = np.array(bits)
        q = [
            min(Fraction(int(inside[f == f[i]].sum()), int((f == f[i]).sum())) for f in families)
            for i in range(9)
        ]
        if (inside == (low_ends(noised, q, weighing.unit, sigma) >= least)).all():
            largest |= inside
    shown, _, low, high = chosen(noised, np.zeros(0, np.int64), weighing, sigma, least, families)
    assert shown.tolist() == np.flatnonzero(largest).tolist()
    q = [
        min(Fraction(int(largest[f == f[i]].sum()), int((f == f[i]).sum())) for f in families)
        for i in shown
    ]
    assert low.tolist() == low_ends(noised[shown], q, weighing.unit, sigma).tolist()
    above = margin(sigma, ERROR - TOO_HIGH)
    assert high.tolist() == [floor((weight + above) / weighing.unit) for weight in noised[shown]]


def counts_of(lengths, rarer, commonest, groups=1):
    """True numbers of users by Zipf's law for each length, shared out to groups; the families."""
    truth, length = [], []
    for place, (number, factor) in enumerate(zip(lengths, rarer, strict=True)):
        truth.append(commonest / factor * np.arange(1, number + 1) ** -0.9)
        length.append(np.full(number, place))
    shares = np.array([0.7, 0.2, 0.1, 0.0])[:groups] if groups > 1 else np.ones(1)
    users = np.outer(np.concatenate(truth), shares).round().astype(np.int64)
    length = np.repeat(np.concatenate(length), groups)
    families = [np.zeros(users.size, int), length]
    if groups > 1:
        families.append(np.tile(np.arange(groups), len(users)))
    return users.reshape(-1), families


#: Long runs are rarer, as in texts; one group has nobody; nearly all counts, or all, are just below
#: what is asked for, where the theorem's bounds are nearly met.
POPULATIONS = {
    "by length": lambda: counts_of([400, 900, 400, 60, 9], [1, 3, 12, 30, 60], 9_000),
    "by length and group": lambda: counts_of([200, 300, 90], [1, 3, 12], 6_000, groups=4),
    "just below": lambda: (np.array([29] * 390 + [300] * 10), [np.zeros(400, int)]),
    "all just below": lambda: (np.full(300, 29), [np.zeros(300, int), np.arange(300) % 3]),
}


@cache
def shares_of(name, bounded):
    """For each family of a population, and for each third of what is shown by size: the share of
    intervals that are wrong in each run, and of those that begin too high."""
    truth, families = POPULATIONS[name]()
    # K as many as there are counts, or so few that some users could be bounded. Nobody is: so
    # losses are their noise.
    weighing = Weighing(len(truth), len(truth) if not bounded else len(truth) // 7, 6)
    sigma, random = 20 * weighing.unit, np.random.default_rng(11)
    found = {}
    for run in range(RUNS):
        noise = np.rint(random.normal(0, sigma, len(truth) + weighing.losses))
        noise, lost = np.split(noise.astype(np.int64), [len(truth)])
        noised = truth * weighing.unit + noise
        shown, users, low, high = chosen(noised, lost, weighing, sigma, 30, families)
        assert (low >= 30).all() and (low <= users).all() and (users <= high).all()
        wrong = (truth[shown] < low) | (truth[shown] > high)
        fewer = truth[shown] < 30
        those = {
            (place, number): family[shown] == number
            for place, family in enumerate(families)
            for number in range(family.max() + 1)
        }
        by_size = np.array_split(np.argsort(-users, kind="stable"), 3)
        those |= {
            ("size", third): np.isin(np.arange(len(shown)), by_size[third]) for third in range(3)
        }
        for family, inside in those.items():
            of_runs = found.setdefault(family, np.zeros((RUNS, 2)))
            if inside.any():
                of_runs[run] = wrong[inside].mean(), fewer[inside].mean()
    return found


def at_most(of_runs, promised):
    """Whether the mean is at most what is promised, within three standard errors."""
    return of_runs.mean() <= promised + 3 * of_runs.std() / sqrt(len(of_runs))


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("name", POPULATIONS)
def test_of_what_is_shown_no_more_is_wrong_than_is_said(name, bounded):
    for family, of_runs in shares_of(name, bounded).items():
        if "below" not in name or family[0] != "size":  # by size nothing is promised
            assert at_most(of_runs[:, 0], ERROR), family
            assert at_most(of_runs[:, 1], TOO_HIGH), family


@pytest.mark.parametrize("groups", [1, 4])
def test_of_what_is_shown_no_more_is_wrong_where_keys_lost_all_that_losses_say(groups):
    """Their noise is common to all keys, so in some runs many ends are too low at once."""
    weighing, random = Weighing(400, 4, 6, groups), np.random.default_rng(12)
    truth = np.where(np.arange(400) < 390, 50, 300)
    sigma, families, lost = 10 * weighing.unit, [np.zeros(400, int), np.arange(400) % groups], 30
    losses = np.zeros(weighing.losses, np.int64)
    losses[-1] = lost * weighing.loss_unit
    wrong = np.zeros((RUNS, 2))
    for run in range(RUNS):
        noise = np.rint(random.normal(0, sigma, 400 + len(losses))).astype(np.int64)
        noised = (truth - lost) * weighing.unit + noise[:400]
        how = weighing, sigma, 25, families
        shown, _, low, high = chosen(noised, losses + noise[400:], *how)
        wrong[run] = (low > truth[shown]).mean(), (high < truth[shown]).mean()
    assert len(shown) > 9
    assert at_most(wrong[:, 1], ERROR - TOO_HIGH) and at_most(wrong.sum(axis=1), ERROR)


def test_where_nothing_is_many_nothing_is_shown():
    shown, *columns = chosen(
        np.zeros(9, np.int64), np.zeros(0, np.int64), Weighing(9, 9, 6), 640, 20, [np.arange(9) % 2]
    )
    assert [len(column) for column in (shown, *columns)] == [0] * 4
