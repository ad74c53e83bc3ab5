"""A unit of several columns: one combination of values, on every engine, and what is said of it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from math import isqrt

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dphh import BudgetRefused, Corpus, CorpusError, UsageError, counts, items, ldp_trie, trie
from dphh.ledger import Source, source_of
from dphh.plan import plan_from_json
from tests.engines.levels import histogram
from tests.engines.tries import grown, prefixes

#: Names that run into one another where they are put side by side, or together with their lengths.
NAMES = st.sampled_from(["", "1", "11", "1:1", ":", "é", "1:11:1", "a,b", "a"])
ROWS = st.lists(
    st.tuples(NAMES, NAMES, st.sampled_from(["x", "y", "z", "x y"])), min_size=1, max_size=20
)
FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def written(tmp_path, rows, user=("who", "month"), **options):
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "month", "what"], orient="row").write_parquet(path)
    return Corpus(path, user=user, **({"text": "what"} | options))


def plain_histogram(rows, max_items):
    held = defaultdict(set)
    for *unit, text in rows:
        held[tuple(unit)] |= set(text.split())
    weights = defaultdict(int)
    for words in held.values():
        assert len(words) <= max_items
        for word in words:
            weights[word] += isqrt(4**10 // len(words))
    return dict(weights)


@given(rows=ROWS)
@example(rows=[("a", "bc", "x"), ("ab", "c", "x"), ("a:", "b", "x"), ("a", ":b", "x")])
@FEW
def test_each_combination_of_values_is_one_unit(engine, tmp_path, no_noise, rows):
    corpus = written(tmp_path, rows)
    assert histogram(engine, corpus, no_noise, 10) == plain_histogram(rows, 10)


def test_columns_may_be_texts_whole_numbers_dates_and_truth_values(engine, tmp_path, no_noise):
    month = dt.date(2026, 5, 1)
    for values in ([1, 11, 1], [month, dt.date(2026, 6, 1), month], [True, False, True]):
        rows = [("ann", value, word) for value, word in zip(values, "xxy", strict=True)]
        corpus = written(tmp_path, rows)
        assert histogram(engine, corpus, no_noise, 10) == plain_histogram(rows, 10)


def test_a_column_whose_equal_values_are_written_apart_is_refused(engine, tmp_path, ledger):
    corpus = written(tmp_path, [("ann", 0.0, "x"), ("ann", -0.0, "y")])
    with pytest.raises(CorpusError, match=r"^user, column 2: column month is .*; cast it"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    missing = written(tmp_path, [("ann", 1, "x")], user=["who", "year"])
    with pytest.raises(CorpusError, match=r"^user, column 2: the corpus has no column 'year'"):
        items(missing, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)
    assert ledger.runs() == []


@pytest.mark.parametrize("nobody", [("ann", None), (None, "may"), (None, None)])
def test_a_row_that_one_of_the_columns_does_not_say_whose_it_is_is_nobodys(
    engine, tmp_path, ledger, nobody
):
    schema = {"who": pl.String, "month": pl.String, "what": pl.String}
    rows = [("ann", "may", "x"), (*nobody, "secret")]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)
    corpus = Corpus(path, user=["who", "month"], text="what")
    with pytest.raises(CorpusError, match="a NULL user id"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine, ledger=ledger)


def test_in_a_trie_each_combination_has_one_sequence(engine, tmp_path):
    rows = [("ann", month, word) for month, word in ((1, "ab"), (1, "ab"), (2, "ac"), (11, "ab"))]
    found = grown(engine, written(tmp_path, rows, text=None, item="what"), 2, 2)
    assert [prefixes(level) for level in found] == [{(("a",), False)}, {(("a", "b"), False)}]


def test_nobody_takes_it_for_a_promise_to_a_person(tmp_path, ledger):
    corpus = written(tmp_path, [("ann", "may", "x")] * 3)
    plan = items(corpus, epsilon=1, delta=1e-6)
    assert "one combination of values of who and month" in plan.privacy.unit
    assert "NOT a person" in plan.privacy.unit
    assert "k combinations is k such users" in plan.privacy.caveats[0]
    said = " ".join(plan.describe(ledger).split())
    assert "NOT a person" in said
    assert "all rows of one value of the user column" not in said
    assert "NOT a person" in plan._repr_html_()
    privacy = plan.run(ledger=ledger).manifest["privacy"]
    assert privacy == plan.privacy.to_json()
    # And not of a user where there is one column, however it is spelled.
    single = items(written(tmp_path, [("ann", "may", "x")], user=["who"]), epsilon=1, delta=1e-6)
    assert single.corpus.user == "who"
    assert single.privacy == single.price.privacy


@pytest.mark.parametrize("verb", ["trie", "ldp_trie"])
def test_every_verb_says_so(tmp_path, verb):
    corpus = written(tmp_path, [("ann", "may", "x")], text=None, item="what")
    plan = (
        trie(corpus, epsilon=1, delta=1e-6, max_length=3)
        if verb == "trie"
        else ldp_trie(corpus, local_epsilon=4, delta=1e-6, users_per_level=500, contributions=1,
                      max_length=2, keep=2)
    )  # fmt: skip
    assert "NOT a promise to a person" in plan.privacy.caveats[0]
    assert plan_from_json(plan.dumps()) == plan


def test_numbers_of_people_are_not_counted_by_several_columns(tmp_path, ledger):
    corpus = written(tmp_path, [("ann", "may", "x")])
    with pytest.raises(UsageError, match="name the one column of user ids"):
        counts(corpus, of=["x"], epsilon=1, delta=1e-6).run(ledger=ledger)


def test_the_account_knows_its_unit_and_keeps_to_it(tmp_path, ledger):
    rows = [("ann", "may", "x")]
    source = source_of(written(tmp_path, rows))
    account = ledger.add("months", source, 1.0, 1e-6)
    assert account.user == ("who", "month")
    assert "promised to each combination of who and month; less to a person" in repr(account)
    assert Source.from_json(source.to_json()) == source
    for user in ("who", "month", ["month", "who"]):
        with pytest.raises(BudgetRefused, match="protects combinations of the columns"):
            items(written(tmp_path, rows, user=user), epsilon=0.1, delta=1e-8).run(ledger=ledger)
    items(written(tmp_path, rows), epsilon=0.1, delta=1e-8).run(ledger=ledger)
    (entry,) = ledger.runs()
    assert entry.parameters["user"] == ["who", "month"]
    assert entry.source.user == ("who", "month")


@pytest.mark.parametrize("user", ["", [], [""], ["who", "who"], [1], None, {"who"}])
def test_what_is_no_unit_is_refused(tmp_path, user):
    with pytest.raises(UsageError, match="user: found"):
        Corpus(tmp_path / "corpus.parquet", user=user, text="what")
