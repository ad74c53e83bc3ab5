"""`trie` lets each user speak with one sequence, one and the same for a whole run."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dphh import CorpusError, trie
from dphh.corpus import as_sequences
from dphh.levels.trie import VoteLevel
from dphh.mechanisms.trie.levels import trie_levels
from dphh.testing import SeededRandomness
from tests.engines.levels import host_on
from tests.engines.tries import (
    FEW,
    FEW_LETTERS,
    ODD,
    Heads,
    brute_force,
    found,
    grown,
    plan_of,
    prefixes,
    sizes,
    whole_words,
)

#: How often a test of chance may fail a right mechanism.
CHANCE = 1e-9


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), FEW_LETTERS), min_size=1, max_size=12),
    seed=st.integers(0, 10**6),
)
@FEW
def test_all_levels_see_one_and_the_same_sequence_of_a_user(engine, written, rows, seed):
    """Each user's words begin with their name: what grows is the path of one word a user."""
    own = [(user, f"{user}{word}") for user, word in rows]
    done = grown(
        engine, written(own, text=None, item="what"), 7, 1, randomness=Heads(SeededRandomness(seed))
    )
    words = whole_words(done)
    assert len(words) == len({user for user, _ in own})
    assert {(int(word[0]), word) for word in words} <= set(own)
    assert found(done) == brute_force(words, 7, 1)


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


def test_a_sequence_is_drawn_anew_at_each_run(engine, written):
    corpus = written([(u, [f"u{u}", w]) for u in range(40) for w in "ab"], text="what", as_="list")
    runs = [frozenset(prefixes(grown(engine, corpus, 2, 1)[1])) for _ in range(3)]
    assert len(set(runs)) == 3


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.lists(ODD, max_size=3)), max_size=15),
    seed=st.integers(0, 10**6),
)
@FEW
def test_one_word_a_user_picks_among_the_users_sorted_rows(engine, written, rows, seed):
    """The rows' order in the corpus, and what else the user's word is used for, play no part."""
    rows = [*rows, (9, ["a"])]  # empty lists alone have no type
    draws = SeededRandomness(seed)
    chosen = []
    for user in {user for user, tokens in rows if tokens}:
        own = sorted(("\x1f".join(row), len(row), row) for who, row in rows if who == user and row)
        (word,) = draws.words(1, "one sequence a user", pa.array([str(user)])).tolist()
        chosen.append(own[word % len(own)][2])
    corpus = written(rows, text="what", as_="list")
    done = grown(engine, corpus, 4, 1, randomness=Heads(SeededRandomness(seed)))
    assert found(done) == brute_force(chosen, 4, 1)


def test_levels_that_were_run_before_are_walked_through(engine, written):
    """As a run that is resumed does: what grew is known, and nobody votes for it again."""
    words = ["abc"] * 3 + ["abd"] * 2 + ["xyz"] * 5
    corpus = as_sequences(written(list(enumerate(words)), text=None, item="what"), 1)
    before = {
        f"trie/level {level}": pa.table({"node": [0], "token": [token], "ended": [False]})
        for level, token in enumerate("ab", 1)
    }
    levels = tuple(VoteLevel(level, 1 << 63, 3) for level in (1, 2, 3))
    price = replace(plan_of(3).price, levels=levels)
    with host_on(engine, corpus, Heads()) as host:
        done = list(trie_levels(
            price, host, lambda name, draw: before[name] if name in before else draw(), ""
        ))  # fmt: skip
    assert found(done) == [{(("a",), False)}, {(("a", "b"), False)}, {(("a", "b", "c"), False)}]


@given(rows=st.lists(st.tuples(st.integers(0, 4), FEW_LETTERS), min_size=1, max_size=25))
@FEW
def test_the_most_frequent_is_taken_and_of_equals_the_first(engine, written, rows):
    counts = defaultdict(Counter)
    for user, word in rows:
        if word:
            counts[user][word] += 1
    chosen = [
        min(words, key=lambda word, words=words: (-words[word], [*word]))
        for words in counts.values()
    ]
    corpus = written(rows, text=None, item="what")
    done = grown(engine, corpus, 6, 1, choice="most-frequent")
    assert found(done) == brute_force(chosen, 6, 1)


@pytest.mark.parametrize("choice", ["drawn", "most-frequent"])
def test_rows_without_content_are_no_sequences(engine, written, choice):
    rows = [(1, ""), (1, None), (1, ""), (1, "ab"), (2, None)]
    done = grown(engine, written(rows, text=None, item="what"), 3, 1, choice=choice)
    assert whole_words(done) == {"ab"}


@pytest.mark.parametrize("choice", ["drawn", "most-frequent"])
@pytest.mark.parametrize("accounting", ["path", "paper"])
def test_rows_of_nobody_are_refused(engine, written, choice, accounting):
    corpus = written([(1, "a"), (None, "a")], text=None, item="what")
    users = 10**6 if accounting == "paper" else None
    plan = trie(
        corpus, epsilon=4, delta=1e-5, max_length=3, choice=choice, accounting=accounting,
        users=users,
    )  # fmt: skip
    with pytest.raises(CorpusError, match="user: found rows with a NULL user id"):
        plan.run(engine=engine)


def test_a_user_of_many_rows_votes_once(engine, written):
    rows = [(1, "a")] * 500 + [(2, "a"), (3, "a")]
    corpus = written(rows, text=None, item="what")
    assert sizes(grown(engine, corpus, 2, 3)) == [1, 1]
    assert sizes(grown(engine, corpus, 2, 4)) == [0, 0]
