"""Votes: exact Binomials where theta is in doubt, no coins where it is not."""

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chisquare

from dphh.errors import UsageError
from dphh.testing import SeededRandomness
from dphh.udfs.noise.randomness import Randomness, RandomWords, SystemRandomness
from dphh.udfs.rules import votes as votes_module
from dphh.udfs.rules.votes import draw_votes, users_who_surely_reach_theta
from tests.draws import CHANCE

SYSTEM = SystemRandomness()
RATES = [1, 2**40, 2**57, 2**63, 2**64 - 2**60, 2**64 - 1]


class Same:
    """Every word is this one; counts what was asked for."""

    is_test = True

    def __init__(self, word: int) -> None:
        self.word = word
        self.asked: list[int] = []

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
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
    k = users_who_surely_reach_theta(rate, theta)
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
    sure = users_who_surely_reach_theta(rate, theta)
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
    monkeypatch.setattr(votes_module, "_COINS_AT_ONCE", block)
    assert draw_votes(SeededRandomness(1), users, 2**61, 5, "x", keys).tolist() == expected.tolist()
    assert sum(drawn(users.tolist(), 2**64 - 1, 5, Same(0))) == users[users >= 5].sum()
