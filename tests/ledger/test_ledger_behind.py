"""A capped file cannot be read past its cap through a lazy frame; what is not seen is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest

from dphh import BudgetRefused, Corpus, Ledger, items
from dphh.ledger import Source
from dphh.ledger.behind import files_behind
from dphh.ledger.behind_duckdb import files_of_relation
from dphh.ledger.behind_spark import files_of_spark
from dphh.ledger.corpora import source_of, unseen

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


def test_a_delta_table_behind_a_frame_is_told_and_what_it_lists_pays(
    folder: Path, ledger: Ledger
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs dphh[delta]")
    deltalake.write_deltalake(folder / "d", pl.read_parquet(folder / "one.parquet").to_arrow())
    corpus = Corpus(pl.scan_delta(str(folder / "d")), **READ)
    ledger.add("d", Corpus(folder / "d", **READ), 1.0, 1e-6)
    assert ledger.accounts_touched(source_of(corpus)) == ("d",)
    assert not any("PL_PY" in file for file in source_of(corpus).files)
    assert "not all files" in str(unseen(corpus))

    plan = items(
        Corpus(pl.scan_parquet(folder / "d" / "*.parquet"), **READ), epsilon=0.1, delta=1e-7
    )
    with pytest.warns(UserWarning, match="files of the Delta table .*d, past its log"):
        plan.run(ledger=ledger)


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
    con.execute(f"CREATE TABLE rows AS FROM '{folder}/one.parquet'")
    table = Corpus("rows", connection=con, **READ)
    memory = Corpus(pl.read_parquet(folder / "one.parquet"), **READ)
    for corpus in (table, memory):
        plan = items(corpus, epsilon=1.0, delta=1e-6)
        assert "cannot be told" in plan.describe(ledger)
        assert "cannot be told" in plan.run(ledger=ledger).manifest["not_seen"]
    lazy = Corpus(pl.scan_parquet(folder / "one.parquet"), **READ)
    plan = items(lazy, epsilon=1.0, delta=1e-6)
    assert "cannot be told" not in plan.describe(ledger)
    assert "not_seen" not in plan.run(ledger=ledger).manifest


@pytest.mark.parametrize(
    ("query", "named", "whole"),
    [
        ("FROM plain", {"one.parquet"}, True),
        ("SELECT who, upper(what) AS what FROM over WHERE who > 0", {"one.parquet"}, True),
        ('FROM "odd AS name"', {"one.parquet", "two.parquet"}, True),
        ("FROM globbed, range(3)", {"*.parquet"}, True),
        ("FROM read_csv('{folder}/rows.csv', header = true)", {"rows.csv"}, True),
        ("WITH plain AS (FROM '{folder}/two.parquet') FROM plain", {"two.parquet"}, True),
        ("WITH plain AS (FROM plain) FROM plain", {"one.parquet"}, True),
        ("WITH c AS (FROM plain), plain AS (SELECT 1) FROM c", {"one.parquet"}, True),
        ("FROM plain WHERE (WITH plain AS (SELECT 1) SELECT true)", {"one.parquet"}, True),
        ("WITH RECURSIVE r AS (FROM plain UNION FROM r) FROM r", {"one.parquet"}, True),
        ("FROM query('FROM plain')", {"one.parquet"}, True),
        ("FROM query_table('plain')", {"one.parquet"}, True),
        ("FROM query_table('loaded')", set(), False),
        ("FROM a_macro('{folder}/two.parquet')", {"one.parquet", "two.parquet"}, False),
        ("FROM plain UNION ALL FROM loaded", {"one.parquet"}, False),
        ("FROM read_parquet(getvariable('elsewhere'))", set(), False),
        ("FROM stored.rows", {"stored.duckdb/rows"}, True),
        ("SELECT 1 AS who, 'a' AS what", set(), True),
        ("FROM arrow_table", set(), False),
    ],
)
def test_a_relations_sql_tells_its_files(
    folder: Path, query: str, named: set[str], whole: bool
) -> None:
    con = duckdb.connect()
    for statement in (
        f"CREATE VIEW plain AS FROM '{folder}/one.parquet'",
        "CREATE VIEW over AS WITH c AS (FROM plain) FROM c",
        f"""CREATE VIEW "odd AS name" AS SELECT 1 AS "x AS y" FROM read_parquet(
            ['{folder}/one.parquet', '{folder}/two.parquet'], union_by_name = true)""",
        f"CREATE TEMP VIEW globbed AS FROM '{folder}/*.parquet'",
        f"""CREATE MACRO a_macro(f) AS TABLE
            FROM read_parquet(f) UNION ALL FROM '{folder}/one.parquet'""",
        "CREATE TABLE loaded AS FROM plain",
        f"SET VARIABLE elsewhere = '{folder}/one.parquet'",
        f"ATTACH '{folder}/stored.duckdb' AS stored",
        "CREATE TABLE stored.rows AS FROM plain",
    ):
        con.execute(statement)
    arrow_table = pl.read_parquet(folder / "one.parquet").to_arrow()
    assert arrow_table.num_rows
    files, told = files_of_relation(con.sql(query.format(folder=folder)))
    assert {str(Path(file).relative_to(folder)) for file in files} == named
    assert told == whole


@pytest.mark.parametrize("told", ["file_search_path", "home_directory"])
def test_where_files_are_looked_for_elsewhere_that_is_said(folder: Path, told: str) -> None:
    con = duckdb.connect()
    con.execute(f"SET {told} = '{folder}'")
    name = "one.parquet" if told == "file_search_path" else "~/one.parquet"
    assert "not all files" in str(unseen(Corpus(con.sql(f"FROM '{name}'"), **READ)))


def test_a_capped_file_pays_for_what_a_view_or_a_relation_reads_of_it(
    folder: Path, ledger: Ledger
) -> None:
    account = Source("path", (str(folder / "*.parquet"),), "who", {"column": "what"})
    ledger.add("data", account, 1.0, 1e-6)
    con = duckdb.connect()
    con.execute(f"CREATE VIEW rows AS FROM '{folder}/one.parquet'")
    for corpus in (
        Corpus("rows", connection=con, **READ),
        Corpus(con.read_parquet(str(folder / "two.parquet")).filter("who > 0"), **READ),
    ):
        plan = items(corpus, epsilon=0.4, delta=4e-7)
        assert "data" in plan.describe(ledger)
        assert "not_seen" not in plan.run(ledger=ledger).manifest
        with pytest.raises(BudgetRefused, match="'data'"):
            items(corpus, epsilon=1.0, delta=1e-6).run(ledger=ledger)
    assert ledger.status("data").runs == 2


def test_where_not_all_can_be_told_that_is_said(folder: Path) -> None:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE loaded AS FROM '{folder}/one.parquet'")
    some = con.sql(f"FROM loaded UNION ALL FROM '{folder}/two.parquet'")
    assert "not all files" in str(unseen(Corpus(some, **READ)))
    assert unseen(Corpus(some, name="data", **READ)) is None


def test_spark_lists_the_files_of_its_frames_and_not_how_many_users_they_are_of() -> None:
    """By Spark Connect, where whether they are all cannot be told; else test_spark_frames.py."""
    few = SimpleNamespace(inputFiles=lambda: ["file:///data/a%20b.parquet"])
    assert files_of_spark(few) == (("file:///data/a b.parquet",), False)
    by_user = [f"file:///data/user={user}/part-0.parquet" for user in range(3)]
    assert files_of_spark(SimpleNamespace(inputFiles=lambda: by_user))[0] == ("file:///data/",)
    many = [f"file:///data/{user}.parquet" for user in range(20)]
    assert files_of_spark(SimpleNamespace(inputFiles=lambda: many))[0] == ("file:///data/",)


def test_a_source_with_files_comes_back_from_json(folder: Path) -> None:
    source = source_of(Corpus(pl.scan_parquet(folder / "one.parquet"), **READ))
    assert Source.from_json(source.to_json()) == source
    assert source.absolute() == source
