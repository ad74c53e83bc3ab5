"""`trie` on every engine: one sequence a user, the paper's loop, batches by their law, releases.

`test_plain_sql.py` has every level as the specification has. What grows is compared here with the
paper's loop in plain Python, where everybody votes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare, hypergeom

from dphh import Corpus, CorpusError, Ledger, Release, UsageError, trie
from dphh.columns import GROWN
from dphh.corpus import as_sequences
from dphh.ledger import source_of
from dphh.levels.trie import VoteLevel
from dphh.mechanisms.trie.levels import trie_levels
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import SystemRandomness
from tests.engines.levels import CHANCE, few, host_on
from tests.engines.tries import (
    Heads,
    brute_force,
    first_levels,
    found,
    grown,
    grown_of_batches,
    plan_of,
    prefixes,
    sizes,
    whole_words,
)

#: Whatever may stand in a token, the marks that others end sequences with among them.
ODD = st.one_of(
    st.sampled_from(
        ["a", "b", "$", "\0", "\x1f", "'", '"', "\\", "]", ",", " ", "NULL", "é", "日"]
    ),
    st.text(st.sampled_from("a$\0\x1f'\","), min_size=1, max_size=2),
)
FEW_LETTERS = st.text(st.sampled_from("ab$"), max_size=5)


# The levels against brute force


@given(
    sequences=st.lists(st.lists(st.one_of(ODD, st.none(), st.just("")), max_size=4), max_size=12),
    theta=st.integers(1, 4),
    levels=st.integers(1, 6),
)
@few(10)
def test_every_level_is_the_brute_force_one(engine, written, sequences, theta, levels):
    """Also where a batch of all users votes."""
    sequences = [*sequences, ["a"]]  # empty lists alone have no type
    corpus = written(list(enumerate(sequences)), text="what", as_="list")
    cleaned = [[token for token in tokens if token] for tokens in sequences]
    expected = brute_force([tokens for tokens in cleaned if tokens], levels, theta)
    assert found(grown(engine, corpus, levels, theta)) == expected
    n = len(sequences)
    assert found(grown_of_batches(engine, corpus, levels, theta, users=n, batch=n)) == expected


@given(words=st.lists(FEW_LETTERS, min_size=1, max_size=15), theta=st.integers(1, 3))
@pytest.mark.parametrize("unit", [1, 3])
@few(6)
def test_whole_items_are_cut_into_units(engine, written, words, theta, unit):
    corpus = written(list(enumerate(words)), text=None, item="what")
    cut = [[word[i : i + unit] for i in range(0, len(word), unit)] for word in words if word]
    done = grown(engine, corpus, 7, theta, unit=unit)
    assert found(done) == brute_force(cut, 7, theta)
    counts = Counter(words)
    assert whole_words(done) == {word for word in words if word and counts[word] >= theta}
    for level in done:
        for row in level.rows.to_pylist():
            assert row["item"] == "".join(row["tokens"])


@pytest.mark.parametrize("reading, joiner", [("words", " "), ("characters", "")])
def test_the_corpus_says_what_a_token_is(engine, written, reading, joiner):
    texts = ["a b", "ab a", "a b $", "", "ab a b", "b"] * 2
    split = str.split if reading == "words" else list
    done = grown(engine, written(list(enumerate(texts)), as_=reading), 6, 2)
    assert found(done) == brute_force([split(text) for text in texts if text], 6, 2)
    for level in done:
        for row in level.rows.to_pylist():
            assert row["item"] == joiner.join(row["tokens"])


def test_a_word_that_begins_another_ends_out_of_band(engine, written):
    """ "ab" ends, "abc" and "ab$" go on: the end is no character."""
    words = ["ab"] * 3 + ["abc"] * 3 + ["ab$"] * 3 + ["a", "$", "$", "$"]
    done = grown(engine, written(list(enumerate(words)), text=None, item="what"), 4, 3)
    assert found(done) == [
        {(("a",), False), (("$",), False)},
        {(("a", "b"), False), (("$",), True)},
        {(("a", "b"), True), (("a", "b", "c"), False), (("a", "b", "$"), False)},
        {(("a", "b", "c"), True), (("a", "b", "$"), True)},
    ]


def test_nobodys_spelling_of_a_value_becomes_that_of_others_who_hold_its_equal(engine, written):
    numbers = [0.0] * 6 + [-0.0] * 5
    corpus = written([*enumerate(numbers)], text=None, item="what", as_="whole")
    expected = brute_force([str(number) for number in numbers], 5, 3)
    assert found(grown(engine, corpus, 5, 3)) == expected


def test_durations_that_are_equal_are_not_one():
    days, months = pa.MonthDayNano([0, 30, 0]), pa.MonthDayNano([1, 0, 0])
    rows = {"who": range(11), "what": pa.array([days] * 6 + [months] * 5)}
    corpus = Corpus(pa.table(rows), user="who", item="what", as_="whole")
    expected = brute_force(["30 days"] * 6 + ["1 month"] * 5, 8, 3)
    assert found(grown("duckdb", corpus, 8, 3)) == expected


@pytest.mark.parametrize("source", ["lazy", "view"])
def test_tables_in_memory_grow_the_same_trie(engine, source):
    frame = pl.DataFrame({"who": range(40), "what": ["abc", "abd", "x"] * 13 + ["abc"]})
    con = duckdb.connect()
    con.register("words", frame.to_arrow())
    corpus = {
        "lazy": lambda: Corpus(frame.lazy(), user="who", item="what"),
        "view": lambda: Corpus("words", connection=con, user="who", item="what"),
    }[source]()
    expected = brute_force(frame["what"].to_list(), 5, 13)
    assert found(grown(engine, corpus, 5, 13)) == expected


# One sequence a user


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), FEW_LETTERS), min_size=1, max_size=12),
    seed=st.integers(0, 10**6),
)
@few(6)
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


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.lists(ODD, max_size=3)), max_size=15),
    seed=st.integers(0, 10**6),
)
@few(6)
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


@given(rows=st.lists(st.tuples(st.integers(0, 4), FEW_LETTERS), min_size=1, max_size=25))
@few(6)
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


# Coins


def test_without_heads_nothing_grows_and_nobody_is_asked_again(engine, written):
    class Tails(Heads):
        def words(self, count, purpose, keys=None):
            return super().words(count, purpose, keys) - np.uint64(1)

    corpus = written([(u, "abc") for u in range(30)], text=None, item="what")
    source = Tails()
    done = grown(engine, corpus, 4, 2, randomness=source)
    assert sizes(done) == [0] * 4
    assert [level.rows.schema for level in done] == [GROWN] * 4
    if engine != "spark":  # whose executors count in copies of their own
        assert [p for p in source.purposes if p.startswith("trie/")] == ["trie/level 1"]


@pytest.mark.parametrize("stops", [2, 4])
def test_a_trie_that_stops_growing_is_done(engine, written, stops):
    rows = [(u, "x" * (stops - 1)) for u in range(9)]
    source = Heads()
    done = grown(engine, written(rows, text=None, item="what"), 6, 5, randomness=source)
    assert sizes(done) == [1] * stops + [0] * (6 - stops)
    if engine != "spark":  # whose executors count in copies of their own
        assert sum(p.startswith("trie/level") for p in source.purposes) == stops


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
    assert sizes(grown_of_batches(engine, corpus, 1, 3, users=6, batch=3)) == [1]
    with pytest.raises(CorpusError, match="users: found 5, and the corpus holds more") as said:
        grown_of_batches(engine, corpus, 1, 3, users=5, batch=3)
    assert "6" not in str(said.value)


# Releases


def test_the_papers_plan_finds_what_all_hold(engine, tmp_path):
    path = tmp_path / "many.parquet"
    pl.DataFrame({"who": range(20_000)}).with_columns(what=pl.lit("ab")).write_parquet(path)
    release = trie(
        Corpus(path, user="who", item="what"), epsilon=4, delta=1e-8, max_length=3,
        accounting="paper", users=20_000,
    ).run(engine=engine)  # fmt: skip
    assert release.to_polars().filter("ended")["item"].to_list() == ["ab"]
    levels = release.manifest["levels"]
    assert [level["released"] for level in levels] == [1, 1, 1]
    for number, level in enumerate(levels, start=1):
        assert level.keys() == {"kind", "level", "users", "batch", "theta", "released"}
        assert (level["level"], level["users"]) == (number, 20_000)
    assert "one direction" in release.privacy.adjacency


def test_a_release_holds_prefixes_and_ends_and_no_votes(engine, written, ledger, tmp_path):
    """Every fourth user's word begins with a letter of its own."""
    rows = [(u, ["abc", "abd", "zz", f"{chr(0x4E00 + u)}u"][u % 4]) for u in range(4000)]
    plan = trie(written(rows, text=None, item="what"), epsilon=2, delta=1e-6, max_length=6)
    release = plan.run(engine=engine, ledger=ledger)
    table = release.to_arrow()
    assert table.schema == GROWN
    assert table["score"].null_count == len(table)
    rows = table.to_pylist()
    found = {
        ended: [(r["level"], r["item"]) for r in rows if r["ended"] == ended] for ended in (0, 1)
    }
    assert found[0] == [(1, "a"), (1, "z"), (2, "ab"), (2, "zz"), (3, "abc"), (3, "abd")]
    assert found[1] == [(3, "zz"), (4, "abc"), (4, "abd")]
    for row in rows:
        assert len(row["tokens"]) == row["level"] - row["ended"]
        assert row["item"] == "".join(row["tokens"])
    manifest = release.manifest
    assert [level["level"] for level in manifest["levels"]] == [1, 2, 3, 4, 5, 6]
    for level, planned in zip(manifest["levels"], plan.levels, strict=True):
        assert level.keys() == {"kind", "level", "p", "numerator", "theta", "released"}
        assert level["released"] == sum(row["level"] == level["level"] for row in rows)
        assert (level["numerator"], level["theta"]) == (planned.numerator, planned.theta)
        assert level["p"] == level["numerator"] / 2**64
    assert "votes" not in release.dumps()
    loaded = Release.load(release.save(tmp_path / "out"))
    kept = ledger.release(release.run_id)
    for again in (loaded, Release.from_parquet(kept.parquet, kept.manifest)):
        assert again.to_arrow() == table and again.to_arrow().schema == GROWN
        assert again.manifest == manifest


def test_a_corpus_that_is_given_at_last_is_read_as_one_that_is_given_at_first(engine, written):
    rows = [(u, "abcd") for u in range(3000)]
    corpus = written(rows, text=None, item="what")
    asked = {"epsilon": 4, "delta": 1e-6, "max_length": 3, "unit": 2}
    first = trie(corpus, **asked).run(engine=engine)
    last = trie(**asked).run(corpus=corpus, engine=engine, again=True)
    assert first.to_arrow() == last.to_arrow()
    assert first.manifest["parameters"] == last.manifest["parameters"]
    assert [row["tokens"] for row in last] == [["ab"], ["ab", "cd"], ["ab", "cd"]]
    with pytest.raises(UsageError, match="unit: cuts whole items into pieces of 2 characters"):
        trie(**asked).run(corpus=written(rows), engine=engine)


def test_a_corpus_that_the_ledger_names_can_be_grown(engine, written, own_ledger):
    corpus = written([(u, "ab") for u in range(3000)], text=None, item="what")
    book = Ledger(own_ledger)
    book.add("words", source_of(corpus), 4.0, 1e-6)
    plan = trie(book.corpus("words"), epsilon=4, delta=1e-6, max_length=3)
    assert plan.run(engine=engine, ledger=book).to_polars()["item"].to_list() == ["a", "ab", "ab"]
