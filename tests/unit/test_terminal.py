"""What is printed fits the terminal, in characters of one column and of two, and has no row."""

import duckdb
import polars as pl
import pytest

from dphh import Corpus, Ledger, ngrams
from dphh.wording.lines import width_of
from tests.report.made import items

ITEMS = [
    "soup",
    "红烧 豆腐",
    "had miso soup 🍜",
    "a" * 90,
    "豆" * 90,
    "\x1b[31mred",
    "e\u0301té",
    "👨\u200d👩\u200d👧 home",
]


@pytest.mark.parametrize("columns", [80, 130])
def test_lines_fit_and_numbers_stand_below_one_another(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = repr(items(ITEMS)).splitlines()
    assert max(map(width_of, lines)) <= columns
    assert len({width_of(line) for line in lines if line.endswith((".0", ".9"))}) == 1
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("columns", [80, 130])
def test_plans_and_accounts_fit(columns, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    book = Ledger(tmp_path / "ledger.sqlite")
    corpus = Corpus(tmp_path / "a.parquet", user="who", text="what", account="notes")
    book.add("notes", corpus, epsilon=3, delta=1e-6)
    plan = ngrams(corpus, max_n=3, epsilon=1, delta=1e-7)
    for said in (plan.describe(book), repr(book.status("notes"))):
        shown = said.replace(f"{tmp_path}/", "")  # a path is shown whole
        assert max(map(len, shown.splitlines())) <= columns


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
