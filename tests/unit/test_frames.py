"""What Polars, NumPy, Arrow and pandas people hand over, where a list or a column is asked for."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dphh

COST = {"epsilon": 2.0, "delta": 1e-6}
CODES = pl.DataFrame(
    {"u": range(900), "code": [n % 3 for n in range(900)], "stars": [n % 2 for n in range(900)]}
)


@pytest.mark.parametrize(
    "words",
    [pl.Series(["a", "b"]), pa.array(["a", "b"]), pa.chunked_array([["a"], ["b"]]),
     np.array(["a", "b"]), pd.Series(["a", "b"]), pd.Index(["a", "b"])],
    ids=lambda words: type(words).__name__,
)  # fmt: skip
def test_a_list_may_be_a_series_or_an_array(words):
    corpus = dphh.Corpus(CODES, user="u", item="code")
    asked = dphh.counts(corpus, of=words, by="stars", groups=words, **COST).price
    assert asked["of"] == (("a",), ("b",)) and asked["groups"] == ("a", "b")


def test_a_text_for_a_list_has_its_elements_as_people_see_them():
    lists = pl.DataFrame({"who": [1], "tags": [["New York", "a"]]})
    asked = ["New York → a", "a b", ["b", "New York"]]
    plan = lists.dphh.counts(user="who", text="tags", of=asked, **COST)
    assert plan.price["of"] == (("New York", "a"), ("a b",), ("b", "New York"))


@pytest.mark.parametrize(
    "read, token",
    [
        ({}, "You"),
        ({}, "see you"),
        ({"as_": "list", "lower": True}, "You"),
        ({"keep": "s.*"}, "you"),
    ],
)
def test_a_token_that_no_row_can_have_is_refused(read, token):
    corpus = dphh.Corpus("texts.parquet", user="u", text="t", **read)
    dphh.counts(corpus, of=[["see"]], **COST)
    with pytest.raises(dphh.UsageError, match=f"of: the corpus has no token '{token}'"):
        dphh.counts(corpus, of=[["see"], ["see", token]], **COST)


def test_integers_are_items_and_groups_of_integer_columns(ledger):
    plan = CODES.dphh.counts(
        user="u", item="code", of=[0, 1], by="stars", groups=range(1, 2), account=None, **COST
    )
    found = plan.run(ledger=dphh.Ledger(ledger.path, create=True)).to_polars()
    pairs = {(item, group) for item in "01" for group in ("1", "other")}
    assert {*found.select("item", "group_name").rows()} == pairs
    assert found["users"].is_between(100, 200).all()  # 150 each


@pytest.mark.parametrize("made", [pl.DataFrame, lambda t: pl.DataFrame(t).lazy(), pa.table])
def test_a_list_column_is_a_list_and_other_columns_are_as_they_were(made):
    frame = made({"who": [1, 2], "tags": [["a b", "c"], ["c"]], "text": ["a b", "c"]})
    assert dphh.Corpus(frame, user="who", text="tags").content.reading == "list"
    assert dphh.Corpus(frame, user="who", item="tags").content.reading == "list"
    assert dphh.Corpus(frame, user="who", text="text").content.reading == "words"
    assert dphh.Corpus(frame, user="who", text="tags", as_="words").content.reading == "words"
    assert dphh.Corpus(frame, user="who", text="missing").content.reading == "words"


def test_a_release_is_lazy_when_it_is_asked(ledger):
    release = CODES.dphh.items(user="u", item="code", **COST).run(
        ledger=dphh.Ledger(ledger.path, create=True)
    )
    menu = pl.LazyFrame({"code": ["0", "1"], "name": ["tea", "soup"]})
    joined = release.lazy().join(menu, left_on="item", right_on="code").collect()
    assert sorted(joined["name"]) == ["soup", "tea"]
