"""What the owner may look at: exact counts and how a release compares. None of it may leave."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import Corpus, Release, UsageError, evaluate, exact_ngrams, items, ngrams, trie
from dphh.columns import SCORED
from tests.engines.ladders import held_by_user
from tests.engines.test_ngrams import ODD_ROWS, as_lists

NO_MORE = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXTS = [(1, "a b a"), (1, "c"), (2, "a b"), (3, "b a"), (4, "b a c")]


def release_of(*grams, levels=None):
    """A release made by hand, of these tuples of words."""
    rows = [
        {"level": len(gram), "item": " ".join(gram), "tokens": list(gram), "score": 9.0}
        for gram in grams
    ]
    there = levels or range(1, max(map(len, grams), default=1) + 1)
    manifest = {"run_id": "by hand", "levels": [{"level": level} for level in there]}
    return Release(pa.Table.from_pylist(rows, SCORED), manifest)


@given(rows=ODD_ROWS, max_n=st.integers(1, 4), at_least=st.integers(1, 3))
@NO_MORE
def test_exact_counts_are_the_brute_force_ones(written, rows, max_n, at_least):
    corpus, rows = as_lists(written, rows)
    found = exact_ngrams(corpus, max_n=max_n, at_least=at_least)
    expected = []
    for n in range(1, max_n + 1):
        users = Counter(gram for grams in held_by_user(rows, n).values() for gram in grams)
        expected += [
            (n, " ".join(gram), list(gram), count)
            for gram, count in users.items()
            if count >= at_least
        ]
    table = found.to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in table) == sorted(expected)
    assert len(found) == len(expected)


def test_exact_counts_refuse_to_become_a_release(written, tmp_path):
    found = exact_ngrams(written(TEXTS), max_n=2)
    with pytest.raises(UsageError, match="NOT private, not for publication"):
        found.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not isinstance(found, Release)
    assert "NOT private" in repr(found)
    assert "NOT private" in found.warning


def test_exact_counts_ask_no_ledger(written, own_ledger):
    exact_ngrams(written(TEXTS), max_n=2)
    assert not own_ledger.exists()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"max_n": 0}, "max_n: found 0; give a whole number from 1"),
        ({"max_n": True}, "max_n: found True; give a whole number from 1"),
        ({"max_n": 2, "at_least": 0}, "at_least: found 0; give a whole number from 1"),
    ],
)
def test_exact_counts_say_what_they_want(written, options, said):
    with pytest.raises(UsageError) as refused:
        exact_ngrams(written(TEXTS), **options)
    assert str(refused.value) == said


def test_exact_counts_of_a_spark_frame_say_what_to_do(spark):
    frame = spark.createDataFrame([(1, "a b")], "who INT, what STRING")
    with pytest.raises(UsageError, match="write it as Parquet"):
        exact_ngrams(Corpus(frame, user="who", text="what"), max_n=2)


def test_an_evaluation_by_hand(written):
    """Users of a: 4, b: 4, c: 2; of "a b": 2, "b a": 3, "a c": 1."""
    release = release_of(("a",), ("b",), ("z",), ("b", "a"), ("b", "b"))
    one, two = evaluate(release, written(TEXTS), at_least=(1, 2, 3, 100)).levels
    assert (one.level, one.there, one.released, one.true) == (1, 3, 3, 2)
    assert one.recall == 2 / 3
    assert one.missing_mass == 2 / 10
    assert one.spurious == pytest.approx(1 / 3)
    assert one.coverage == ((1, 2 / 3), (2, 2 / 3), (3, 1.0))
    assert (two.level, two.there, two.released, two.true) == (2, 3, 2, 1)
    assert two.recall == 1 / 3
    assert two.missing_mass == 3 / 6
    assert two.spurious == 0.5
    assert two.coverage == ((1, 1 / 3), (2, 1 / 2), (3, 1.0))


def test_an_evaluation_of_nothing_and_of_everything(written):
    corpus = written(TEXTS)
    (nothing,) = evaluate(release_of(), corpus).levels
    assert (nothing.released, nothing.recall, nothing.missing_mass) == (0, 0.0, 1.0)
    assert nothing.spurious == 0.0
    every = [tuple(row["tokens"]) for row in exact_ngrams(corpus, max_n=3).to_arrow().to_pylist()]
    for level in evaluate(release_of(*every), corpus).levels:
        assert (level.recall, level.missing_mass, level.spurious) == (1.0, 0.0, 0.0)


def test_an_evaluation_looks_at_the_lengths_of_the_release_alone(written):
    (only,) = evaluate(release_of(("b", "a"), levels=[2]), written(TEXTS)).levels
    assert only.level == 2


def test_an_evaluation_tells_words_with_spaces_from_pairs(written):
    corpus = written([(1, ["a b", "c"])], text="what", as_="list")
    _, two = evaluate(release_of(("a", "b c"), ("a b", "c")), corpus).levels
    assert (two.released, two.true) == (2, 1)


def test_an_evaluation_says_that_it_is_not_for_publication(written):
    found = evaluate(release_of(("a",)), written(TEXTS))
    assert "NOT private, not for publication" in repr(found)
    assert not hasattr(found, "save")


def test_an_evaluation_takes_counts_made_before_if_they_are_whole(written):
    corpus, release = written(TEXTS), release_of(("a",), ("a", "b"))
    counts = exact_ngrams(corpus, max_n=3)
    assert evaluate(release, counts) == evaluate(release, corpus)
    for part in (exact_ngrams(corpus, max_n=1), exact_ngrams(corpus, max_n=2, at_least=2)):
        with pytest.raises(UsageError, match=r"give exact_ngrams\(corpus, max_n=2\)"):
            evaluate(release, part)


def test_real_releases_are_evaluated(engine, written):
    rows = [(user, f"a b c w{user % 50}") for user in range(2000)]
    corpus = written(rows)
    plan = ngrams(corpus, max_n=3, max_items=4, epsilon=8, delta=1e-5)
    release = plan.run(engine=engine)
    for level in evaluate(release, corpus).levels:
        assert level.recall > 0.9
        assert level.spurious < 0.2
    (level,) = evaluate(items(corpus, epsilon=8, delta=1e-5).run(engine=engine), corpus).levels
    assert level.recall == 1.0


def test_what_is_no_set_of_items_is_not_compared(written, tmp_path):
    corpus = written([(user, "ab") for user in range(50)], text=None, item="what")
    release = trie(corpus, epsilon=4, delta=1e-3, max_length=2).run(ledger=tmp_path / "l.sqlite")
    with pytest.raises(UsageError, match="release: found a release of trie"):
        evaluate(release, corpus)
