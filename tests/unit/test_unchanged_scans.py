"""Which frames, views and relations are Parquet files unchanged, and so can be looked at for free.

What is not understood is not a scan: of each of these the files would be looked at in place of rows
that are others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from dphh import Corpus, CorpusError
from dphh.lineage.duckdb_scans import scanned_by_relation
from dphh.lineage.polars_plans import scanned_by_lazy
from dphh.sources.unchanged_scans import files_unchanged

ROWS = {"who": [1, 2], "what": ["a", "b"]}
MADE = (
    "CREATE VIEW plain AS SELECT * FROM 'a.parquet'",
    "CREATE VIEW over AS FROM plain",
    "CREATE VIEW \"odd AS FROM 'b.parquet' --\" AS FROM 'a.parquet'",
    "CREATE VIEW renamed(who, what) AS FROM plain",
    "CREATE SCHEMA archive",
    "CREATE VIEW archive.old AS FROM '*.parquet'",
    "CREATE VIEW archive.\"over AS FROM 'b.parquet' --\" AS FROM plain WHERE who > 1",
    'CREATE VIEW "z.parquet" AS FROM plain WHERE who > 1',
    "CREATE VIEW twice AS FROM plain",
    "CREATE VIEW archive.twice AS FROM 'b.parquet'",
    "CREATE TABLE loaded AS FROM plain",
    "CREATE MACRO scan(file) AS TABLE FROM read_parquet(file)",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a", "b"):
        pl.DataFrame(ROWS).write_parquet(tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def con(folder: Path) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for statement in MADE:
        con.execute(statement)
    return con


def names(files: tuple[str, ...]) -> list[str]:
    return sorted(Path(file).stem for file in files)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("FROM 'a.parquet'", "a"),
        ("FROM 'a.parquet' AS called", "a"),
        ("FROM '?.parquet'", "ab"),
        ("FROM plain", "a"),
        ("FROM main.plain", "a"),
        ("FROM over", "a"),
        ("FROM archive.old", "ab"),
        ("FROM \"odd AS FROM 'b.parquet' --\"", "a"),
        ("FROM read_parquet('a.parquet')", "a"),
        ("FROM Parquet_Scan(['a.parquet', 'b.parquet'])", "ab"),
        ("FROM read_parquet('a.parquet', filename = false, union_by_name := false)", "a"),
    ],
)
def test_a_query_of_files_alone_is_a_scan(
    con: duckdb.DuckDBPyConnection, query: str, files: str
) -> None:
    assert names(scanned_by_relation(con.sql(query))) == [*files]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT who, what FROM plain",
        "SELECT *, 1 AS n FROM plain",
        "SELECT * EXCLUDE (who) FROM plain",
        "SELECT * REPLACE (who + 1 AS who) FROM plain",
        "SELECT * RENAME (who AS whom) FROM plain",
        "SELECT COLUMNS(*) FROM plain",
        "SELECT DISTINCT * FROM plain",
        "FROM plain WHERE true",
        "FROM plain ORDER BY who",
        "FROM plain LIMIT 5",
        "FROM plain TABLESAMPLE 50%",
        "FROM plain AS t(what, who)",
        "FROM plain UNION ALL FROM plain",
        "FROM plain, over",
        "FROM (FROM plain)",
        "WITH c AS (FROM plain WHERE who > 1) FROM c",
        "WITH plain AS (FROM 'b.parquet' WHERE who > 1) FROM plain",
        "FROM renamed",
        "FROM archive.\"over AS FROM 'b.parquet' --\"",
        "FROM 'z.parquet'",
        "FROM twice",
        "FROM loaded",
        "FROM scan('a.parquet')",
        "FROM query('FROM plain')",
        "FROM query_table('plain')",
        "FROM read_parquet('a.' || 'parquet')",
        "FROM read_parquet('a.parquet', filename = true)",
        "FROM read_parquet('a.parquet', file_row_number = true)",
        "FROM read_parquet('?.parquet', union_by_name = true)",
        "FROM read_parquet('a.parquet', binary_as_string = true)",
        "FROM read_parquet('a.parquet', hive_partitioning = true)",
        "FROM read_csv('a.csv')",
    ],
)
def test_any_other_query_is_none(con: duckdb.DuckDBPyConnection, folder: Path, query: str) -> None:
    pl.DataFrame(ROWS).write_csv(folder / "a.csv")
    assert scanned_by_relation(con.sql(query)) == ()


def test_what_a_connection_says_otherwise_makes_it_none(con: duckdb.DuckDBPyConnection) -> None:
    assert scanned_by_relation(con.read_parquet("a.parquet"))
    assert not scanned_by_relation(con.read_parquet("a.parquet").filter("who > 1"))
    assert not scanned_by_relation(con.read_parquet("a.parquet", file_row_number=True))
    plain = con.table("plain")
    for name, value in (("binary_as_string", "true"), ("file_search_path", "'elsewhere'")):
        con.execute(f"SET {name} = {value}")
        assert not scanned_by_relation(plain)
        con.execute(f"RESET {name}")
    assert scanned_by_relation(plain)
    con.register("a.parquet", pl.DataFrame(ROWS))
    assert not scanned_by_relation(con.sql("FROM 'a.parquet'"))
    con.execute("CREATE MACRO read_parquet(file) AS TABLE SELECT 1 AS who")
    assert not scanned_by_relation(con.sql("FROM read_parquet('b.parquet')"))


def test_names_with_wildcards_in_them_mean_what_duckdb_reads(
    con: duckdb.DuckDBPyConnection, folder: Path
) -> None:
    pl.DataFrame(ROWS).write_parquet(folder / "[ab].parquet")
    (folder / "b.parquet").unlink()
    query = con.sql("SELECT * FROM read_parquet('[ab].parquet')")
    read = con.sql("FROM read_parquet('[ab].parquet', filename = true)").fetchall()
    assert names(scanned_by_relation(query)) == sorted({Path(row[2]).stem for row in read})


SCANS: dict[str, tuple[Callable[[], pl.LazyFrame], str]] = {
    "a file": (lambda: pl.scan_parquet("a.parquet"), "a"),
    "a path": (lambda: pl.scan_parquet(Path("a.parquet")), "a"),
    "a glob": (lambda: pl.scan_parquet("*.parquet"), "ab"),
    "a list": (lambda: pl.scan_parquet(["a.parquet", "b.parquet"]), "ab"),
    "a folder": (lambda: pl.scan_parquet("."), "ab"),
}
OTHERS: dict[str, Callable[[], pl.LazyFrame]] = {
    "a filter": lambda: pl.scan_parquet("a.parquet").filter(pl.col("who") > 0),
    "columns": lambda: pl.scan_parquet("a.parquet").select("who", "what"),
    "another name": lambda: pl.scan_parquet("a.parquet").rename({"who": "whom"}),
    "a column more": lambda: pl.scan_parquet("a.parquet").with_columns(n=1),
    "few rows": lambda: pl.scan_parquet("a.parquet").head(1),
    "an order": lambda: pl.scan_parquet("a.parquet").sort("who"),
    "distinct rows": lambda: pl.scan_parquet("a.parquet").unique(),
    "two scans": lambda: pl.concat([pl.scan_parquet("a.parquet"), pl.scan_parquet("b.parquet")]),
    "a function": lambda: pl.scan_parquet("a.parquet").map_batches(lambda rows: rows),
    "n_rows": lambda: pl.scan_parquet("a.parquet", n_rows=5),
    "row_index_name": lambda: pl.scan_parquet("a.parquet", row_index_name="n"),
    "include_file_paths": lambda: pl.scan_parquet("a.parquet", include_file_paths="file"),
    "missing_columns": lambda: pl.scan_parquet("a.parquet", missing_columns="insert"),
    "hive_partitioning": lambda: pl.scan_parquet("a.parquet", hive_partitioning=True),
    "of another format": lambda: pl.scan_ipc("a.parquet"),
    "in memory": lambda: pl.LazyFrame(ROWS),
    "of an open file": lambda: pl.scan_parquet(Path("a.parquet").read_bytes()),
    "of an address": lambda: pl.scan_parquet("s3://bucket/a.parquet"),
    "of a file that is not there": lambda: pl.scan_parquet("c.parquet"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("scan", "files"), SCANS.values(), ids=SCANS.keys())
def test_a_lazy_frame_of_files_alone_is_a_scan(
    scan: Callable[[], pl.LazyFrame], files: str
) -> None:
    frame = scan()
    assert names(scanned_by_lazy(frame)) == [*files]
    frame.collect_schema()  # which Polars keeps in the plan
    assert names(scanned_by_lazy(frame)) == [*files]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("frame", OTHERS.values(), ids=OTHERS.keys())
def test_any_other_lazy_frame_is_none(frame: Callable[[], pl.LazyFrame]) -> None:
    assert scanned_by_lazy(frame()) == ()


def of(source: Any, **more: Any) -> Corpus:
    return Corpus(source, **{"user": "who", "text": "what", **more})


def test_files_are_taken_for_a_query_only_if_they_are_alike(folder: Path) -> None:
    con, glob = duckdb.connect(), str(folder / "*.parquet")
    for table in (con.read_parquet(glob), pl.scan_parquet(glob)):
        found = files_unchanged(of(table))
        assert found is not None and found.kind == "path" and names(found.where) == ["a", "b"]
        assert files_unchanged(of(pl.DataFrame(ROWS))) is None
    pl.DataFrame(ROWS, schema={"who": pl.Int32, "what": pl.String}).write_parquet(
        folder / "c.parquet"
    )
    pl.DataFrame({"who": [1]}).write_parquet(folder / "d.parquet")
    for other in ("c", "d"):
        files = [str(folder / "a.parquet"), str(folder / f"{other}.parquet")]
        assert files_unchanged(of(con.read_parquet(files))) is None
        assert files_unchanged(of(pl.scan_parquet(files))) is None


def test_folders_that_may_add_columns_are_not_taken(folder: Path) -> None:
    (folder / "who=7").mkdir()
    pl.DataFrame(ROWS).write_parquet(folder / "who=7" / "a.parquet")
    for source in (
        duckdb.sql("FROM '*/*.parquet'"),
        pl.scan_parquet("*/*.parquet"),
        pl.scan_parquet("who=7"),
    ):
        assert files_unchanged(of(source)) is None


def test_a_damaged_file_is_refused_and_how_many_there_are_is_not_said(folder: Path) -> None:
    (folder / "b.parquet").write_bytes(b"PAR1 SENTINEL PAR1")
    frame = pl.scan_parquet("*.parquet", schema=None)
    relation = duckdb.connect().read_parquet("*.parquet")
    for source in (frame, relation):
        with pytest.raises(CorpusError, match="a file of it cannot be read as Parquet") as caught:
            files_unchanged(of(source))
        assert "a.parquet" not in str(caught.value) and "SENTINEL" not in str(caught.value)
