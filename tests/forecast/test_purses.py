"""What the proof of the purses needs of a user's own arithmetic, and of what a late round shows
(docs/ngrams.md, "Privacy of the forecast ladder")."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr

from dphh.testing import SeededRandomness
from dphh.udfs.kernel import contributions as kernel
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.noise.absent import (
    absent_by_cell,
    absent_nonpositive,
    absent_undecided,
    spurious_of_classes,
)
from dphh.udfs.noise.sampler import draw_rounded_gaussian
from dphh.udfs.noise.table import TABLE_ONE, Bins, rounded_gaussian
from dphh.udfs.rules.forecast import (
    ONE_PART,
    Reserve,
    Spending,
    finds_of_users,
    later_round_contributions,
    purse_counts,
    round_1_contributions,
)
from tests.forecast.test_absent import SYSTEM, alike, small

RANDOM = np.random.default_rng(58)
PURSE = 5_000
COLUMNS = ("rest", "tops", "finds")
#: Users keep at least 4 finds of 90 each.
RESERVES = (None, Reserve(each=90, least=4, most=30))


def lists(*rows: Any, kind: Any = None) -> Any:
    return pa.array([list(row) for row in rows], pa.list_(kind or pa.int64()))


def purse_of(*columns: Any) -> Any:
    """What is left, the highest level and the finds, each as a list a row."""
    return pa.StructArray.from_arrays(columns, COLUMNS)


def of_one_user(purse: list[int]) -> Any:
    return purse_of(*(lists([number]) for number in purse))


def texts_of(user: np.random.Generator) -> list[int]:
    """A user's positions: keys 0 to 30, some of them no valid gram, and the text's end."""
    keys = user.integers(-20, 31, user.integers(0, 40)).clip(-1)
    return [*keys.tolist(), -1] if len(keys) else []


def spending_of(level: int, levels: int, late: bool = False) -> Spending:
    parts = tuple(RANDOM.integers(0, ONE_PART + 1, levels - level + 1).tolist())
    first = 0 if late else int(RANDOM.integers(0, PURSE // 2))
    return Spending(PURSE, first, parts, int(RANDOM.choice([0, 900])), level, late)


def squares_and_purse(user: list[int], columns: list[int], spent: Spending, g: Any) -> Any:
    """Of one user alone: the squared norm added, and what is left, after the rounds of a level."""
    lengths, keys = lists([len(user)], kind=pa.int32()), lists(user)
    purse = of_one_user(columns)
    added = 0
    if not spent.late:
        drawn = round_1_contributions(lengths, keys, purse, spent).flatten()
        added += sum(weight**2 for weight in drawn.field("weight").to_pylist())
    found = (KeyIndex(np.arange(31)), g)
    made = later_round_contributions(lengths, keys, purse, found, spent)
    weights = made.field("contributions").flatten().field("weight").to_pylist()
    after = [of.flatten()[0].as_py() for of in made.field("purse").flatten()]
    return added + sum(weight**2 for weight in weights), after


@pytest.mark.parametrize("reserve", RESERVES)
def test_no_user_adds_more_than_the_purse_whatever_the_rounds_of_a_run(reserve: Reserve | None):
    """Planted bugs this catches: a round charged less than it added, or not at all; one that spends
    of what all users keep to be counted."""
    kept = 0 if reserve is None else reserve.each * reserve.least
    for _ in range(60):
        user, levels = texts_of(RANDOM), int(RANDOM.integers(2, 6))
        columns = [PURSE, 0, 0]
        rounds = [spending_of(level, levels) for level in range(2, levels + 1)]
        rounds += [spending_of(level, levels, late=True) for level in range(2, levels + 1)]
        for spending in rounds:
            before, g = columns[0], RANDOM.choice([0, 3, 64, 3_000], 31)
            columns[2] += int(RANDOM.integers(0, 3))  # finds
            spent = replace(spending, reserve=reserve)
            squares, columns = squares_and_purse(user, columns, spent, g)
            assert squares <= before - columns[0] <= before - kept
        left, late = columns[0], Spending(PURSE, 40, (ONE_PART,) * 8, reserve=reserve)
        counted = purse_counts(of_one_user(columns), late)
        of_count = counted.field("contributions").flatten().field("weight").to_pylist()
        after = counted.field("purse").field("rest").flatten()[0].as_py()
        assert sum(weight**2 for weight in of_count) <= left - after <= left - kept


def test_what_a_user_adds_and_keeps_is_the_same_beside_any_others(
    monkeypatch: pytest.MonkeyPatch,
):
    """Planted bugs this catches: a run of valid grams that goes on into the next user's text, a
    purse of the wrong user, climbs of another piece."""
    users = [texts_of(RANDOM) for _ in range(60)]
    purses, tops, finds = (RANDOM.integers(0, most, 60).tolist() for most in (PURSE, 5, 20))
    parts = (20_000, 9_000, 5_000, 2_000, 700, 99)
    spending = Spending(PURSE, 700, parts, reserve=RESERVES[1])
    found = KeyIndex(np.arange(31)), RANDOM.choice([0, 3, 64, 3_000], 31)

    def made(rows: list[slice]) -> Any:
        columns = (
            lists(*([len(user) for user in users[row]] for row in rows), kind=pa.int32()),
            lists(*([key for user in users[row] for key in user] for row in rows)),
        )
        purse = purse_of(
            *(lists(*(column[row] for row in rows)) for column in (purses, tops, finds))
        )
        first = round_1_contributions(*columns, purse, spending).flatten()
        later = later_round_contributions(*columns, purse, found, spending)
        of_finds = finds_of_users(*columns, purse).field("finds").flatten().to_pylist()
        sums: Counter[tuple[str, int]] = Counter()
        for name, drawn in (("1", first), ("2", later.field("contributions").flatten())):
            for key, weight in zip(*(drawn.field(i).to_pylist() for i in (0, 1)), strict=True):
                sums[name, key] += weight
        kept = [of.flatten().to_pylist() for of in later.field("purse").flatten()]
        return +sums, of_finds, kept

    rows = ([slice(i, i + 1) for i in range(60)], [slice(0, 60)], [slice(0, 7), slice(7, 60)])
    monkeypatch.setattr(kernel, "PIECE_SIZE", 1)
    alone = made(rows[0])
    for size in (1, 50, 1_000_000):
        monkeypatch.setattr(kernel, "PIECE_SIZE", size)
        assert all(made(some) == alone for some in rows)


def test_purses_of_other_users_are_refused():
    spending = Spending(PURSE, 100)
    lengths, keys = lists([2, 2], [2], kind=pa.int32()), lists([1, -1, 2, -1], [3, -1])
    for column in (lists([5], [5, 5]), lists([5, 5, 5], [])):
        purse = purse_of(column, column, column)
        with pytest.raises(RuntimeError, match="purses of other users"):
            round_1_contributions(lengths, keys, purse, spending)
        with pytest.raises(RuntimeError, match="purses of other users"):
            finds_of_users(lengths, keys, purse)
        with pytest.raises(RuntimeError, match="purses of other users"):
            found = KeyIndex(np.arange(31)), np.ones(31, dtype=np.int64)
            later_round_contributions(lengths, keys, purse, found, spending)


def left_to_a_late_round(thresholds: Any, law: Bins, grams: int) -> tuple[Any, Any]:
    """Cells of the grams of one class that two rounds left undecided: drawn as absent grams are,
    and by noise on each gram, as held ones are."""
    bins, sigma = len(law.starts), law.sigma_grid
    cells = absent_by_cell(SYSTEM, pa.array([0]), pa.array([grams]), sigma, "t").flatten()
    cell, absent = cells.field("cell"), cells.field("grams")
    nonpositive = absent_nonpositive(SYSTEM, cell, absent, sigma, "t")
    positive = absent.to_numpy() - nonpositive.to_numpy()
    # Of the positive ones each passes by itself.
    noise = draw_rounded_gaussian(SYSTEM, sigma, 40 * grams, "t")
    waiting = iter(noise[noise > 0])
    of_cells = zip(positive, thresholds, strict=True)
    passed = [sum(next(waiting) >= t for _ in range(n)) for n, t in of_cells]
    lazily = absent_undecided(
        SYSTEM, cell, absent, nonpositive, pa.array(passed), pa.array(thresholds), sigma, "t"
    ).flatten()
    by_cell = np.zeros(bins**2, dtype=np.int64)
    by_cell[lazily.field("cell").to_numpy()] = lazily.field("grams").to_numpy()
    first, second = (draw_rounded_gaussian(SYSTEM, sigma, grams, "t") for _ in range(2))
    left = second < thresholds[law.bin_of(first)]
    in_full = law.bin_of(first[left]) * bins + law.bin_of(second[left])
    return by_cell, np.bincount(in_full, minlength=bins**2)


def test_absent_grams_left_to_a_late_round_have_the_law_of_held_ones_of_sum_0():
    """Planted bugs this catches: bins of round 2 drawn without the sign, or without the threshold,
    or the bin of 0 or of the threshold not cut."""
    law = Bins(3)
    thresholds = np.tile([1, 2, 5, law.noise.reach + 9], len(law.starts))[: len(law.starts)]
    drawn = [left_to_a_late_round(thresholds, law, 60) for _ in range(60)]
    lazily, in_full = (np.sum(each, axis=0) for each in zip(*drawn, strict=True))
    counts = (Counter(dict(enumerate(each.tolist()))) for each in (lazily, in_full))
    assert alike(*counts) > 1e-6
    totals = (Counter(int(each.sum()) for each in some) for some in zip(*drawn, strict=True))
    assert alike(*totals) > 1e-6


@pytest.mark.parametrize("late", [False, True])
def test_a_spurious_gram_has_a_row_as_a_held_one_has(late: bool):
    """In a late round held grams have `first` 0; NULL would say which grams nobody holds."""
    valid, _, _, law = small()
    of_class = len(law.starts) ** (2 if late else 1)
    cells = [{"cell": of_class - 1, "grams": 3, "nonpositive": 0, "threshold": 1}]
    if not late:
        cells[0]["cell"] = int(law.bin_of(np.array([0]))[0])
    class_number = int(np.argmax(valid.sizes))
    cells[0]["cell"] += class_number * of_class
    classes, rows = pa.array([class_number]), pa.array([cells])
    assert valid.sizes[class_number] >= 3
    drawn = spurious_of_classes(
        SeededRandomness(1), classes, rows, valid, of_class, law.sigma_grid, "t"
    )
    passed = [row for row in drawn.flatten().to_pylist() if row["cell"] is not None]
    assert len(passed) == 3
    assert all(row["first"] is not None for row in passed)
    assert not late or {row["first"] for row in passed} == {0}


def best_delta(purse: int, cuts: Any, rounds: int, law: Any, with_user: bool) -> Any:
    """The largest P(S) - c Q(S), for each c of `cuts`, of a user who chooses in each round, by all
    that came before, which integer to add, with squares that sum to `purse` at most; by dynamic
    programming over `law`, the exact probabilities of the rounded noise from -k to k. P is the law
    with the user, or without."""
    if rounds == 0:
        return np.maximum(1 - cuts, 0)
    best = best_delta(purse, cuts, rounds - 1, law, with_user)
    for added in range(1, int(purse**0.5) + 1):
        padded = np.pad(law, added)
        others = padded[2 * added :] if with_user else padded[: len(law)]
        ratios = cuts[..., None] * (others / law)
        after = best_delta(purse - added**2, ratios, rounds - 1, law, with_user)
        best = np.maximum(best, after @ law)
    return best


@pytest.mark.parametrize("with_user", [True, False])
def test_no_way_to_spend_a_purse_shows_more_than_one_gaussian_of_it(with_user: bool):
    """In both directions; and with a second purse a user would show more than was paid for."""
    sigma, purse = 2, 6
    tail = rounded_gaussian(sigma).survival
    law = np.array([(tail(k) - tail(k + 1)) / TABLE_ONE for k in range(-15, 16)])
    epsilons = np.array([0.5, 1.0, 2.0, 3.0])
    mu = purse**0.5 / sigma
    paid = ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)
    reached = best_delta(purse, np.exp(epsilons), 3, law, with_user)
    assert (0.8 * paid < reached).all()
    assert (reached <= paid + 1e-11).all()
    assert (best_delta(2 * purse, np.exp(epsilons), 3, law, with_user) > 1.5 * paid).all()
