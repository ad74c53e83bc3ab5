"""A capped file cannot be read past its cap through a lazy frame; what is not seen is said."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from dphh import BudgetRefused, Corpus, Ledger, items
from dphh.ledger import Source
from dphh.ledger.behind import files_behind
from dphh.ledger.corpora import source_of

READ = {"user": "who", "item": "what"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    rows = pl.DataFrame({"who": [1, 2], "what": ["a", "b"]})
    for name in ("one", "two", "three"):
        rows.write_parquet(tmp_path / "data" / f"{name}.parquet")
    rows.write_csv(tmp_path / "data" / "rows.csv")
    return tmp_path / "data"


def test_every_scan_of_a_plan_is_found(folder: Path) -> None:
    one, two = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("one", "two"))
    csv = pl.scan_csv(folder / "rows.csv")
    deep = pl.concat([one.filter(pl.col("who") > 0), two]).join(csv, on="who").head(5)
    named = {str(folder / name) for name in ("one.parquet", "two.parquet", "rows.csv")}
    assert set(files_behind(deep)) == named
    assert files_behind(pl.scan_parquet(folder / "*.parquet")) == (str(folder / "*.parquet"),)


def test_a_plan_with_a_function_in_it_shows_its_files_all_the_same(folder: Path) -> None:
    frame = pl.scan_parquet(folder / "one.parquet").map_batches(lambda rows: rows)
    assert files_behind(frame) == (str(folder / "one.parquet"),)


def test_rows_in_memory_have_no_files(folder: Path) -> None:
    rows = pl.read_parquet(folder / "one.parquet")
    for frame in (rows, rows.lazy(), rows.to_arrow()):
        assert files_behind(frame) == ()
    assert files_behind(pl.scan_parquet(folder / "gone.parquet")) == ()


def test_a_capped_file_pays_for_what_a_lazy_frame_reads_of_it(folder: Path, ledger: Ledger) -> None:
    account = Source("path", (str(folder / "*.parquet"),), "who", {"column": "what"})
    ledger.add("data", account, 1.0, 1e-6)
    corpus = Corpus(pl.scan_parquet(folder / "one.parquet").filter(pl.col("who") > 0), **READ)
    plan = items(corpus, epsilon=1.0, delta=1e-6)
    assert "data" in plan.describe(ledger)
    plan.run(ledger=ledger, run_id="first")
    assert ledger.status("data").runs == 1
    with pytest.raises(BudgetRefused, match="'data'"):
        plan.run(ledger=ledger, run_id="second")


def test_what_cannot_be_told_is_said(folder: Path, ledger: Ledger) -> None:
    con = duckdb.connect()
    con.execute(f"CREATE VIEW rows AS FROM '{folder}/one.parquet'")
    view = Corpus("rows", connection=con, **READ)
    memory = Corpus(pl.read_parquet(folder / "one.parquet"), **READ)
    for corpus in (view, memory):
        plan = items(corpus, epsilon=1.0, delta=1e-6)
        assert "cannot be told" in plan.describe(ledger)
        assert "cannot be told" in plan.run(ledger=ledger).manifest["not_seen"]
    lazy = Corpus(pl.scan_parquet(folder / "one.parquet"), **READ)
    plan = items(lazy, epsilon=1.0, delta=1e-6)
    assert "cannot be told" not in plan.describe(ledger)
    assert "not_seen" not in plan.run(ledger=ledger).manifest


def test_a_source_with_files_comes_back_from_json(folder: Path) -> None:
    source = source_of(Corpus(pl.scan_parquet(folder / "one.parquet"), **READ))
    assert Source.from_json(source.to_json()) == source
    assert source.absolute() == source
