"""Random words that a test deals, and the functions that draw, in a bare DuckDB."""

import duckdb
import numpy as np
import pyarrow as pa

from dphh.engines.duckdb.functions import register
from dphh.udfs.draws.randomness import Randomness, RandomWords
from dphh.udfs.functions import functions
from dphh.udfs.text.vocabulary import Vocabulary

#: How often a sound sampler may fail one statistical test.
CHANCE = 1e-9


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
    """Register `dphh_noise`, `dphh_votes`, `dphh_word` and `dphh_report`."""
    found = functions(randomness)
    for name in ("noise", "votes", "word", "report"):
        register(con, name, found[name], Vocabulary(), [])
