"""A capped file cannot be read past its cap through a lazy frame; what is not seen is refused
where anything is capped, and said elsewhere."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.io.plugins import register_io_source

from dphh import BudgetRefused, Corpus, Ledger, UsageError, check, items
from dphh.ledger import Source
from dphh.ledger.corpora import source_of, unseen
from dphh.ledger.origins import origin_of
from dphh.lineage.duckdb_views import origin_of_relation
from dphh.lineage.origin import Origin
from dphh.lineage.polars_plans import origin_of_lazy, query_of_lazy
from dphh.lineage.spark_plans import origin_of_spark

READ = {"user": "who", "item": "what"}
#: Names that a printed plan cannot be read back from.
ODD = ("a] b", "a, b", "a\nb", "b ... 2 other sources")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    rows = pl.DataFrame({"who": [1, 2], "what": ["a", "b"]})
    for name in ("one", "two", "three", "four", "five", *ODD):
        rows.write_parquet(tmp_path / "data" / f"{name}.parquet")
    rows.write_csv(tmp_path / "data" / "rows.csv")
    (tmp_path / "data" / "hive" / "who=1").mkdir(parents=True)
    rows.select("what").write_parquet(tmp_path / "data" / "hive" / "who=1" / "part.parquet")
    return tmp_path / "data"


def test_every_scan_of_a_plan_is_found(folder: Path) -> None:
    one, two = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("one", "two"))
    csv = pl.scan_csv(folder / "rows.csv")
    deep = pl.concat([one.filter(pl.col("who") > 0), two]).join(csv, on="who").head(5)
    named = {str(folder / name) for name in ("one.parquet", "two.parquet", "rows.csv")}
    assert set(origin_of_lazy(deep).files) == named
    assert origin_of_lazy(deep).whole
    for asked in ("*.parquet", "hive", "rows.csv"):
        scan = pl.scan_csv if asked.endswith("csv") else pl.scan_parquet
        assert origin_of_lazy(scan(folder / asked)) == Origin((str(folder / asked),), True)


def test_rows_in_memory_are_not_written_out_to_see_that_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serialize(*_: Any, **__: Any) -> None:
        raise AssertionError("copies all rows")

    monkeypatch.setattr(pl.LazyFrame, "serialize", serialize)
    rows = pl.read_parquet(folder / "one.parquet").lazy()
    for frame in (rows, pl.concat([rows, pl.scan_parquet(folder / "two.parquet")])):
        assert not origin_of_lazy(frame).whole


@pytest.mark.parametrize("format", ["csv", "ndjson", "ipc", "lines"])
def test_files_of_every_format_are_told(folder: Path, format: str) -> None:
    rows = pl.read_parquet(folder / "one.parquet")
    path = folder / f"rows.{format}"
    getattr(rows, f"write_{'csv' if format == 'lines' else format}")(path)
    lazy = getattr(pl, f"scan_{format}")(path)
    for frame in (lazy, lazy.cache(), lazy.filter(pl.lit(True))):
        assert origin_of_lazy(frame) == Origin((str(path),), True)


def test_what_columns_are_called_says_nothing_of_a_plan(folder: Path) -> None:
    (folder / "odd.csv").write_text("python,Map\n1,a\n")
    frame = pl.scan_csv(folder / "odd.csv", schema={"python": pl.Int64, "Map": pl.String})
    assert origin_of_lazy(frame).whole
    assert origin_of_lazy(frame.cast({"python": pl.String})).whole


PYTHON: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "of the frame": lambda frame: frame.map_batches(lambda rows: rows),
    "of values": lambda frame: frame.with_columns(
        pl.col("what").map_elements(lambda value: value, return_dtype=pl.String)
    ),
    "of a column": lambda frame: frame.with_columns(pl.col("what").map_batches(lambda rows: rows)),
    "within an aggregate": lambda frame: frame.filter(
        pl.col("what").map_elements(lambda value: value, return_dtype=pl.String).len() > 0
    ),
    "of groups": lambda frame: frame.group_by("who").map_groups(lambda rows: rows, schema=None),
    "that folds": lambda frame: frame.with_columns(
        n=pl.fold(pl.lit(0), lambda found, each: found + each, [pl.col("who")])
    ),
    "of a module": lambda frame: frame.map_batches(pl.DataFrame.clone),
    "that pipes": lambda frame: frame.pipe_with_schema(lambda rows, _: rows),
}


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three", "four", "five"), *ODD])
@pytest.mark.parametrize("function", PYTHON.values(), ids=PYTHON.keys())
def test_a_plan_with_python_in_it_is_not_whole_and_shows_its_files_all_the_same(
    folder: Path,
    function: Callable[[pl.LazyFrame], pl.LazyFrame],
    names: tuple[str, ...] | str,
) -> None:
    names = (names,) if isinstance(names, str) else names
    paths = [folder / f"{name}.parquet" for name in names]
    told = origin_of_lazy(function(pl.scan_parquet(paths, glob=False)))
    assert set(told.files) == set(map(str, paths))
    assert not told.whole


@pytest.mark.parametrize("pickled", [False, True])
def test_that_python_can_be_written_down_tells_no_more(
    folder: Path, pickled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars pickles functions into a plan, with `cloudpickle` those of no module."""
    written = SimpleNamespace(dumps=lambda _: b"any bytes") if pickled else None
    monkeypatch.setitem(sys.modules, "cloudpickle", written)
    scan = pl.scan_parquet(folder / "one.parquet")
    for function in PYTHON.values():
        assert not origin_of_lazy(function(scan)).whole
        assert query_of_lazy(function(scan)) == ""


def test_of_very_many_files_and_of_folders_by_user_the_folder_is_told(folder: Path) -> None:
    """Where functions keep a plan from being written down, and files are listed as they are."""
    rows = pl.DataFrame({"what": ["a"]})
    for user in range(20):
        (folder / "many" / f"who={user}").mkdir(parents=True)
        rows.write_parquet(folder / "many" / f"who={user}" / "part.parquet")
    frame = pl.scan_parquet(folder / "many")
    # Of a user who has no folder, too: an optimiser would leave all files out.
    for each in (frame, frame.filter(pl.col("who") == 99)):
        assert origin_of_lazy(each.map_batches(lambda rows: rows)).files == (f"{folder}/many/",)


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
    with pytest.raises(BudgetRefused, match="not all files that these rows come from can be told"):
        items(corpus, epsilon=0.1, delta=1e-7).run(ledger=ledger)
    items(corpus.named("d"), epsilon=0.1, delta=1e-7).run(ledger=ledger)
    assert ledger.status("d").runs == 1

    plan = items(
        Corpus(pl.scan_parquet(folder / "d" / "*.parquet"), **READ), epsilon=0.1, delta=1e-7
    )
    with pytest.warns(UserWarning, match="files of the Delta table .*d, past its log"):
        plan.run(ledger=ledger)


def test_an_iceberg_table_behind_a_frame_is_told_likewise(folder: Path, ledger: Ledger) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="needs dphh[iceberg]")
    catalog = catalogs.SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    rows = pl.read_parquet(folder / "one.parquet").to_arrow()
    made = catalog.create_table("db.reviews", schema=rows.schema)
    made.append(rows)
    ledger.add("reviews", Corpus(folder / "db" / "reviews", **READ), 1.0, 1e-6)
    corpus = Corpus(pl.scan_iceberg(made.metadata_location), **READ)
    assert ledger.accounts_touched(source_of(corpus)) == ("reviews",)
    with pytest.raises(BudgetRefused, match="not all files that these rows come from can be told"):
        items(corpus, epsilon=0.1, delta=1e-7).run(ledger=ledger)


def test_rows_in_memory_have_no_files(folder: Path) -> None:
    rows = pl.read_parquet(folder / "one.parquet")
    for frame in (rows, rows.lazy(), rows.to_arrow()):
        assert origin_of(Corpus(frame, **READ)) == Origin()
    gone = origin_of_lazy(pl.scan_parquet(folder / "gone.parquet"))
    assert (gone.files, gone.whole) == ((), False)


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


def _read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path)


def _table(path: Path) -> Any:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE held AS FROM '{path}'")
    return con.table("held")


#: Spellings of a file's rows of which nobody can tell that they are its.
UNTOLD: dict[str, Callable[[Path], Any]] = {
    **{
        f"a function {name}": lambda path, function=function: function(pl.scan_parquet(path))
        for name, function in PYTHON.items()
    },
    "bytes": lambda path: pl.scan_parquet(path.read_bytes()),
    "BytesIO": lambda path: pl.scan_parquet(io.BytesIO(path.read_bytes())),
    "an open file": lambda path: pl.scan_parquet(path.open("rb")),
    "an eager frame": _read,
    "rows made lazy": lambda path: _read(path).lazy(),
    "rows beside a scan": lambda path: pl.concat([_read(path).lazy(), pl.scan_parquet(path)]),
    "a frame that is put off": lambda path: pl.defer(
        lambda: _read(path), schema={"who": pl.Int64, "what": pl.String}
    ),
    "a source of Python's": lambda path: register_io_source(
        lambda *_: iter([_read(path)]), schema={"who": pl.Int64, "what": pl.String}
    ),
    "Arrow": lambda path: _read(path).to_arrow(),
    "a relation over Arrow": lambda path: duckdb.connect().from_arrow(_read(path).to_arrow()),
    "a table of DuckDB": _table,
}


@pytest.mark.parametrize("spelled", UNTOLD.values(), ids=UNTOLD.keys())
def test_rows_of_nobody_knows_which_files_are_refused_where_a_corpus_is_capped_unless_named(
    folder: Path, ledger: Ledger, spelled: Callable[[Path], Any]
) -> None:
    read: dict[str, Any] = {**READ, "row_wise": True}
    source = spelled(folder / "one.parquet")
    ask = {"epsilon": 5.0, "delta": 1e-4}
    before = items(Corpus(source, **read), **ask).run(ledger=ledger)  # nothing is capped here
    assert "not_seen" in before.manifest
    ledger.add("other", Source("path", (str(folder / "*.csv"),), "who"), 0.01, 1e-9)
    plan = items(Corpus(spelled(folder / "one.parquet"), **read), **ask)
    assert "would refuse" in plan.describe(ledger)
    assert not check(Corpus(source, **read), ledger=ledger).ok
    with pytest.raises(BudgetRefused, match=r"be told.* Nothing was spent.* name="):
        plan.run(ledger=ledger, again=True)
    assert ledger.status("other").runs == 0
    assert len(ledger.runs()) == 1

    ledger.add("these", Source("frame", ("rows at hand",), "who"), 10.0, 1e-3)
    items(Corpus(source, name="these", **read), **ask).run(ledger=ledger)
    assert ledger.status("these").runs == 1


def test_what_shows_its_files_pays_for_them_whoever_is_named_besides(
    folder: Path, ledger: Ledger
) -> None:
    ledger.add("data", Source("path", (str(folder / "*.parquet"),), "who"), 0.01, 1e-9)
    ledger.add("these", Source("frame", ("rows at hand",), "who"), 10.0, 1e-3)
    frame = PYTHON["of values"](pl.scan_parquet([folder / f"{name}.parquet" for name in ODD]))
    corpus = Corpus(frame, name="these", row_wise=True, **READ)
    with pytest.raises(BudgetRefused, match="'data'"):
        items(corpus, epsilon=5.0, delta=1e-4).run(ledger=ledger)


def test_a_polars_that_does_not_show_its_plans_is_refused_likewise(
    folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.add("other", Source("path", (str(folder / "*.csv"),), "who"), 1.0, 1e-6)
    scan = pl.scan_parquet(folder / "one.parquet")
    collect = pl.LazyFrame.collect

    def of_another_version(frame: Any, **options: Any) -> Any:
        if "post_opt_callback" in options:
            raise TypeError("collect() got an unexpected keyword argument")
        return collect(frame, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", of_another_version)
    plan = items(Corpus(scan, **READ), epsilon=0.1, delta=1e-7)
    with pytest.raises(UsageError, match=r"row_wise: .*a plan that Polars did not show"):
        plan.run(ledger=ledger)
    plan = items(Corpus(scan, row_wise=True, **READ), epsilon=0.1, delta=1e-7)
    with pytest.raises(BudgetRefused, match="cannot be told"):
        plan.run(ledger=ledger)


@pytest.mark.parametrize(
    ("query", "named", "whole"),
    [
        ("FROM plain", {"one.parquet"}, True),
        ("SELECT who, upper(what) AS what FROM over WHERE who > 0", {"one.parquet"}, True),
        ('FROM "odd AS name"', {"one.parquet", "two.parquet"}, True),
        ("FROM \"odd AS FROM 'rows.parquet' --\"", {"one.parquet"}, True),
        ("FROM renamed", {"one.parquet"}, True),
        ("FROM globbed, range(3)", {"*.parquet"}, True),
        ("FROM read_csv('{folder}/rows.csv', header = true)", {"rows.csv"}, True),
        ("FROM read_csv('{folder}/rows.csv', delim := ',', quote := '')", {"rows.csv"}, True),
        ("SELECT what, deepest() AS more FROM plain", {"one.parquet", "two.parquet"}, True),
        ("SELECT deep(what) AS what FROM plain", {"one.parquet", "two.parquet"}, True),
        ("SELECT who, theirs(what) AS what FROM plain", {"one.parquet"}, False),
        ("SELECT max(who) AS who, what FROM plain GROUP BY what", {"one.parquet"}, True),
        ("FROM glob('{folder}/*.parquet')", {"*.parquet"}, False),
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
        "CREATE VIEW \"odd AS FROM 'rows.parquet' --\" AS FROM plain",
        "CREATE VIEW renamed(\"a AS FROM 'rows.parquet' --\", what) AS FROM plain",
        f"CREATE TEMP VIEW globbed AS FROM '{folder}/*.parquet'",
        f"""CREATE MACRO a_macro(f) AS TABLE
            FROM read_parquet(f) UNION ALL FROM '{folder}/one.parquet'""",
        f"CREATE MACRO deepest() AS (SELECT max(what) FROM '{folder}/two.parquet')",
        "CREATE MACRO deep(text) AS concat(text, deepest())",
        "CREATE TABLE loaded AS FROM plain",
        f"SET VARIABLE elsewhere = '{folder}/one.parquet'",
        f"ATTACH '{folder}/stored.duckdb' AS stored",
        "CREATE TABLE stored.rows AS FROM plain",
    ):
        con.execute(statement)
    con.create_function("theirs", lambda text: text, ["VARCHAR"], "VARCHAR")
    arrow_table = pl.read_parquet(folder / "one.parquet").to_arrow()
    assert arrow_table.num_rows
    told = origin_of_relation(con.sql(query.format(folder=folder)))
    assert {str(Path(file).relative_to(folder)) for file in told.files} == named
    assert told.whole == whole


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


def _on_connect(files: list[str]) -> Any:
    return SimpleNamespace(inputFiles=lambda: files, sparkSession=None)


def test_spark_lists_the_files_of_its_frames_and_not_how_many_users_they_are_of() -> None:
    """By Spark Connect, where whether they are all cannot be told; else test_spark_frames.py."""
    few = _on_connect(["file:///data/a%20b.parquet"])
    assert origin_of_spark(few) == Origin(("file:///data/a b.parquet",), False)
    by_user = [f"file:///data/user={user}/part-0.parquet" for user in range(3)]
    assert origin_of_spark(_on_connect(by_user)).files == ("file:///data/",)
    many = [f"file:///data/{user}.parquet" for user in range(20)]
    assert origin_of_spark(_on_connect(many)).files == ("file:///data/",)


def test_a_source_with_files_comes_back_from_json(folder: Path) -> None:
    source = source_of(Corpus(pl.scan_parquet(folder / "one.parquet"), **READ))
    assert Source.from_json(source.to_json()) == source
    assert source.absolute() == source
