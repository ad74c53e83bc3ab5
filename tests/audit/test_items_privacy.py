"""What `items` promises, by experiment, with the operating system's randomness.

Many copies of one small situation stand side by side in one corpus, with users and items of their
own, so that one run is thousands of independent trials. All bounds are exact (Clopper-Pearson, chi
squared) and fail a right mechanism with probability below 1e-8. Each claim is also put to a
mechanism that breaks it, and must catch it.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, sqrt
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.stats import beta, binom, chi2, norm

from dphh import Corpus, Plan, items
from dphh.privacy.gaussian import gaussian_delta
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import weight

#: Of one bound; a test makes a few of them.
FAILS = 1e-9
EPSILON, DELTA = 1.0, 0.4


def between(count: int, trials: int) -> tuple[float, float]:
    """Where a probability lies, given how often its event happened."""
    low = beta.ppf(FAILS, count, trials - count + 1) if count else 0.0
    high = beta.ppf(1 - FAILS, count + 1, trials - count) if count < trials else 1.0
    return float(low), float(high)


def written(path: Path, query: str) -> Corpus:
    with duckdb.connect() as con:
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return Corpus(path, user="who", item="what")


def scores(plan: Plan, corpus: Corpus, engine: str) -> dict[str, float]:
    table = plan.run(corpus=corpus, engine=engine).to_arrow()
    names, found = table.column("item").to_pylist(), table.column("score").to_numpy()
    return dict(zip(names, found, strict=True))


def mutated(plan: Plan, **changes) -> Plan:
    """The plan with another first level than its price is for."""
    first, *rest = plan.levels
    levels = (replace(first, **changes), *rest)
    return replace(plan, price=replace(plan.price, levels=levels))


# A user's own new items pass with probability delta / 2 at most, and as often as the tail says.


def audit_new_items(plan: Plan, engine: str, folder: Path, held: int, users: int = 20_000) -> None:
    corpus = written(
        folder / "alone.parquet",
        f"SELECT user_id AS who, user_id || '/' || i AS what "
        f"FROM range({users}) AS u(user_id), range({held}) AS t(i)",
    )
    found = {name.split("/")[0] for name in scores(plan, corpus, engine)}
    low, high = between(len(found), users)
    assert low <= plan.privacy.delta / 2, "new items pass more often than delta allows"
    (level,) = items(**dict(plan.parameters)).levels  # as it was priced, not as it was mutated
    kept = min(held, level.max_items)
    tail = float(
        rounded_gaussian(level.sigma_grid).tail(
            level.threshold_grid - weight(level.grid_bits, kept)
        )
    )
    exact = 1 - (1 - tail) ** kept
    assert low <= exact <= high, "new items pass more or less often than the exact tail says"


@pytest.mark.parametrize("max_items, held", [(1, 1), (1, 3), (4, 1), (4, 2), (4, 4), (4, 9)])
def test_new_items_pass_as_often_as_the_exact_tail_says(engine, tmp_path, max_items, held):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=max_items)
    audit_new_items(plan, engine, tmp_path, held)


def test_a_threshold_that_is_too_low_is_caught(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=4)
    low = mutated(plan, threshold_grid=plan.levels[0].threshold_grid - 300)
    with pytest.raises(AssertionError, match="more often than delta allows"):
        audit_new_items(low, engine, tmp_path, 4)


def test_a_cap_that_does_not_hold_is_caught(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=1)
    with pytest.raises(AssertionError, match="more often than delta allows"):
        audit_new_items(mutated(plan, max_items=40), engine, tmp_path, 40, users=5000)


def test_weights_that_are_not_bounded_are_caught_by_the_threshold(engine, tmp_path, monkeypatch):
    unbounded(monkeypatch, engine)
    with pytest.raises(AssertionError, match="more often than delta allows"):
        audit_new_items(items(epsilon=EPSILON, delta=DELTA, max_items=4), engine, tmp_path, 4)


# With or without one user, on what others hold too: the Gaussian curve, and the noise itself.

HOLDERS = 20


def audit_others_items(
    plan: Plan, engine: str, folder: Path, held: int, groups: int = 16_000
) -> None:
    """Groups of `held` items with a few holders each; in every other group one user more."""
    corpus = written(
        folder / "groups.parquet",
        f"""
        SELECT 'h' || g || '/' || i || '/' || h AS who, g || '/' || i AS what
        FROM range({groups}) AS a(g), range({held}) AS b(i), range({HOLDERS}) AS c(h)
        UNION ALL
        SELECT 'extra' || g AS who, g || '/' || i AS what
        FROM range(0, {groups}, 2) AS a(g), range({held}) AS b(i)
        """,
    )
    found = scores(plan, corpus, engine)
    drawn = np.array([[found[f"{g}/{i}"] for i in range(held)] for g in range(groups)]) - HOLDERS
    present, absent = drawn[0::2], drawn[1::2]
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    (level,) = items(**dict(plan.parameters)).levels
    step = weight(level.grid_bits, held) / 2**level.grid_bits
    mu = step * sqrt(held) / level.sigma

    # The noise has the planned sigma: sums of its squares are chi squared (but for rounding).
    squares = float((absent**2).sum()) / level.sigma**2
    low, high = chi2.ppf([FAILS, 1 - FAILS], absent.size)
    slack = 1 + 1 / level.sigma_grid**2
    assert low / slack <= squares <= high * slack, "the noise has not the planned sigma"
    far = norm.isf(FAILS)
    for sample, centre in ((absent, 0.0), (present, step)):
        error = (sample.mean() - centre) * sqrt(sample.size) / level.sigma
        assert abs(error) < far, "the weights are not what they should be"
    assert abs(np.corrcoef(absent[:-1, 0], absent[1:, 0])[0, 1]) < far / sqrt(groups / 2 - 2)

    # The best test between the two neighbours: how much of the sum speaks for the user.
    loss = (mu / (level.sigma * sqrt(held))) * present.sum(axis=1) - mu**2 / 2
    other = (mu / (level.sigma * sqrt(held))) * absent.sum(axis=1) - mu**2 / 2
    trials = groups // 2
    for seen, against in ((loss > epsilon, other > epsilon), (other < -epsilon, loss < -epsilon)):
        p_low, p_high = between(int(seen.sum()), trials)
        q_low, q_high = between(int(against.sum()), trials)
        assert p_low - exp(epsilon) * q_high <= delta / 2, "a neighbour shows more than promised"
        exact = gaussian_delta(epsilon, 1 / mu)
        assert p_low - exp(epsilon) * q_high <= exact <= p_high - exp(epsilon) * q_low


@pytest.mark.parametrize("max_items, held", [(1, 1), (4, 1), (4, 4)])
def test_one_user_shows_no_more_than_the_gaussian_curve_says(engine, tmp_path, max_items, held):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=max_items)
    audit_others_items(plan, engine, tmp_path, held)


def test_noise_of_half_the_size_is_caught(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=4)
    half = mutated(plan, sigma_grid=plan.levels[0].sigma_grid // 2)
    with pytest.raises(AssertionError, match="planned sigma"):
        audit_others_items(half, engine, tmp_path, 4, groups=2000)


def test_noise_that_is_five_in_a_hundred_too_small_is_caught(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=4)
    less = mutated(plan, sigma_grid=int(plan.levels[0].sigma_grid * 0.95))
    with pytest.raises(AssertionError, match="planned sigma"):
        audit_others_items(less, engine, tmp_path, 4)


def test_weights_that_are_not_bounded_are_caught(engine, tmp_path, monkeypatch):
    unbounded(monkeypatch, engine)
    with pytest.raises(AssertionError, match="weights are not what they should be"):
        audit_others_items(
            items(epsilon=EPSILON, delta=DELTA, max_items=4), engine, tmp_path, 4, groups=2000
        )


def unbounded(monkeypatch, engine):
    """Every item of a user weighs as if the user held no other."""
    monkeypatch.setattr(
        "dphh.udfs.kernel.contributions._weights_by_count",
        lambda bits, max_items: np.array([0] + [2**bits] * max_items),
    )


# DP-SIPS: a user whose items pass in different rounds, and spreads what is freed.

#: Users alone: thresholds, and how many hold the group's items, so that each round takes one.
THRESHOLDS, COUNTS = (85, 40, 17), (115, 55, 25)


def audit_sips(plan: Plan, engine: str, folder: Path, groups: int = 5000) -> None:
    corpus = written(
        folder / "sips.parquet",
        f"""
        SELECT 'h' || g || '/' || i || '/' || h AS who, g || '/' || i AS what
        FROM range({groups}) AS a(g), unnest([0, 1, 2]) AS b(i), range({COUNTS[0]}) AS c(h)
        WHERE h < [{", ".join(map(str, COUNTS))}][i + 1]
        UNION ALL
        SELECT 'extra' || g AS who, g || '/' || i AS what
        FROM range(0, {groups}, 2) AS a(g), range(3) AS b(i)
        """,
    )
    levels = [
        replace(level, threshold_grid=threshold * 2**level.grid_bits)
        for level, threshold in zip(plan.levels, THRESHOLDS, strict=True)
    ]
    found = scores(replace(plan, price=replace(plan.price, levels=tuple(levels))), corpus, engine)
    drawn = np.array([[found[f"{g}/{i}"] for i in range(3)] for g in range(groups)]) - COUNTS
    present, absent = drawn[0::2], drawn[1::2]
    # In round 1 the user holds three, of which one is released; in round 2 two; in round 3 one.
    steps = np.array([1 / sqrt(3), 1 / sqrt(2), 1.0])
    sigmas = np.array([level.sigma for level in items(**dict(plan.parameters)).levels])
    far = norm.isf(FAILS)
    for i in range(3):
        low, high = chi2.ppf([FAILS, 1 - FAILS], len(absent))
        squares = (absent[:, i] ** 2).sum() / sigmas[i] ** 2
        assert 0.99 * low <= squares <= 1.01 * high, "a round's noise has not its planned sigma"
        error = (present[:, i].mean() - steps[i]) * sqrt(len(present)) / sigmas[i]
        assert abs(error) < far, "a round's weights are not what they should be"
    mu = float(np.sqrt(((steps / sigmas) ** 2).sum()))
    spent = 1 / mu
    assert spent >= 1 / sqrt(float((sigmas**-2).sum())), "the rounds cost more than they compose to"
    with_user = (present * steps / sigmas**2).sum(axis=1) - mu**2 / 2
    without = (absent * steps / sigmas**2).sum(axis=1) - mu**2 / 2
    epsilon, trials = plan.privacy.epsilon, groups // 2
    for seen, against in (
        (with_user > epsilon, without > epsilon),
        (without < -epsilon, with_user < -epsilon),
    ):
        p_low, p_high = between(int(seen.sum()), trials)
        q_low, q_high = between(int(against.sum()), trials)
        assert p_low - exp(epsilon) * q_high <= plan.privacy.delta / 2
        exact = gaussian_delta(epsilon, spent)
        assert p_low - exp(epsilon) * q_high <= exact <= p_high - exp(epsilon) * q_low


def test_the_rounds_of_sips_compose_as_gaussians(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=4, method="sips")
    audit_sips(plan, engine, tmp_path)


def test_a_round_of_sips_with_too_little_noise_is_caught(engine, tmp_path):
    plan = items(epsilon=EPSILON, delta=DELTA, max_items=4, method="sips")
    half = mutated(plan, sigma_grid=plan.levels[0].sigma_grid // 2)
    with pytest.raises(AssertionError, match="planned sigma"):
        audit_sips(half, engine, tmp_path, groups=1000)


def test_new_items_of_all_rounds_of_sips_together_stay_within_delta(engine, tmp_path):
    users, plan = 20_000, items(epsilon=EPSILON, delta=DELTA, max_items=1, method="sips")
    corpus = written(
        tmp_path / "alone.parquet", f"SELECT i AS who, 'w' || i AS what FROM range({users}) AS t(i)"
    )
    found = len(scores(plan, corpus, engine))
    pass_none = 1.0
    for level in plan.levels:
        noise = rounded_gaussian(level.sigma_grid)
        pass_none *= 1 - float(noise.tail(level.threshold_grid - 2**level.grid_bits))
    assert 1 - pass_none <= DELTA / 2
    low, high = binom.ppf([FAILS, 1 - FAILS], users, 1 - pass_none)
    assert low <= found <= high
