"""`dphh.check` finds what would cost something, costs nothing itself and says nothing of users."""

from __future__ import annotations

import json

import polars as pl
import pytest

import dphh
from dphh import Corpus

ROWS = {"who": [1, 2, 3], "what": ["sentinel hello", "b", "c"]}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "corpus"
    path.mkdir()
    pl.DataFrame(ROWS).write_parquet(path / "a.parquet")
    return path


def corpus_of(folder, **more):
    return Corpus(str(folder / "*.parquet"), **{"user": "who", "text": "what", **more})


def verdicts(checked):
    return {(each.what, each.verdict) for each in checked.findings}


def said(checked, what):
    return " ".join(f"{each.found} {each.costs}" for each in checked.findings if each.what == what)


def test_what_is_well_is_well_and_nothing_is_written(folder, ledger):
    corpus = corpus_of(folder)
    checked = dphh.check(corpus, ledger=ledger)
    assert checked.ok
    assert verdicts(checked) == {
        ("columns", "good"), ("files", "good"), ("users", "good"), ("ledger", "mind"),
    }  # fmt: skip
    assert "no account holds this corpus" in repr(checked)
    assert not ledger.path.exists()
    ledger.add("survey", corpus, 1.0, 1e-6)
    assert ("ledger", "good") in verdicts(dphh.check(corpus, ledger=ledger))
    assert ledger.runs() == []


def test_rows_of_nobody_are_looked_for(folder, ledger):
    pl.DataFrame({"who": [None], "what": ["x"]}).write_parquet(folder / "b.parquet")
    assert ("users", "stops") in verdicts(dphh.check(corpus_of(folder), ledger=ledger))
    lazy = Corpus(pl.LazyFrame({"who": [1, None], "what": "x"}), user="who", text="what")
    assert ("users", "stops") in verdicts(dphh.check(lazy, ledger=ledger))


def test_an_account_that_would_refuse_is_told(folder, ledger):
    ledger.add("survey", corpus_of(folder, user="what", text="who"), 1.0, 1e-6)
    assert "protects users by the column 'what'" in said(
        dphh.check(corpus_of(folder), ledger=ledger), "ledger"
    )


def test_it_tells_no_row_and_no_number_of_them(folder, ledger):
    corpus = corpus_of(folder)
    one = dphh.check(corpus, ledger=ledger)
    pl.DataFrame({"who": [9] * 50, "what": ["sentinel"] * 50}).write_parquet(folder / "b.parquet")
    assert dphh.check(corpus, ledger=ledger) == one
    assert "sentinel" not in repr(one) + one._repr_html_() + json.dumps(one.to_json())
