"""What is printed fits the terminal, in characters of one column and of two."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dphh import Corpus, Ledger, ngrams
from dphh.columns import COLUMNS
from dphh.report.terminal import release_text
from dphh.wording.lines import padded, shorten, width_of

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


def release_of(items):
    level = pa.array([1 + len(item.split()) for item in items], pa.int32())
    columns = {
        "level": level,
        "item": pa.array(items),
        "tokens": pa.array([item.split() for item in items]),
        "score": pa.array([1234.5] * len(items)),
    }
    table = pa.table({name: columns[name].cast(COLUMNS[name]) for name in columns})
    privacy = {"epsilon": 1.0, "delta": 1e-7, "unit": "a user: all rows of one value of 'user'"}
    made = {"run_id": "0" * 32, "verb": "ngrams", "privacy": privacy, "randomness": "system"}
    return table, made


@pytest.mark.parametrize("columns", [80, 130])
def test_lines_fit_and_numbers_stand_below_one_another(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = release_text(*release_of(ITEMS)).splitlines()
    assert max(map(width_of, lines)) <= columns
    assert {width_of(line) for line in lines if line.endswith("1,234.5")} == {
        max(width_of(line) for line in lines if line.endswith("1,234.5"))
    }
    assert not any("\x1b" in line for line in lines)


def test_the_first_of_each_length_are_shown():
    items = [f"w{i}" for i in range(30)] + [f"w{i} x" for i in range(30)]
    lines = release_text(*release_of(items)).splitlines()
    assert [sum(line.startswith(f"  {level}  ") for line in lines) for level in (2, 3)] == [5, 5]
    assert lines[-1] == "  ... and 50 more"


@pytest.mark.parametrize("columns", [80, 130])
def test_plans_and_accounts_fit(columns, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    book = Ledger(tmp_path / "ledger.sqlite")
    corpus = Corpus(tmp_path / "a.parquet", user="who", text="what", account="notes")
    book.add("notes", corpus, epsilon=3, delta=1e-6)
    plan = ngrams(corpus, max_n=3, epsilon=1, delta=1e-7)
    for said in (plan.describe(book), repr(book.status("notes"))):
        assert max(map(len, said.splitlines())) <= columns


@pytest.mark.parametrize("item", ITEMS)
def test_what_is_cut_is_cut_by_columns(item):
    assert width_of(shorten(item, 20)) <= 20
    assert width_of(padded(shorten(item, 20), 20)) == 20


def test_of_a_trie_what_ends_is_shown_and_said():
    table, made = release_of(["s", "so", "soup"])
    table = table.set_column(3, "score", pa.nulls(3, pa.float64()))
    table = table.append_column("ended", pa.array([False, None, True]))
    assert release_text(table, made).splitlines()[-2:] == [
        "  2  soup  ends here",
        "  ... and 2 more, beginnings among them",
    ]
    beginnings = table.slice(0, 2)
    assert "  2  s   goes on" in release_text(beginnings, made).splitlines()
