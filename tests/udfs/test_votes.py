"""Votes: exact Binomials where theta is in doubt, no coins where it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chisquare

from dphh.errors import UsageError
from dphh.testing import SeededRandomness
from dphh.udfs.draws import votes as votes_module
from dphh.udfs.draws.randomness import Randomness, SystemRandomness, Words
from dphh.udfs.draws.votes import draw_votes, surely_enough
from tests.draws import register_draws

SYSTEM = SystemRandomness()
CHANCE = 1e-9  # how often a sound sampler may fail one statistical test
RATES = [1, 2**40, 2**57, 2**63, 2**64 - 2**60, 2**64 - 1]


class Same:
    """Every word is this one; counts what was asked for."""

    is_test = True

    def __init__(self, word: int) -> None:
        self.word = word
        self.asked: list[int] = []

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        assert keys is None or len(keys) == count
        self.asked.append(count)
        return np.full(count, self.word, dtype=np.uint64)


def numerator(p: float) -> int:
    return int(p * 2.0**64)


def drawn(users: list[int], rate: int, theta: int, randomness: Randomness = SYSTEM) -> list[int]:
    return draw_votes(randomness, np.array(users, dtype=np.int64), rate, theta, "test").tolist()


# The law


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_votes_are_binomial(k: int, p: float) -> None:
    groups = 40_000
    counts = np.bincount(drawn([k] * groups, numerator(p), 1), minlength=k + 1)
    expected = binom.pmf(np.arange(k + 1), k, p) * groups
    large = expected >= 5
    seen = np.append(counts[large], counts[~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    kept = wanted > 0
    assert seen[~kept].sum() == 0
    assert chisquare(seen[kept], wanted[kept] * groups / wanted[kept].sum()).pvalue > CHANCE


@pytest.mark.parametrize("p, theta", [(0.227, 20), (0.00793, 12), (0.9, 3), (0.5, 1)])
def test_theta_is_reached_as_often_as_the_binomial_tail_says(p: float, theta: int) -> None:
    groups = 3000
    middle = theta / p
    sizes = sorted({max(theta, int(middle * f)) for f in (0.0, 0.6, 0.9, 1.0, 1.2, 1.5)})
    for k in sizes:
        passed = sum(votes >= theta for votes in drawn([k] * groups, numerator(p), theta))
        low, high = binom.ppf([CHANCE, 1 - CHANCE], groups, binom.sf(theta - 1, k, p))
        assert low <= passed <= high


def test_groups_do_not_share_their_coins() -> None:
    """Votes of neighbours in one call: their sums have the variance of independent ones."""
    pairs = np.array(drawn([10] * 80_000, 2**63, 1)).reshape(-1, 2)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 6 / np.sqrt(len(pairs))
    low, high = binom.ppf([CHANCE, 1 - CHANCE], 40_000, binom.pmf(10, 20, 0.5))
    assert low <= (pairs.sum(axis=1) == 10).sum() <= high


@pytest.mark.parametrize("rate", RATES)
def test_a_coin_is_heads_if_its_word_lies_below_the_numerator(rate: int) -> None:
    assert drawn([7], rate, 7, Same(rate - 1)) == [7]
    assert drawn([7], rate, 7, Same(rate)) == [0]


@pytest.mark.parametrize("rate", [0, -1, 2**64, 2**65])
def test_rates_of_nothing_and_of_all_are_refused(rate: int) -> None:
    with pytest.raises(UsageError, match="multiple of 2\\^-64 between 0 and 1"):
        drawn([5], rate, 2)


# The short cuts


@pytest.mark.parametrize("rate", [2**40, 2**57, 2**62, 2**63, 2**64 - 2**60, 2**64 - 1])
@pytest.mark.parametrize("theta", [1, 2, 12, 100, 5000])
def test_surely_enough_is_as_sure_as_it_says(rate: int, theta: int) -> None:
    """With 60 digits: P[Bin(k, p) < theta] <= 2^-500; and not so much earlier."""
    k = surely_enough(rate, theta)
    with mpmath.workdps(60):
        p = mpmath.mpf(rate) / 2**64

        def fails(users: int) -> mpmath.mpf:
            # Up to theta - 1 the terms rise, as theta < k p: the largest times theta is enough.
            j = theta - 1
            largest = mpmath.binomial(users, j) * p**j * (1 - p) ** (users - j)
            return theta * largest

        assert theta - 1 < k * p
        assert fails(k) <= mpmath.mpf(2) ** -500 * theta
        if theta <= 100:
            terms = (mpmath.binomial(k, j) * p**j * (1 - p) ** (k - j) for j in range(theta))
            assert mpmath.fsum(terms) <= mpmath.mpf(2) ** -500
        if rate <= 2**57:  # Poisson-like: Chernoff is close, so hardly any coin is tossed in vain
            assert fails(int(k * 0.9)) > mpmath.mpf(2) ** -500


def test_where_theta_is_out_of_reach_or_sure_no_coin_is_tossed() -> None:
    rate, theta = numerator(0.3), 10
    sure = surely_enough(rate, theta)
    source = Same(0)
    assert drawn([1, 9, 10, sure - 1, sure, 10**15], rate, theta, source) == [
        0, 0, 10, sure - 1, theta, theta,
    ]  # fmt: skip
    assert sum(source.asked) == 10 + sure - 1
    assert drawn([0, 9, sure], rate, theta, Same(2**64 - 1)) == [0, 0, theta]


# Blocks


@pytest.mark.parametrize("block", [1, 7, 40, 10**6])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    users = rng.integers(0, 60, 300)
    keys = pa.array([f"group {i}" for i in range(300)])
    expected = draw_votes(SeededRandomness(1), users, 2**61, 5, "x", keys)
    monkeypatch.setattr(votes_module, "_BLOCK", block)
    assert draw_votes(SeededRandomness(1), users, 2**61, 5, "x", keys).tolist() == expected.tolist()
    assert sum(drawn(users.tolist(), 2**64 - 1, 5, Same(0))) == users[users >= 5].sum()


def test_no_more_words_than_a_block_are_held_at_a_time() -> None:
    block = votes_module._BLOCK
    sizes = [3 * block + 5, 10, block, block + 1, *[1000] * 9000]
    source = Same(0)
    rate = 2**30  # so low that nothing is sure
    assert drawn(sizes, rate, 5, source) == sizes
    assert sum(source.asked) == sum(sizes)
    assert max(source.asked) == block


# Seeds, and the functions in DuckDB


def test_a_seeds_votes_do_not_hang_on_the_order_of_rows() -> None:
    users = np.arange(3, 203)
    keys = [f"{i}\x1ftoken" for i in range(200)]
    order = np.random.default_rng(0).permutation(200)
    one = draw_votes(SeededRandomness(4), users, 2**62, 3, "p", pa.array(keys))
    two = draw_votes(
        SeededRandomness(4), users[order], 2**62, 3, "p", pa.array([keys[i] for i in order])
    )
    assert two.tolist() == one[order].tolist()
    other = draw_votes(SeededRandomness(4), users, 2**62, 3, "another level", pa.array(keys))
    assert other.tolist() != one.tolist()


@contextmanager
def connected(randomness: Randomness) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        register_draws(con, randomness)
        yield con


VOTES = """
    CREATE OR REPLACE TABLE votes AS
    SELECT i, dphh_votes('group ' || i, 5 + i % 50, CAST($rate AS UBIGINT), 5, 'p') AS votes
    FROM range(9000) AS r(i) ORDER BY i {direction}
"""


@pytest.mark.parametrize("rate", [1, 2**62, 2**63 + 1, 2**64 - 1])
def test_in_duckdb_a_seeds_votes_are_those_of_python(rate: int) -> None:
    users = np.array([5 + i % 50 for i in range(9000)])
    keys = pa.array([f"group {i}" for i in range(9000)])
    expected = draw_votes(SeededRandomness(4), users, rate, 5, "p", keys).tolist()
    with connected(SeededRandomness(4)) as con:
        for direction in ("ASC", "DESC"):
            con.execute(VOTES.format(direction=direction), {"rate": rate})
            found = con.execute("SELECT votes FROM votes ORDER BY i").fetchall()
            assert [votes for (votes,) in found] == expected


def test_in_duckdb_coins_are_tossed_once_a_row() -> None:
    source = Same(0)
    with connected(source) as con:
        con.execute(VOTES.format(direction="ASC"), {"rate": 2**62})
        con.execute("SELECT count(*), sum(votes) FROM votes WHERE votes >= 5").fetchall()
        con.execute("FROM votes WHERE votes >= 5").fetchall()
    assert sum(source.asked) == sum(5 + i % 50 for i in range(9000))


def test_in_duckdb_rows_that_look_alike_toss_coins_of_their_own() -> None:
    with connected(SYSTEM) as con:
        con.execute(
            "CREATE TABLE votes AS SELECT dphh_votes('same', 40, CAST(1 AS UBIGINT) << 63, 1, 'p') "
            "AS votes, dphh_word('same', 'p') AS word FROM range(20000)"
        )
        found = con.execute("SELECT votes, word FROM votes").fetchall()
    assert len({word for _, word in found}) == 20_000
    counts = Counter(votes for votes, _ in found)
    low, high = binom.ppf([CHANCE, 1 - CHANCE], 20_000, binom.pmf(20, 40, 0.5))
    assert low <= counts[20] <= high


def test_in_duckdb_a_row_without_a_key_has_its_word_too() -> None:
    with connected(SeededRandomness(0)) as con:
        ((null, empty, again),) = con.execute(
            "SELECT dphh_word(NULL, 'p'), dphh_word('', 'p'), dphh_word('', 'p')"
        ).fetchall()
        assert con.execute("SELECT dphh_word('a', 'p') FROM range(0)").fetchall() == []
    assert None not in (null, empty) and null != empty == again
