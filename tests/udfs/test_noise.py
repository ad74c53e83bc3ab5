"""Draws against the exact distribution, at the table's edges, and through DuckDB."""

import random
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare, poisson

from dphh.errors import UsageError
from dphh.testing import SeededRandomness
from dphh.udfs.noise.binomials import approximate_binomial_weights, draw_binomial
from dphh.udfs.noise.randomness import RandomWords, SystemRandomness
from dphh.udfs.noise.sampler import draw_noise_at_least, draw_rounded_gaussian
from dphh.udfs.noise.table import TABLE_ONE, rounded_gaussian
from dphh.udfs.rules.votes import count_heads
from tests.draws import CHANCE, Scripted, exact_tail, register_draws

SYSTEM = SystemRandomness()
TOP = 2**64 - 1


@cache
def tail(sigma: int, k: int) -> float:
    return float(exact_tail(sigma, k))


def assert_tails(drawn: NDArray[np.int64], edges: list[int], above: list[float]) -> None:
    """Chi-squared of the counts between edges; `above[i]` is P(draw >= edges[i])."""
    shares = -np.diff([1.0, *above, 0.0])
    cells = np.searchsorted(edges, drawn, side="right")
    counts = np.bincount(cells, minlength=len(shares))
    assert shares.min() * len(drawn) >= 19  # or it is not chi-squared
    assert chisquare(counts, shares / shares.sum() * len(drawn)).pvalue > CHANCE


@pytest.mark.parametrize("sigma", [1, 2, 7, 50, 1024, 4000, 12_000])
def test_draws_follow_the_exact_distribution(sigma: int) -> None:
    drawn = draw_rounded_gaussian(SYSTEM, sigma, 1_500_000, "test")
    # Cells about sigma / 20 wide of 50 expected draws or more, and the two tails, pooled.
    step, few = max(1, sigma // 20), 50 / len(drawn)
    right = [1]
    while min(tail(sigma, k := right[-1] + step), tail(sigma, right[-1]) - tail(sigma, k)) > few:
        right.append(k)
    edges = sorted({*right, *(1 - k for k in right)})
    assert_tails(drawn, edges, [tail(sigma, e) for e in edges])
    deep = int(4.2 * sigma) + 1  # each deep tail by itself
    for count in ((drawn >= deep).sum(), (drawn <= -deep).sum()):
        expected = tail(sigma, deep) * len(drawn)
        assert poisson.cdf(count, expected) > CHANCE / 2
        assert poisson.sf(count - 1, expected) > CHANCE / 2
    assert chisquare([(drawn > 0).sum(), (drawn < 0).sum()]).pvalue > CHANCE
    if sigma >= 50:  # neighbouring integers are told apart
        assert chisquare(np.bincount(drawn % 16)).pvalue > CHANCE


class ThenZeros(Scripted):
    """Where the script's words do not decide, all that follow are 0."""

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        if "/word " in purpose:
            return np.zeros(count, dtype=np.uint64)
        return super().random_words(count, purpose, keys)


@pytest.mark.parametrize("sigma", [1, 3, 50, 64, 1000, 12_000, 40_000])
def test_inversion_is_the_definition(sigma: int) -> None:
    tail_of = cache(rounded_gaussian(sigma).survival)
    draw = random.Random(sigma)
    positions = [draw.randrange(2**63) >> draw.choice([0, 0, 0, 3, 20, 40]) for _ in range(500)]
    for k in draw.choices(range(1, 9 * sigma), k=300):  # and close to the boundaries
        top = tail_of(k) >> 192
        positions += [top, top + 1, top - 1, top + draw.randrange(3000), top - draw.randrange(3000)]
    positions = [p for p in positions if 0 <= p < 2**63]
    for sign in (0, 1):
        source = ThenZeros(*(2 * p + sign for p in positions))
        drawn = draw_rounded_gaussian(source, sigma, len(positions), "test")
        for p, z in zip(positions, drawn.tolist(), strict=True):
            size = -z if sign else z
            assert size >= 0 and tail_of(size + 1) <= p << 192
            assert size == 0 or p << 192 < tail_of(size)


def pieces(uniform: int, sign: int) -> list[int]:
    """The 255-bit integer and the sign as the four words that spell them."""
    return [(uniform >> 192) << 1 | sign, *((uniform >> s) & TOP for s in (128, 64, 0))]


@pytest.mark.parametrize("sigma", [1, 50, 12_000])
@pytest.mark.parametrize("sign", [0, 1])
def test_ties_are_settled_by_the_whole_entry(sigma: int, sign: int) -> None:
    for k in (1, 2, sigma, 3 * sigma, 6 * sigma):
        tail = rounded_gaussian(sigma).survival(k)
        for uniform, size in ((tail - 1, k), (tail, k - 1)):
            source = Scripted(*pieces(uniform, sign))
            drawn = draw_rounded_gaussian(source, sigma, 1, "test")
            assert drawn.tolist() == [-size if sign else size]
            assert source.purposes == ["test", *(f"test/word {i}" for i in (2, 3, 4))]


def test_the_ends_of_the_range() -> None:
    sigma = 1000
    table = rounded_gaussian(sigma)
    largest = max(k for k in range(18 * sigma, table.reach) if table.survival(k) > 0)
    assert draw_rounded_gaussian(Scripted(0, 0, 0, 0), sigma, 1, "test").tolist() == [largest]
    assert draw_rounded_gaussian(Scripted(1, 0, 0, 0), sigma, 1, "test").tolist() == [-largest]
    assert draw_rounded_gaussian(Scripted(TOP, TOP - 1), sigma, 2, "test").tolist() == [0, 0]
    # The same top word as t(1), everything after it above: past t(1), hence 0.
    tie = [(table.survival(1) >> 192) << 1, TOP, TOP, TOP]
    assert draw_rounded_gaussian(Scripted(*tie), sigma, 1, "test").tolist() == [0]
    assert draw_rounded_gaussian(SYSTEM, sigma, 0, "test").tolist() == []


def test_keys_decide_across_blocks_and_orders() -> None:
    keys = [f"item {i}" for i in range(70_000)]  # more than one block
    forward = draw_rounded_gaussian(SeededRandomness(1), 4000, 70_000, "test", pa.array(keys))
    backward = draw_rounded_gaussian(
        SeededRandomness(1), 4000, 70_000, "test", pa.array(keys[::-1])
    )
    assert (forward == backward[::-1]).all()
    with pytest.raises(UsageError, match="keys"):
        draw_rounded_gaussian(SYSTEM, 4000, 3, "test", pa.array(keys))


@pytest.mark.parametrize(
    ("sigma", "floor"),
    # The last is as a release's threshold would be: 1e-9.
    [(5, -4), (5, 0), (5, 1), (5, 25), (12_000, 72_000)],
)
def test_noise_above_a_floor(sigma: int, floor: int) -> None:
    drawn = draw_noise_at_least(SYSTEM, sigma, floor, 30_000, "test")
    assert drawn.min() >= floor
    step, whole = max(1, sigma // 60), tail(sigma, floor)
    edges = [
        k
        for k in range(floor + step, floor + 12 * sigma, step)
        if min(tail(sigma, k), tail(sigma, k - step) - tail(sigma, k)) > 1e-3 * whole
    ]
    assert_tails(drawn, edges, [tail(sigma, k) / whole for k in edges])


def test_noise_above_a_floor_that_is_out_of_reach() -> None:
    for floor in (15 * 100, 19 * 100 + 1, 10**9):
        with pytest.raises(UsageError, match="too small"):
            draw_noise_at_least(SYSTEM, 100, floor, 1, "test")
    assert draw_noise_at_least(SYSTEM, 100, 12 * 100, 1, "test").min() >= 1200


@pytest.mark.parametrize(
    ("n", "p"), [(10, Fraction(3, 10)), (1000, Fraction(1, 2)), (37, Fraction(99, 100))]
)
def test_binomial_weights_are_the_exact_probabilities(n: int, p: Fraction) -> None:
    weights = dict(approximate_binomial_weights(n, p))
    whole = sum(weights.values())
    choose, moved = 1, Fraction(0)
    for k in range(n + 1):
        moved += abs(Fraction(weights.get(k, 0), whole) - choose * p**k * (1 - p) ** (n - k))
        choose = choose * (n - k) // (k + 1)
    assert moved / 2 < Fraction(1, 2**235)


def test_binomial_edges() -> None:
    assert draw_binomial(SYSTEM, 0, Fraction(1, 2), "test") == 0
    assert draw_binomial(Scripted(), 9, Fraction(0), "test") == 0
    assert draw_binomial(Scripted(), 2**80, Fraction(1), "test") == 2**80
    with pytest.raises(UsageError, match="binomial"):
        draw_binomial(SYSTEM, 2**80, Fraction(1, 2), "test")  # so many weights are no table


def test_coins_are_fresh_for_every_level():
    ones = np.ones(300, dtype=np.int64)
    tosses = [count_heads(SYSTEM, ones, 2**63, f"level {level}") for level in range(2)]
    assert not np.array_equal(*tosses)  # equal with probability 2^-300


class Counting(SystemRandomness):
    """Counts the rows for which words are drawn."""

    def __init__(self) -> None:
        self.rows = 0

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        self.rows += count
        return super().random_words(count, purpose, keys)


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("SELECT dphh_noise(name, 1000, 'test') AS noise FROM items", 10_000),
        ("SELECT dphh_noise('same', 1000, 'test') AS noise FROM items", 10_000),
        ("SELECT dphh_noise(NULL, 1000, 'test') AS noise FROM items", 10_000),
        ("SELECT dphh_noise(kind, 1000, 'test') AS noise FROM items", 10_000),
        ("SELECT dphh_noise(kind, 1000, 'test') AS noise FROM items GROUP BY kind", 8),
        (
            "SELECT noise, again FROM (SELECT dphh_noise(name, 1000, 'test') AS noise,"
            " dphh_noise(name, 1000, 'test') AS again FROM items) WHERE noise <> again",
            20_000,
        ),
        ("SELECT dphh_noise(name, 1000, 'test') AS noise FROM items WHERE id < 0", 0),
    ],
)
def test_duckdb_draws_once_a_row(call: str, rows: int) -> None:
    source = Counting()
    con = duckdb.connect()
    register_draws(con, source)
    con.execute(
        "CREATE TABLE items AS SELECT range AS id, 'item ' || range AS name,"
        " CASE WHEN range % 8 > 0 THEN 'kind ' || range % 8 END AS kind FROM range(10000)"
    )
    con.execute(f"CREATE TABLE noised AS {call}")
    assert source.rows == rows
    counts = con.execute("SELECT count(*), count(noise), count(DISTINCT noise) FROM noised")
    kept, not_null, distinct = counts.fetchall()[0]
    assert not_null == kept
    assert distinct >= kept / 10
    con.execute("SELECT sum(noise) FROM noised").fetchall()
    assert source.rows == rows  # reading what was written draws nothing


def test_entries_fit_the_words() -> None:
    assert (
        rounded_gaussian(1).survival(1) < TABLE_ONE // 2
    )  # 63 bits and a sign: what inversion assumes
