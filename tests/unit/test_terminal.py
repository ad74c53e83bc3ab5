"""What is printed fits the terminal, in characters of one column and of two."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dphh import Corpus, Ledger, ngrams
from dphh.columns import COLUMNS
from dphh.release import Release
from dphh.wording.lines import padded, shorten, width_of
from tests.report.made import trie, within_country

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
    return Release(table, made)


@pytest.mark.parametrize("columns", [80, 130])
def test_lines_fit_and_numbers_stand_below_one_another(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = repr(release_of(ITEMS)).splitlines()
    assert max(map(width_of, lines)) <= columns
    assert {width_of(line) for line in lines if line.endswith("1,234.5")} == {
        max(width_of(line) for line in lines if line.endswith("1,234.5"))
    }
    assert not any("\x1b" in line for line in lines)


def test_the_first_of_each_length_are_shown():
    items = [f"w{i}" for i in range(30)] + [f"w{i} x" for i in range(30)]
    lines = repr(release_of(items)).splitlines()
    assert [line.strip() for line in lines if not line.startswith("    w")][-4:] == [
        "2 tokens", "... and 25 more", "1 token", "... and 25 more",
    ]  # fmt: skip
    assert sum(line.startswith("    w") for line in lines) == 10


def test_of_an_item_by_country_each_has_a_line():
    people = {"see you": {"DE": (300, 291, 309), "other": (7, 0, 16)}}
    lines = repr(within_country(people, ["DE"])).splitlines()
    assert "2 words and more, by country" in lines[-3]
    assert [line.split() for line in lines[-2:]] == [
        ["see", "you", "300", "291–309", "DE"], ["7", "0–16", "other"],
    ]  # fmt: skip
    assert "1 item counted, within country: DE, other" in lines[0]


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


def test_of_a_trie_what_ends_is_shown_first():
    assert repr(trie()).splitlines()[-4:] == [
        "  sequences",
        "    a",
        "    ab",
        "    ... and 3 more",
    ]
