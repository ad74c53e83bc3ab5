"""`trie` on every engine: one sequence a user, and batches by their law.

`test_plain_sql.py` has every level as the specification has.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, chisquare, hypergeom

from dphh import CorpusError
from dphh.udfs.draws.randomness import SystemRandomness
from tests.engines.levels import CHANCE
from tests.engines.tries import (
    first_levels,
    grown,
    grown_of_batches,
    prefixes,
)


def test_a_sequence_is_drawn_in_proportion_to_its_local_frequency(engine, written):
    local = {"a": 1, "b": 2, "cc": 5}
    users = 4000
    rows = [
        (user, [f"u{user}", *word]) for user in range(users)
        for word, times in local.items() for _ in range(times)
    ]  # fmt: skip
    order = np.random.default_rng(0).permutation(len(rows))
    corpus = written([rows[i] for i in order], text="what", as_="list")
    drawn = Counter("".join(tokens[1:2]) for tokens, _ in prefixes(grown(engine, corpus, 2, 1)[1]))
    assert drawn.total() == users
    seen = [drawn[word[0]] for word in local]
    expected = np.array([*local.values()]) * users / sum(local.values())
    assert chisquare(seen, expected).pvalue > CHANCE


# Batches of a fixed size, as the papers draw them


class BeginAlike:
    """The system's words, all with the same 16 leading bits, by which a batch is first cut."""

    is_test = False

    def words(self, count, purpose, keys=None):
        return SystemRandomness().words(count, purpose, keys) >> np.uint64(16)


@pytest.mark.parametrize("draws", [SystemRandomness, BeginAlike])
@pytest.mark.parametrize("batch", [1, 37, 200])
def test_just_so_many_different_users_vote_and_anew_at_each_level(engine, written, batch, draws):
    """Everybody holds a sequence of their own: who votes is released."""
    n = 200
    corpus = written([(u, [f"u{u}", "x"]) for u in range(n)], text="what", as_="list")
    both = 0
    for _ in range(5):
        asked = {"users": n, "batch": batch, "randomness": draws()}
        one, two = grown_of_batches(engine, corpus, 2, 1, **asked)
        assert one.rows.num_rows == batch
        both += two.rows.num_rows
    # Of `batch` who voted at first, Hypergeometric(n, batch, batch) are drawn again.
    low, high = (5 * batch if batch == n else f for f in (0, 5 * batch - 1))
    if 1 < batch < n:
        mean, deviation = hypergeom.stats(n, batch, batch)
        low, high = 5 * mean - 6 * (5 * deviation) ** 0.5, 5 * mean + 6 * (5 * deviation) ** 0.5
    assert low <= both <= max(high, 5 if batch == 1 else high)


@pytest.mark.parametrize("holders", [20, 19])
def test_each_user_is_drawn_as_often_as_any_other(engine, written, holders):
    """And where theta is the batch, a word that all hold is always found, and one that all but one
    hold unless that one is drawn."""
    n, batch, runs = 20, 5, 100
    corpus = written([(u, f"u{u}") for u in range(n)])
    batches = first_levels(engine, corpus, runs, 1, users=n, batch=batch)
    drawn = Counter(token for tokens in batches for token in tokens)
    assert drawn.total() == runs * batch
    assert chisquare([drawn[f"u{u}"] for u in range(n)]).pvalue > CHANCE
    corpus = written([(u, "word" if u < holders else "other") for u in range(n)])
    times = first_levels(engine, corpus, runs, batch, users=n, batch=batch).count(["word"])
    low, high = binom.ppf([CHANCE, 1 - CHANCE], runs, 1 - (n - holders) * batch / n)
    assert low <= times <= high


def test_users_who_hold_nothing_are_drawn_like_all_others(engine, written):
    """The number of users is the theorem's, whether or not the corpus shows them all."""
    n, holders, batch = 4000, 1000, 500
    corpus = written([(u, f"u{u}" if u < holders else "") for u in range(n)])
    voted = grown_of_batches(engine, corpus, 1, 1, users=n, batch=batch)[0].rows.num_rows
    low, high = hypergeom.ppf([CHANCE, 1 - CHANCE], n, holders, batch)
    assert low <= voted <= high < batch
    voted = grown_of_batches(engine, corpus, 1, 1, users=n, batch=n)[0].rows.num_rows
    assert voted == holders


def test_more_users_than_were_said_are_refused(engine, written):
    corpus = written([(u, "a") for u in range(6)])
    assert grown_of_batches(engine, corpus, 1, 3, users=6, batch=3)[0].rows.num_rows == 1
    with pytest.raises(CorpusError, match="users: found 5, and the corpus holds more") as said:
        grown_of_batches(engine, corpus, 1, 3, users=5, batch=3)
    assert "6" not in str(said.value)
