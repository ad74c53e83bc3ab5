"""Random words that a test deals, and the functions that draw, in a bare DuckDB; and the laws of
Gaussian noise, by other libraries than the product's arithmetic."""

import duckdb
import numpy as np
import pyarrow as pa
from mpmath import mp, mpf
from numpy.typing import ArrayLike
from scipy.stats import norm

from dphh.engines.duckdb.host import register
from dphh.udfs.functions import functions
from dphh.udfs.kernel.vocabulary import Vocabulary
from dphh.udfs.noise.randomness import Randomness, RandomWords

#: How often a sound sampler may fail one statistical test.
CHANCE = 1e-9


def exact_tail(sigma: int, k: int) -> mpf:
    """P(round(N(0, sigma^2)) >= k), to 700 bits."""
    with mp.workprec(700):
        return mp.erfc((mpf(k) - mpf(1) / 2) / (sigma * mp.sqrt(2))) / 2


def curve(epsilon: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """The delta of N(0, 1) and N(mu, 1) at epsilon (Balle & Wang 2018)."""
    epsilon, mu = np.asarray(epsilon, dtype=float), np.asarray(mu, dtype=float)
    by = np.where(mu == 0, 1.0, mu)
    second = np.exp(epsilon + norm.logsf(epsilon / by + mu / 2))
    apart = norm.sf(epsilon / by - mu / 2) - second
    return np.where(mu == 0, np.maximum(0, -np.expm1(epsilon)), apart)


class Scripted:
    """Hands out the words it was given, in order, and remembers for which purpose."""

    is_test = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)
        self.purposes: list[str] = []

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> RandomWords:
        assert count <= len(self.left), "more words were asked for than the script has"
        given, self.left = self.left[:count], self.left[count:]
        self.purposes.append(purpose)
        return np.array(given, dtype=np.uint64)


def register_draws(con: duckdb.DuckDBPyConnection, randomness: Randomness) -> None:
    """Register the functions that draw."""
    found = functions(randomness)
    for name in ("noise", "truncated_noise", "votes", "word", "report"):
        register(con, name, found[name], Vocabulary(), [])
