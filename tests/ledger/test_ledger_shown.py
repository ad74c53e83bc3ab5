"""What a ledger shows and exports, and what it never says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from dphh.errors import LedgerError, UsageError
from dphh.ledger import Ledger, Source
from dphh.ledger import records as ledger_records
from tests.ledger.asked import ask, items_price


def test_entries_say_what_was_asked_in_order(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-5)
    events = items_price(0.2, 1e-6)
    ask(book, "a", reviews, 0.2, 1e-6, events=events, max_items=3)
    ask(book, "b", reviews, 0.1, account="reviews")
    first, second = book.runs("reviews")
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.events == tuple(events)
    assert first.parameters == {"max_items": 3}
    assert first.source == reviews
    assert first.accounts == ("reviews",)
    assert (first.verb, first.epsilon, first.delta) == ("items", 0.2, 1e-6)


def test_time_never_goes_back(
    book: Ledger, reviews: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86_400.0
    for run, clock in (("a", 2.5 * day), ("b", 1.5 * day), ("c", 3.9 * day)):
        monkeypatch.setattr(ledger_records, "time", SimpleNamespace(time=lambda now=clock: now))
        ask(book, run, reviews)
    assert [entry.run_id for entry in book.runs()] == ["a", "b", "c"]
    assert [entry.when.timestamp() for entry in book.runs()] == [2 * day, 2 * day, 3 * day]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_export_writes_every_run(
    book: Ledger, reviews: Source, tmp_path: Path, suffix: str
) -> None:
    ask(book, "a", reviews, 0.25)
    ask(book, 'b, "quoted"', reviews)
    target = tmp_path / f"out{suffix}"
    book.export(target)
    if suffix == ".csv":
        with target.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pl.read_parquet(target).to_dicts()
    assert [row["run_id"] for row in rows] == ["a", 'b, "quoted"']
    assert float(rows[0]["epsilon"]) == 0.25
    assert json.loads(rows[0]["accounts"]) == [reviews.label]
    assert list(tmp_path.glob(".out*")) == []


@pytest.mark.parametrize(
    ("run", "harmless"),
    [*((run, f"'{run}") for run in ("=1+1", "+49", "-x", "@a", "＝1")), ('a;"=1', "a;\"'=1")],
)
def test_no_run_id_is_a_formula_in_a_spreadsheet(
    book: Ledger, reviews: Source, tmp_path: Path, run: str, harmless: str
) -> None:
    ask(book, run, reviews)
    for ending, told in ((".csv", harmless), (".parquet", run)):
        path = tmp_path / f"runs{ending}"
        book.export(path)
        read = pl.read_csv if ending == ".csv" else pl.read_parquet
        assert read(path)["run_id"].to_list() == [told]


def test_export_to_another_ending_or_a_missing_folder(book: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        book.export(tmp_path / "out.xlsx")
    with pytest.raises(LedgerError, match="Could not export"):
        book.export(tmp_path / "missing" / "out.csv")
    book.export(tmp_path / "empty.parquet")
    assert pl.read_parquet(tmp_path / "empty.parquet").is_empty()
