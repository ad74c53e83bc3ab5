"""Counts of public keys on every engine, against looking at each user and each item."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import Corpus, CorpusError, counts, exact_ngrams, ngrams
from dphh.mechanisms.counts.levels import draw_counts
from dphh.testing import SeededRandomness
from tests.conftest import full
from tests.engines.levels import host_on
from tests.udfs.test_given_grams import looked_up

WORDS = ["a", "b", "c", "dd", "é", "\x1f", "\\", "日本"]
ITEMS = (("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "a"), ("zz",), ("\x1f",), ("é", "\\"))
ROWS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.lists(st.sampled_from([*WORDS, "a", "b", "a", "b", ""]), max_size=6),
        st.sampled_from(["DE", "FR", "ES", "other", None]),
    ),
    min_size=1,
    max_size=14,
)
FEW = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
BUDGET = {"epsilon": 1.0, "delta": 1e-8}


def as_corpus(tmp_path, rows):
    path = tmp_path / "corpus.parquet"
    schema = {"who": pl.Int64, "what": pl.List(pl.String), "where": pl.String}
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)
    return Corpus(str(path), user="who", text="what", as_="list")


def drawn(engine, plan, randomness):
    """The noised sums of all keys, as the engine gives them."""
    (level,) = plan.levels
    with host_on(engine, plan.corpus, randomness) as host:
        table = draw_counts(host, level, plan["of"], plan["groups"])
    found = dict(zip(table["key"].to_pylist(), table["noisy"].to_pylist(), strict=True))
    assert sorted(found) == list(range(level.weighing.keys + level.weighing.octaves))
    return [found[key] for key in sorted(found)]


def by_user(rows):
    users = defaultdict(list)
    for user, words, country in rows:
        users[user].append((words, {"DE": 0, "FR": 1}.get(country, 2)))
    return list(users.values())


@given(rows=ROWS, most=st.sampled_from([1, 2, 100]), grouped=st.booleans())
@FEW
def test_sums_are_those_of_looking_at_each_user(engine, tmp_path, no_noise, rows, most, grouped):
    groups = {"by": "where", "groups": ["DE", "FR"]} if grouped else {}
    plan = counts(as_corpus(tmp_path, rows), of=ITEMS, max_held=most, **groups, **BUDGET)
    users = by_user(rows)
    texts = [[words for words, _ in user] for user in users]
    of_texts = [[group if grouped else 0 for _, group in user] for user in users]
    expected = looked_up(texts, ITEMS, plan.levels[0].weighing, of_texts, 3 if grouped else 1)
    assert drawn(engine, plan, no_noise) == expected.tolist()


@given(rows=ROWS, most=st.sampled_from([1, 3]), victim=st.integers(0, 5))
@FEW
def test_whoever_comes_or_goes_moves_all_that_is_released_by_the_priced_norm(
    engine, tmp_path, no_noise, rows, most, victim
):
    # With a user who has everything, and one who is always there.
    everything = [(5, list(item), "DE") for item in ITEMS] + [(5, WORDS, "FR"), (99, ["a"], "ES")]
    options = {"by": "where", "groups": ["DE", "FR"], "max_held": most, **BUDGET}

    def sums(found):
        return drawn(engine, counts(as_corpus(tmp_path, found), of=ITEMS, **options), no_noise)

    with_them = sums([*rows, *everything])
    without = sums([row for row in [*rows, *everything] if row[0] != victim])
    weighing = counts(of=ITEMS, **options).levels[0].weighing
    moved = sum((one - other) ** 2 for one, other in zip(with_them, without, strict=True))
    assert moved <= most * weighing.unit**2


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_seeds_release_is_the_same_on_this_engine_as_by_hand(engine, tmp_path, grouped):
    rows = [(user, WORDS[: 1 + user % 8], ["DE", None, "IT"][user % 3]) for user in range(500)]
    groups = {"by": "where", "groups": ["DE", "FR"]} if grouped else {}
    plan = counts(as_corpus(tmp_path, rows), of=ITEMS, max_held=2, **groups, **BUDGET)
    release = plan.run(engine=engine, randomness=SeededRandomness(11))
    other = plan.run(engine="duckdb", randomness=SeededRandomness(11))
    assert release.table.equals(other.table)
    assert len(release) == len(ITEMS) * (3 if grouped else 1)


def test_a_corpus_that_nobody_is_in_counts_nobody(engine, tmp_path, no_noise):
    plan = counts(as_corpus(tmp_path, []), of=ITEMS, max_held=2, **BUDGET)
    assert set(drawn(engine, plan, no_noise)) == {0}


def test_rows_of_nobody_are_refused(engine, tmp_path):
    plan = counts(as_corpus(tmp_path, [(1, ["x"], None), (None, ["y"], None)]), of=ITEMS, **BUDGET)
    with pytest.raises(CorpusError, match="a NULL user id"):
        plan.run(engine=engine, randomness=SeededRandomness(1))


@pytest.mark.parametrize("kind", ["missing", "list"])
def test_a_column_that_names_no_groups_is_refused_before_it_is_paid_for(
    engine, tmp_path, kind, ledger
):
    corpus = as_corpus(tmp_path, [(1, ["x"], "DE")])
    by = {"missing": "nowhere", "list": "what"}[kind]
    with pytest.raises(CorpusError, match="by: "):
        counts(corpus, of=ITEMS, by=by, groups=["DE"], **BUDGET).run(engine=engine, ledger=ledger)
    assert not ledger.runs()


@pytest.mark.parametrize(
    "values, first",
    [([1, 2, None], "1"), ([True, False, None], "true"), (["DE", "", None], "DE")],
)
def test_groups_are_declared_as_texts_whatever_the_columns_type(
    engine, tmp_path, no_noise, values, first
):
    path = tmp_path / "typed.parquet"
    frame = pl.DataFrame({"who": [1, 2, 3], "what": ["a", "a", "a"], "where": values}, strict=False)
    frame.write_parquet(path)
    corpus = Corpus(str(path), user="who", text="what")
    plan = counts(corpus, of=[["a"]], by="where", groups=[first], max_held=2, **BUDGET)
    unit = plan.levels[0].weighing.unit
    assert drawn(engine, plan, no_noise) == [unit, 2 * unit]


@pytest.mark.slow
def test_on_msnbc_intervals_hold_the_exact_counts_as_often_as_they_say(shared_data, tmp_path):
    rows = pl.scan_parquet(shared_data / "msnbc.parquet")
    users = rows if full() else rows.head(200_000)
    users.sink_parquet(tmp_path / "msnbc.parquet")
    corpus = Corpus(str(tmp_path / "msnbc.parquet"), user="user_id", text="text")
    found = ngrams(corpus, max_n=6, epsilon=1.0, delta=1e-7, max_items=10, counts=0.3).run()
    exact = {
        tuple(row["tokens"]): row["users"]
        for row in exact_ngrams(corpus, max_n=6).to_arrow().to_pylist()
    }
    asked = {"of": found, "top": 1_000, "epsilon": 1.0, "delta": 1e-7}
    made = [counts(corpus, max_held=most, **asked).run() for most in (30, 1_000)]
    for release in (found, *made):
        rows = release.to_arrow().to_pylist()
        held = [row["low"] <= exact.get(tuple(row["tokens"]), 0) <= row["high"] for row in rows]
        assert sum(held) / len(held) >= 0.95 - 0.03
