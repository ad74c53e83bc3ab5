"""What `ngrams` promises, by experiment, with the operating system's randomness.

Every valid gram of one run is a trial of its own. All bounds are exact (Clopper-Pearson, chi
squared) and fail a right mechanism with probability below 1e-8. Each claim is also put to a
mechanism that breaks it, and must catch it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import exp, sqrt
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binom, chi2, norm

from dphh import Corpus, Plan, ngrams
from dphh.privacy.gaussian import gaussian_delta
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import weight

#: Of one bound; a test makes a few of them.
FAILS = 1e-9
EPSILON, DELTA = 1.0, 0.4
PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])


def between(count: int, trials: int) -> tuple[float, float]:
    """Where a probability lies, given how often its event happened."""
    low = beta.ppf(FAILS, count, trials - count + 1) if count else 0.0
    high = beta.ppf(1 - FAILS, count + 1, trials - count) if count < trials else 1.0
    return float(low), float(high)


def priced(plan: Plan) -> Plan:
    """The plan as its parameters price it, whatever a test has done to it."""
    return ngrams(**dict(plan.parameters))


def mutated(plan: Plan, index: int, **changes) -> Plan:
    levels = list(plan.levels)
    levels[index] = replace(levels[index], **changes)
    return replace(plan, price=replace(plan.price, levels=tuple(levels)))


# Level 1: a user's own new words pass with probability delta / 2 at most.


def audit_new_words(plan: Plan, engine: str, folder: Path, held: int, users: int = 20_000) -> None:
    path = folder / "alone.parquet"
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT u AS who, string_agg(u || '/' || i, ' ') AS what "
            f"FROM range({users}) AS a(u), range({held}) AS b(i) GROUP BY u) TO '{path}'"
        )
    release = plan.run(corpus=Corpus(path, user="who", text="what"), engine=engine)
    words = release.to_polars().filter(level=1)["item"]
    found = len({word.split("/")[0] for word in words})
    low, high = between(found, users)
    assert low <= plan.privacy.delta / 2, "new words pass more often than delta allows"
    level = priced(plan).levels[0]
    kept = min(held, level.max_items)
    tail = rounded_gaussian(level.sigma_grid).tail(
        level.threshold_grid - weight(level.grid_bits, kept)
    )
    exact = 1 - (1 - float(tail)) ** kept
    assert low <= exact <= high, "new words pass more or less often than the exact tail says"


@pytest.mark.parametrize("held", [1, 3, 8])
def test_new_words_pass_as_often_as_the_exact_tail_says(engine, tmp_path, held):
    plan = ngrams(max_n=2, epsilon=EPSILON, delta=DELTA, max_items=3, method="dpne")
    audit_new_words(plan, engine, tmp_path, held)


def test_a_threshold_that_is_too_low_is_caught(engine, tmp_path):
    plan = ngrams(max_n=2, epsilon=EPSILON, delta=DELTA, max_items=3, method="dpne")
    low = mutated(plan, 0, threshold_grid=plan.levels[0].threshold_grid - 500)
    with pytest.raises(AssertionError, match="more often than delta allows"):
        audit_new_words(low, engine, tmp_path, 3)


# Above: a valid gram passes as its weight and the noise say, held by somebody or not.

WORDS = 120
#: In each run, users who hold grams that nobody else holds; and one over the cap, who holds the
#: grams of the last words, all of them but a few at weight zero.
LONERS = 1500
LAST = 60


def one_run(
    plan: Plan, engine: str, folder: Path, each: int
) -> tuple[set[tuple[int, int]], set[tuple[int, int]], set[tuple[int, int]]]:
    """The grams of one holder each, those of the over-full user alone, and those released.

    A gram (i, j) is words i and j side by side. Every word is held by many.
    """
    pairs = [pair for pair in product(range(WORDS), repeat=2) if min(pair) < WORDS - LAST]
    chosen = np.random.default_rng().permutation(len(pairs))[: LONERS * each]
    alone = [pairs[i] for i in chosen]
    rows = [(f"many {i} {w}", f"w{w}") for w in range(WORDS) for i in range(60)]
    rows += [(f"alone {i // each}", f"w{x} w{y}") for i, (x, y) in enumerate(alone)]
    last = range(WORDS - LAST, WORDS)
    zero = {(x, y) for x in last for y in last}
    rows += [("over-full", f"w{x} w{y}") for x, y in zero]
    path = folder / "loners.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    release = plan.run(corpus=Corpus(path, user="who", text="what"), engine=engine)
    frame = release.to_polars()
    assert len(frame.filter(level=1)) == WORDS
    found = frame.filter(level=2)["tokens"].to_list()
    assert len(found) == len({tuple(gram) for gram in found})
    return set(alone), zero, {(int(x[1:]), int(y[1:])) for x, y in found}


def audit_valid_grams(
    plan: Plan, engine: str, folder: Path, *, each: int = 1, runs: int = 6
) -> None:
    counts = np.zeros((3, 2), dtype=np.int64)
    for _ in range(runs):
        alone, zero, released = one_run(plan, engine, folder, each)
        nobody = set(product(range(WORDS), repeat=2)) - alone - zero
        for row, grams in enumerate((alone, zero, nobody)):
            counts[row] += len(grams & released), len(grams)
    level = priced(plan).levels[1]
    noise = rounded_gaussian(level.sigma_grid)
    rho = noise.smallest_with_tail_at_most(level.spurious * noise.tail(-(10**9)) / WORDS)
    own = weight(level.grid_bits, each)
    bare, lifted = float(noise.tail(rho)), float(noise.tail(rho - own))
    for (count, trials), exact, what in (
        (counts[0], lifted, "a gram that one user holds"),
        (counts[2], bare, "a gram that nobody holds"),
    ):
        low, high = between(count, trials)
        assert low <= exact <= high, f"{what} is released more or less often than the noise says"
    # Of the over-full user's, `max_items` a run are lifted, by little, and all others are bare.
    count, trials = counts[1]
    few = level.max_items * runs
    low, high = binom.ppf([FAILS, 1 - FAILS], trials - few, bare)
    assert low <= count <= high + few, "a gram held at weight zero is not as one nobody holds"


def plan_of(pruning: str = "both", **options) -> Plan:
    return ngrams(
        max_n=2, epsilon=EPSILON, delta=DELTA, max_items=(1000, 4), spurious=0.5,
        pruning=pruning, method="dpne", **options,
    )  # fmt: skip


@PRUNINGS
@pytest.mark.parametrize("each", [1, 4])
def test_a_valid_gram_passes_as_often_as_the_noise_says(engine, tmp_path, pruning, each):
    audit_valid_grams(plan_of(pruning), engine, tmp_path, each=each)


def without_spurious(monkeypatch):
    monkeypatch.setattr("dphh.udfs.draws.spurious.draw_binomial", lambda *_: 0)


@PRUNINGS
def test_a_ladder_without_spurious_grams_is_caught(engine, tmp_path, monkeypatch, pruning):
    without_spurious(monkeypatch)
    with pytest.raises(AssertionError, match="a gram that nobody holds is released"):
        audit_valid_grams(plan_of(pruning), engine, tmp_path, runs=2)


def test_spurious_grams_that_are_too_few_by_half_are_caught(engine, tmp_path, monkeypatch):
    from dphh.udfs.draws.spurious import draw_binomial

    monkeypatch.setattr(
        "dphh.udfs.draws.spurious.draw_binomial",
        lambda randomness, n, p, purpose: draw_binomial(randomness, n, p / 2, purpose),
    )
    with pytest.raises(AssertionError, match="a gram that nobody holds is released"):
        audit_valid_grams(plan_of(), engine, tmp_path, runs=14)


def test_noise_on_grams_that_is_too_small_is_caught(engine, tmp_path):
    plan = plan_of()
    half = mutated(plan, 1, sigma_grid=plan.levels[1].sigma_grid // 2)
    with pytest.raises(AssertionError, match="a gram that one user holds is released"):
        audit_valid_grams(half, engine, tmp_path, runs=2)


def test_weights_that_are_not_bounded_are_caught(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dphh.udfs.kernel.contributions._weights_by_count",
        lambda bits, max_items: np.array([0] + [2**bits] * max_items),
    )
    with pytest.raises(AssertionError, match="a gram that one user holds is released"):
        audit_valid_grams(plan_of(), engine, tmp_path, each=4, runs=3)


# All levels together: one user, by everything the release says of them.

HOLDERS = 30
GRAMS = ["a", "b", "c", "a b", "b c", "a b c"]


def drawn_of_groups(plan: Plan, engine: str, folder: Path, groups: int) -> Iterator[np.ndarray]:
    """What each group's six grams were released at, over their holders' part."""
    path = folder / "groups.parquet"
    text = "'a' || g || ' b' || g || ' c' || g"
    with duckdb.connect() as con:
        con.execute(
            f"""COPY (
                SELECT 'h' || g || '/' || h AS who, {text} AS what
                FROM range({groups}) AS a(g), range({HOLDERS}) AS b(h)
                UNION ALL SELECT 'extra' || g, {text} FROM range(0, {groups}, 2) AS a(g)
            ) TO '{path}'"""
        )
    release = plan.run(corpus=Corpus(path, user="who", text="what"), engine=engine)
    table = release.to_arrow()
    found = dict(zip(table["item"].to_pylist(), table["score"].to_pylist(), strict=True))
    bits = plan.levels[0].grid_bits
    for gram in GRAMS:
        words = gram.split()
        part = HOLDERS * weight(bits, 4 - len(words)) / 2**bits
        yield np.array([found[" ".join(f"{w}{g}" for w in words)] for g in range(groups)]) - part


def audit_levels_together(plan: Plan, engine: str, folder: Path, groups: int = 4000) -> None:
    drawn = np.array(list(drawn_of_groups(plan, engine, folder, groups))).T
    levels = priced(plan).levels
    sizes = [len(gram.split()) for gram in GRAMS]
    sigmas = np.array([levels[size - 1].sigma for size in sizes])
    steps = np.array([1 / sqrt(4 - size) for size in sizes])
    present, absent = drawn[0::2], drawn[1::2]
    far = norm.isf(FAILS)
    for column, sigma in enumerate(sigmas):
        squares = float((absent[:, column] ** 2).sum()) / sigma**2
        low, high = chi2.ppf([FAILS, 1 - FAILS], len(absent))
        assert 0.99 * low <= squares <= 1.01 * high, "the noise has not the planned sigma"
        error = (present[:, column].mean() - steps[column]) * sqrt(len(present)) / sigma
        assert abs(error) < far, "the weights are not what they should be"
    correlations = np.corrcoef(absent.T)[np.triu_indices(len(GRAMS), 1)]
    assert np.abs(correlations).max() < far / sqrt(len(absent)), "levels share their noise"

    mu = float(np.sqrt(((steps / sigmas) ** 2).sum()))
    assert mu == pytest.approx(sqrt(sum(level.sigma**-2 for level in levels)))
    loss = (present * steps / sigmas**2).sum(axis=1) - mu**2 / 2
    other = (absent * steps / sigmas**2).sum(axis=1) - mu**2 / 2
    epsilon, trials = plan.privacy.epsilon, groups // 2
    for seen, against in ((loss > epsilon, other > epsilon), (other < -epsilon, loss < -epsilon)):
        p_low, p_high = between(int(seen.sum()), trials)
        q_low, q_high = between(int(against.sum()), trials)
        assert p_low - exp(epsilon) * q_high <= plan.privacy.delta / 2
        exact = gaussian_delta(epsilon, 1 / mu)
        assert p_low - exp(epsilon) * q_high <= exact <= p_high - exp(epsilon) * q_low


@PRUNINGS
@pytest.mark.parametrize("decay", [1.0, 0.8])
def test_all_levels_together_show_no_more_than_one_gaussian(engine, tmp_path, pruning, decay):
    plan = ngrams(
        max_n=3, epsilon=EPSILON, delta=DELTA, max_items=3, pruning=pruning, decay=decay,
        method="dpne",
    )  # fmt: skip
    audit_levels_together(plan, engine, tmp_path)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_too_little_noise_at_any_level_is_caught(engine, tmp_path, index):
    plan = ngrams(max_n=3, epsilon=EPSILON, delta=DELTA, max_items=3, method="dpne")
    less = mutated(plan, index, sigma_grid=int(plan.levels[index].sigma_grid * 0.8))
    with pytest.raises(AssertionError, match="planned sigma"):
        audit_levels_together(less, engine, tmp_path)
