"""A corpus says where and what; making one reads nothing and refuses what cannot be."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from dphh import Corpus, UsageError


def test_data_in_memory_cannot_be_opened_from_the_ledger(ledger):
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    ledger.add("frames", Corpus(frame, user="who", text="what"), 1.0, 1e-6)
    with pytest.raises(UsageError, match="table in memory"):
        ledger.corpus("frames")


def test_a_corpus_prints_where_its_data_is_and_no_row_of_it():
    frame = pl.DataFrame({"who": [1], "what": ["a secret"]})
    for source in (frame, frame.lazy(), frame.to_arrow(), duckdb.sql("SELECT * FROM frame")):
        printed = repr(Corpus(source, user="who", text="what", lower=False, account="diary"))
        assert "secret" not in printed
        assert "user='who', text='what', lower=False, account='diary')" in printed
    assert repr(Corpus("/a.parquet", user="u", item="i", unit=2)) == (
        "Corpus('/a.parquet', user='u', item='i', unit=2)"
    )
    listed = repr(Corpus(["/a", "/b"], user="u", text="t", as_="characters"))
    assert listed == "Corpus(['/a', '/b'], user='u', text='t', as_='characters')"
