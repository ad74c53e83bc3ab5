"""`trie` on every engine, against the paper's loop in plain Python."""

from __future__ import annotations

from collections import Counter

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
from dphh.ledger import source_of
from dphh.testing import SeededRandomness
from tests.engines.tries import (
    FEW,
    FEW_LETTERS,
    ODD,
    Heads,
    brute_force,
    first_levels,
    found,
    grown,
    grown_of_batches,
    sizes,
    whole_words,
)

#: How often a test of chance may fail a right mechanism.
CHANCE = 1e-9


# The levels against brute force


@given(
    sequences=st.lists(st.lists(st.one_of(ODD, st.none(), st.just("")), max_size=4), max_size=12),
    theta=st.integers(1, 4),
    levels=st.integers(1, 6),
)
@FEW
def test_every_level_is_the_brute_force_one(engine, written, sequences, theta, levels):
    sequences = [*sequences, ["a"]]  # empty lists alone have no type
    corpus = written(list(enumerate(sequences)), text="what", as_="list")
    cleaned = [[token for token in tokens if token] for tokens in sequences]
    expected = brute_force([tokens for tokens in cleaned if tokens], levels, theta)
    assert found(grown(engine, corpus, levels, theta)) == expected


@given(words=st.lists(FEW_LETTERS, min_size=1, max_size=15), theta=st.integers(1, 3))
@pytest.mark.parametrize("unit", [1, 2, 3])
@FEW
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


@given(texts=st.lists(st.lists(st.sampled_from(["a", "b", "ab", "$"]), max_size=4), min_size=1))
@pytest.mark.parametrize("reading, joiner", [("words", " "), ("characters", "")])
@FEW
def test_the_corpus_says_what_a_token_is(engine, written, texts, reading, joiner):
    written_out = [joiner.join(words) for words in texts]
    split = str.split if reading == "words" else list
    sequences = [split(text) for text in written_out]
    corpus = written(list(enumerate(written_out)), as_=reading)
    done = grown(engine, corpus, 6, 2)
    assert found(done) == brute_force([tokens for tokens in sequences if tokens], 6, 2)
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


def test_tokens_that_a_separator_would_confuse_are_different(engine, written):
    rows = [["a\x1fb", "c"], ["a", "b\x1fc"], ["a", "b", "c"], ["a, b", "c"], ["[a", "b]"]]
    corpus = written(list(enumerate(rows * 2)), text="what", as_="list")
    assert found(grown(engine, corpus, 4, 2)) == brute_force(rows * 2, 4, 2)
    assert found(grown(engine, corpus, 4, 3)) == brute_force(rows * 2, 4, 3)


def test_lists_of_numbers_are_lists_of_their_digits(engine, written):
    corpus = written([(1, [1, 20]), (2, [1, 20, None]), (3, [1])], text="what", as_="list")
    assert found(grown(engine, corpus, 3, 2)) == brute_force([["1", "20"]] * 2 + [["1"]], 3, 2)


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


@pytest.mark.parametrize("length, ended", [(3, False), (4, True)])
def test_max_length_counts_the_end(engine, written, length, ended):
    done = grown(engine, written([(u, "abc") for u in range(5)], text=None, item="what"), length, 5)
    assert len(done) == length
    assert (whole_words(done) == {"abc"}) == ended


@pytest.mark.parametrize("source", ["polars", "lazy", "arrow", "relation", "view"])
def test_tables_in_memory_grow_the_same_trie(engine, source):
    frame = pl.DataFrame({"who": range(40), "what": ["abc", "abd", "x"] * 13 + ["abc"]})
    con = duckdb.connect()
    con.register("frame", frame.to_arrow())
    con.execute("CREATE VIEW words AS FROM frame")
    corpus = {
        "polars": lambda: Corpus(frame, user="who", item="what"),
        "lazy": lambda: Corpus(frame.lazy(), user="who", item="what"),
        "arrow": lambda: Corpus(frame.to_arrow(), user="who", item="what"),
        "relation": lambda: Corpus(con.sql("FROM words"), user="who", item="what"),
        "view": lambda: Corpus("words", connection=con, user="who", item="what"),
    }[source]()
    expected = brute_force(frame["what"].to_list(), 5, 13)
    assert found(grown(engine, corpus, 5, 13)) == expected
    release = trie(corpus, epsilon=8, delta=0.1, max_length=4).run(engine=engine)
    assert release.to_arrow().schema == GROWN


@pytest.mark.parametrize("rows", [[(1, ""), (2, None)], [(1, None)], [(1, "")]])
def test_a_corpus_of_nothing_releases_nothing(engine, written, rows):
    frame = pl.DataFrame(
        {"who": [u for u, _ in rows], "what": pl.Series([t for _, t in rows], dtype=pl.String)}
    )
    corpus = Corpus(frame, user="who", item="what")
    assert sizes(grown(engine, corpus, 3, 1)) == [0, 0, 0]
    assert sizes(grown_of_batches(engine, corpus, 3, 1, users=5, batch=5)) == [0, 0, 0]


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


@pytest.mark.parametrize("stops", [2, 3, 4])
def test_a_trie_that_stops_growing_is_done(engine, written, stops):
    rows = [(u, "x" * (stops - 1)) for u in range(9)]
    source = Heads()
    done = grown(engine, written(rows, text=None, item="what"), 6, 5, randomness=source)
    assert sizes(done) == [1] * stops + [0] * (6 - stops)
    if engine != "spark":  # whose executors count in copies of their own
        assert sum(p.startswith("trie/level") for p in source.purposes) == stops


def test_a_seeds_release_does_not_hang_on_the_order_of_rows(engine, written):
    rng = np.random.default_rng(1)
    rows = [(int(u), "".join(rng.choice([*"ab"], rng.integers(1, 5)))) for u in range(300)]
    rows += [(u, "bb") for u in range(0, 300, 7)]
    runs = []
    for seed in (5, 5, 6):
        rng.shuffle(rows)
        corpus = written([(u, w) for u, w in rows], text=None, item="what")
        runs.append(found(grown(engine, corpus, 5, 9, randomness=SeededRandomness(seed))))
    assert runs[0] == runs[1] != runs[2]


# Batches of a fixed size, as the papers draw them


@given(
    sequences=st.lists(st.lists(ODD, min_size=1, max_size=4), min_size=1, max_size=12),
    theta=st.integers(1, 3),
)
@FEW
def test_a_batch_of_all_is_the_brute_force(engine, written, sequences, theta):
    corpus = written(list(enumerate(sequences)), text="what", as_="list")
    n = len(sequences)
    done = grown_of_batches(engine, corpus, 5, theta, users=n, batch=n)
    assert found(done) == brute_force(sequences, 5, theta)


@pytest.mark.parametrize("batch", [1, 37, 200])
def test_just_so_many_different_users_vote_and_anew_at_each_level(engine, written, batch):
    """Everybody holds a sequence of their own: who votes is released."""
    n = 200
    corpus = written([(u, [f"u{u}", "x"]) for u in range(n)], text="what", as_="list")
    both = 0
    for _ in range(5):
        one, two = grown_of_batches(engine, corpus, 2, 1, users=n, batch=batch)
        assert one.rows.num_rows == batch
        both += two.rows.num_rows
    # Of `batch` who voted at first, Hypergeometric(n, batch, batch) are drawn again.
    low, high = (5 * batch if batch == n else f for f in (0, 5 * batch - 1))
    if 1 < batch < n:
        mean, deviation = hypergeom.stats(n, batch, batch)
        low, high = 5 * mean - 6 * (5 * deviation) ** 0.5, 5 * mean + 6 * (5 * deviation) ** 0.5
    assert low <= both <= max(high, 5 if batch == 1 else high)


def test_each_user_is_drawn_as_often_as_any_other(engine, written):
    n, batch, runs = 12, 4, 200
    corpus = written([(u, f"u{u}") for u in range(n)])
    batches = first_levels(engine, corpus, runs, 1, users=n, batch=batch)
    drawn = Counter(token for tokens in batches for token in tokens)
    assert drawn.total() == runs * batch
    assert chisquare([drawn[f"u{u}"] for u in range(n)]).pvalue > CHANCE


@pytest.mark.parametrize("holders", [20, 19])
def test_where_theta_is_the_batch_one_who_holds_another_word_stops_it(engine, written, holders):
    """A word that all hold is always found, one that all but one hold unless that one is drawn."""
    n, batch, runs = 20, 5, 200
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


# Releases


@pytest.fixture
def release(engine, written, ledger):
    """Every fourth user's word begins with a letter of its own."""
    rows = [(u, ["abc", "abd", "zz", f"{chr(0x4E00 + u)}u"][u % 4]) for u in range(4000)]
    corpus = written(rows, text=None, item="what")
    return trie(corpus, epsilon=2, delta=1e-6, max_length=6).run(engine=engine, ledger=ledger)


def test_a_release_holds_prefixes_and_ends_and_no_votes(release):
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


def test_every_prefix_of_what_is_released_is_released(release):
    rows = release.to_arrow().to_pylist()
    kept = {tuple(row["tokens"]) for row in rows if not row["ended"]} | {()}
    assert all(tuple(row["tokens"][: row["level"] - 1]) in kept for row in rows)


def test_the_manifest_says_what_each_level_did(release):
    manifest = release.manifest
    frame = release.to_polars()
    plan = trie(epsilon=2, delta=1e-6, max_length=6)
    assert [level["level"] for level in manifest["levels"]] == [1, 2, 3, 4, 5, 6]
    for level, planned in zip(manifest["levels"], plan.levels, strict=True):
        assert level.keys() == {"kind", "level", "p", "numerator", "theta", "released"}
        assert level["released"] == len(frame.filter(level=level["level"]))
        assert (level["numerator"], level["theta"]) == (planned.numerator, planned.theta)
        assert level["p"] == level["numerator"] / 2**64
    assert manifest["verb"] == "trie"
    assert manifest["parameters"]["accounting"] == "path"
    assert manifest["privacy"] == plan.privacy.to_json()
    assert manifest["parameters"].keys() == dict(plan.parameters).keys() | {"user", "content"}
    assert manifest["parameters"]["content"]["unit"] == 1
    assert manifest["randomness"] == "operating system"
    assert "votes" not in release.dumps()


def test_a_release_comes_back_from_its_folder_and_from_the_ledger(release, ledger, tmp_path):
    loaded = Release.load(release.save(tmp_path / "out"))
    kept = ledger.release(release.run_id)
    for again in (loaded, Release.from_parquet(kept.parquet, kept.manifest)):
        assert again.to_arrow() == release.to_arrow()
        assert again.to_arrow().schema == GROWN
        assert again.manifest == release.manifest
    assert isinstance(loaded.to_arrow(), pa.Table)


def test_a_corpus_that_is_given_at_last_is_read_as_one_that_is_given_at_first(engine, written):
    rows = [(u, "abcd") for u in range(3000)]
    corpus = written(rows, text=None, item="what")
    asked = {"epsilon": 4, "delta": 1e-6, "max_length": 3, "unit": 2}
    first = trie(corpus, **asked).run(engine=engine)
    last = trie(**asked).run(corpus=corpus, engine=engine, again=True)
    assert first.to_arrow() == last.to_arrow()
    assert first.manifest["parameters"] == last.manifest["parameters"]
    assert [row["tokens"] for row in last.to_arrow().to_pylist()] == [
        ["ab"], ["ab", "cd"], ["ab", "cd"],
    ]  # fmt: skip
    with pytest.raises(UsageError, match="unit: cuts whole items into pieces of 2 characters"):
        trie(**asked).run(corpus=written(rows), engine=engine)


def test_a_corpus_that_the_ledger_names_can_be_grown(engine, written, own_ledger):
    corpus = written([(u, "ab") for u in range(3000)], text=None, item="what")
    book = Ledger(own_ledger)
    book.add("words", source_of(corpus), 4.0, 1e-6)
    plan = trie(book.corpus("words"), epsilon=4, delta=1e-6, max_length=3)
    assert plan.run(engine=engine, ledger=book).to_polars()["item"].to_list() == ["a", "ab", "ab"]
