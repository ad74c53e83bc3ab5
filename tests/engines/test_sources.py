"""Where rows come from: files of every format, tables and frames, and what of them is refused.

DuckDB reads files for Polars too, so that files are opened here on DuckDB, and on Spark where it is
asked for; frames and tables in memory on every engine.
"""

import gzip
import json
import os
import re
import traceback
from glob import glob
from typing import Any
from unittest.mock import MagicMock

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphh
from dphh import Corpus, CorpusError, UsageError, items
from dphh.engines import ENGINES
from dphh.errors import UnreachableError
from dphh.reader.identity import state_of_files
from dphh.reader.tables import schema_of_table
from tests.engines.levels import expected, frame, histogram

ROWS = [("1", "a b"), ("1", "b c"), ("2", "b"), ("3", "a"), ("3", "a")]
ASK = {"epsilon": 1, "delta": 1e-6}


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table(rows, users=str):
    return pa.table({"who": [users(row[0]) for row in rows], "what": [row[1] for row in rows]})


def delimited(rows, head=("who", "what")):
    return "".join(",".join(f'"{field}"' for field in line) + "\n" for line in [head, *rows])


def jsonl(rows):
    return "".join(json.dumps({"who": int(who), "what": what}) + "\n" for who, what in rows)


def delta(folder, rows):
    deltalake = pytest.importorskip("deltalake", reason="needs dphh[delta]")
    deltalake.write_deltalake(folder, table([*rows, ("9", "deleted")], int))
    deltalake.DeltaTable(folder).delete("who = 9")
    return folder


def database(file, rows):
    with duckdb.connect(str(file)) as con:
        con.register("rows", table(rows))
        con.execute("CREATE TABLE reviews AS FROM rows")
        con.execute("CREATE SCHEMA old; CREATE TABLE old.reviews AS FROM rows LIMIT 1")
        con.execute("CREATE VIEW seen AS FROM reviews")
    return file


# As many ways to write the same rows


def as_folder(folder, rows):
    (folder / "deep" / "er").mkdir(parents=True)
    frame(rows[:2]).write_parquet(folder / "deep" / "one.parquet")
    frame(rows[2:]).write_parquet(folder / "deep" / "er" / "two.parquet")
    return folder


def as_partitions_by_user(folder, rows):
    for index, (user, text) in enumerate(rows):
        (folder / f"who={user}").mkdir(exist_ok=True)
        pl.DataFrame({"what": [text]}).write_parquet(folder / f"who={user}" / f"{index}.parquet")
    return folder


def as_csv(folder, rows):
    (folder / "x.csv").write_text(delimited(rows))
    return folder / "x.csv"


def as_zipped_csv_files_of_two_headers(folder, rows):
    (folder / "a.csv.gz").write_bytes(gzip.compress(delimited(rows[:2]).encode()))
    turned = [(what, "-", who) for who, what in rows[2:]]
    (folder / "b[1].csv.gz").write_bytes(
        gzip.compress(delimited(turned, head=("what", "not read", "who")).encode())
    )
    return f"{folder}/*.csv.gz"


def as_zipped_ndjson(folder, rows):
    (folder / "x.ndjson.gz").write_bytes(gzip.compress(jsonl(rows).encode()))
    return [folder / "x.ndjson.gz"]


def as_table_of_a_database(folder, rows):
    return f"{database(folder / 'app.duckdb', rows)}/reviews"


FILES = [
    as_folder, as_partitions_by_user, as_csv, as_zipped_csv_files_of_two_headers,
    as_zipped_ndjson, as_table_of_a_database,
]  # fmt: skip


@pytest.mark.parametrize("way", FILES)
def test_files_of_every_format_are_read(way, tmp_path, engine, no_noise):
    corpus = Corpus(way(tmp_path, ROWS), user="who", text="what")
    assert histogram(engine, corpus, no_noise, 3) == expected(ROWS)


#: By connection: tables, views, names that must be quoted, relations.
IN_DUCKDB = {
    "table": "CREATE TABLE messages AS FROM rows",
    's."odd; na\'me"': 'CREATE SCHEMA s; CREATE TABLE s."odd; na\'me" AS FROM rows',
    "seen": "CREATE TABLE messages AS FROM rows; CREATE VIEW seen AS FROM messages",
}
IN_MEMORY: dict[str, Any] = {
    **{f"DuckDB's {name}": name for name in IN_DUCKDB},
    "relation": lambda con: con.sql("SELECT what, who, 1 AS more FROM rows WHERE who > '0'"),
    "temporary table": lambda con: con.sql("CREATE TEMP TABLE hidden AS FROM rows; FROM hidden"),
    "arrow": lambda con: table(ROWS),
    "polars": lambda con: frame(ROWS),
    "lazy": lambda con: frame(ROWS).lazy().with_columns(more=pl.lit(1)),
    "pandas": lambda con: frame(ROWS).to_pandas(),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", IN_MEMORY)
def test_tables_in_memory_are_read(way, engine, no_noise):
    if way == "pandas":
        pytest.importorskip("pandas")
    con = duckdb.connect()
    con.register("rows", table(ROWS))
    if callable(made := IN_MEMORY[way]):
        corpus = Corpus(made(con), user="who", text="what")
    else:
        con.execute(IN_DUCKDB[made])
        name = "messages" if made == "table" else made
        corpus = Corpus(name, connection=con, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 3) == expected(ROWS)


def test_a_table_none_of_whose_rows_counts_adds_nothing(engine, no_noise):
    rows = pa.table({"who": ["1"], "what": pa.array([None], pa.list_(pa.string()))})
    corpus = Corpus(rows, user="who", text="what", as_="list")
    assert histogram(engine, corpus, no_noise, 3) == {}


@pytest.mark.parametrize("way", ["arrow", "relation"])
def test_duckdb_keeps_no_copy_of_what_spark_takes(way, monkeypatch):
    spark = pytest.importorskip("dphh.engines.spark.content", reason="needs dphh[spark]")
    monkeypatch.setattr(spark, "register_arrow", MagicMock())
    con = duckdb.connect()
    con.register("rows", table(ROWS))
    session, closing, taken = MagicMock(), MagicMock(), []

    def take(rows: pa.Table) -> MagicMock:
        (opened,) = (call.args[0].__self__ for call in closing.call_args_list)
        with pytest.raises(duckdb.ConnectionException):
            opened.con.execute("FROM rows_of_corpus")
        taken.extend(zip(*(rows[name].to_pylist() for name in ("user_id", "content")), strict=True))
        return MagicMock()

    session.createDataFrame = take
    corpus = Corpus(IN_MEMORY[way](con), user="who", text="what")
    load, *_ = spark.open_corpus(session, corpus, closing)
    load()
    assert sorted(taken) == sorted(ROWS)


# Names


def test_no_row_and_no_folder_decides_how_others_are_read(engine, tmp_path, no_noise):
    """Guessing readers take the first column for numbers, and 007 for 7, until one user differs."""
    rows = [("007", "a"), ("7", "a"), ("7.1", "a")]
    corpus = Corpus(as_csv(tmp_path, rows), user="who", text="what")
    assert histogram(engine, corpus, no_noise, 1) == {"a": 3 * 1024}
    for name in ("007", "8", "x"):
        (tmp_path / "folders" / f"what={name}").mkdir(parents=True)
        one = tmp_path / "folders" / f"what={name}" / "1.parquet"
        pl.DataFrame({"who": ["u" + name]}).write_parquet(one)
    corpus = Corpus(tmp_path / "folders", user="who", item="what")
    assert histogram(engine, corpus, no_noise, 10) == {"007": 1024, "8": 1024, "x": 1024}


def test_columns_of_the_files_go_before_those_of_the_folders_names(engine, tmp_path, no_noise):
    """Else a folder on the way that happens to be called who=7 would make all users one."""
    folder = tmp_path / "who=7" / "what=x"
    folder.mkdir(parents=True)
    frame(ROWS).write_parquet(folder / "one.parquet")
    for source in (folder / "one.parquet", tmp_path):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


@pytest.mark.parametrize(
    "name", ["o'dd na\"me", "[x]", "st*r", "q?", "únï", "a{b,c}", "p%20q", "x; DROP TABLE y; --"]
)
def test_odd_names_of_files_and_folders_are_taken_as_they_are(engine, tmp_path, no_noise, name):
    (tmp_path / name).mkdir()
    path = tmp_path / name / f"{name}.parquet"
    frame(ROWS).write_parquet(path)
    (tmp_path / "x").mkdir()  # what [x] and q? would match as globs
    frame([("9", "other")]).write_parquet(tmp_path / "x" / "x.parquet")
    for source in (path, tmp_path / name):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


ODD = "we\"ird; 'drop' na.me $1 ñ\n--"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [ODD, "$max_items", "select", "`x`"])
def test_odd_column_names_are_taken_as_they_are(engine, tmp_path, no_noise, name):
    odd = frame(ROWS).rename({"who": name, "what": name[::-1] + "?"})
    odd.write_parquet(tmp_path / "odd.parquet")
    for source in (tmp_path / "odd.parquet", odd.lazy()):
        corpus = Corpus(source, user=name, text=name[::-1] + "?")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_no_name_of_a_column_or_a_file_steers_a_terminal(tmp_path, ledger):
    file = tmp_path / "a\x1b[2Jb.parquet"
    pl.DataFrame({"who\x1b]0;title\x07": [1], "w\u202ehat": ["a"]}).write_parquet(file)
    found = repr(dphh.check(Corpus(file, user="who", text="what"), ledger=ledger))
    with pytest.raises(CorpusError) as caught:
        items(Corpus(file, user="who", text="what"), **ASK).run(ledger=ledger)
    for said in (found, str(caught.value), "".join(traceback.format_exception(caught.value))):
        assert "\\x1b" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


# What is refused costs nothing, and quotes no row


def refused(source, ledger, said, engine="duckdb"):
    with pytest.raises(CorpusError, match=said) as caught:
        items(Corpus(source, user="who", text="what"), **ASK).run(ledger=ledger, engine=engine)
    assert "SENTINEL" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ledger.runs() == []


BAD_ROWS = [b'1,"a SENTINEL\n2,b\n', b"1,a SENTINEL,c\n", b"1,SENTINEL\xff\n", b"1\n"]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("csv", 'who,what\n1,"a\n  file = SENTINEL"\n2,"b\n  file = SENTINEL\n",SENTINEL\n'),
        ("csv", "who,what\n1,a\n1,a SENTINEL,c\n"),
        ("jsonl", '{"who": 1, "what": "a"}\n{"who": 1, "what": "in file \\"SENTINEL\\"\n'),
    ],
)
def test_of_many_texts_the_one_with_a_bad_line_is_named(kind, rows, tmp_path, ledger):
    """The file's name is read from DuckDB's error, which quotes the line."""
    good = {"csv": "who,what\n1,a\n", "jsonl": '{"who": 1, "what": "a"}\n'}[kind]
    for name, content in (("a", good), ("b", rows), ("c", good)):
        (tmp_path / f"{name}.{kind}").write_text(content)
    refused(f"{tmp_path}/*.{kind}", ledger, rf"line \d+ of {tmp_path}/b.{kind} cannot be read")
    (tmp_path / "who=SENTINEL").mkdir()
    (tmp_path / f"b.{kind}").rename(tmp_path / "who=SENTINEL" / f"b.{kind}")
    refused(f"{tmp_path}/*/*.{kind}", ledger, rf"of {tmp_path}/who=\*/b.{kind} cannot be read")


@pytest.mark.parametrize("row", BAD_ROWS)
def test_opening_looks_at_no_row_and_a_bad_one_is_not_quoted(row, tmp_path, ledger, engine):
    (tmp_path / "x.csv").write_bytes(b"who,what\n" + row)
    refused(tmp_path / "x.csv", ledger, "corpus", engine)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", "who,text\n1,SENTINEL\n", "no column|0 columns 'what'"),
        ("x.csv", "who,what,what\n1,a,SENTINEL\n", "2 columns 'what'"),
        ("x.csv", "1,SENTINEL\n2,b\n", "must name the columns, has 2 fields"),
        ("x.csv", b"who,gr\xf6\xdfe SENTINEL\n", "x.csv is not lines of UTF-8 .*iconv -f LATIN1"),
        ("x.csv", b"who,what\n" + b"1,a\n" * 70_000 + b"2,\xf6 SENTINEL\n", "70002 .*not UTF-8"),
        ("x.csv", "who;which\n1;SENTINEL\n", "no column 'what'; .* has 2 fields .* parted by ';'"),
        ("x.csv", "who; What \n1;SENTINEL\n", "no column 'what'; did you mean ' What '"),
        ("x.csv", "who,what SENTINEL\n", "no column 'what'; the first line"),
        ("x.csv", "sep=;\nwho;what\n1;SENTINEL\n", "delete its line `sep=`"),
        ("x.jsonl", '{"who": 1, "text": "SENTINEL"}\n', "the first line has no such key"),
        ("x.jsonl", '[{"who": 1, "what": "SENTINEL"}]', "one JSON object a line"),
        ("x.xlsx", "a", "x.xlsx cannot be read as Parquet .*read it with another library"),
        ("x.duckdb", "", "could not be opened"),
        ("x.duckdb/reviews", None, "no such file"),
        ("x.parquet", "who,what\n1,SENTINEL\n", "cannot be read as Parquet"),
        ("no.csv", None, "no such file"),
        ("no/*.parquet", None, "no such file"),
        ("app.duckdb", None, "name a table in it, such as .*app.duckdb/main.reviews"),
        ("app.duckdb/nothing", None, "no table 'nothing'"),
        ("app.duckdb/seen", None, "views are not accepted"),
    ],
)
def test_what_cannot_be_read_says_what_to_do_and_costs_nothing(
    name, content, said, tmp_path, ledger, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    database(tmp_path / "app.duckdb", ROWS)
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(name, ledger, said)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"text": "no"}, "^text or item: the corpus has no column 'no'; it has who, what"),
        ({"user": "WHO"}, "^user: the corpus has no column 'WHO'"),
        ({"user": 'who" FROM x; --'}, "^user: the corpus has no column"),
        ({"text": "number"}, "needs text, but 'number' is (INTEGER|Int32|int)"),
        ({"as_": "list"}, "'list' needs a list column, but 'what' is (VARCHAR|String|string)"),
    ],
)
def test_columns_that_do_not_fit_are_named(engine, tmp_path, no_noise, options, message):
    table = frame(ROWS).with_columns(listed=pl.lit([1]), number=1)
    table.write_parquet(tmp_path / "c.parquet")
    for source in (table, tmp_path / "c.parquet"):
        corpus = Corpus(source, **({"user": "who", "text": "what"} | options))
        with pytest.raises(CorpusError, match=message):
            histogram(engine, corpus, no_noise, 10)


@pytest.mark.parametrize("user", ["who", "Who"])
def test_columns_whose_names_differ_only_in_case_are_named(user, engine, tmp_path, no_noise):
    twins = frame(ROWS).with_columns(Who=1)
    twins.write_parquet(tmp_path / "c.parquet")
    for source in (twins, tmp_path / "c.parquet"):
        with pytest.raises(CorpusError, match=r"^user: .* has the columns who, Who, whose names"):
            histogram(engine, Corpus(source, user=user, text="what"), no_noise, 10)
    twins.write_csv(tmp_path / "c.csv")  # read by position
    there = [("1", what) for _, what in ROWS] if user == "Who" else ROWS
    found = histogram(engine, Corpus(tmp_path / "c.csv", user=user, text="what"), no_noise, 10)
    assert found == expected(there)


def test_a_file_that_several_names_mean_is_read_once(engine, tmp_path, no_noise):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    names = [tmp_path / "a.parquet", tmp_path, tmp_path / "*.parquet", tmp_path / "a.parquet"]
    both = [Corpus(each, user="who", text="what") for each in (names, tmp_path / "a.parquet")]
    assert both[0].local_files == both[1].local_files
    assert histogram(engine, both[0], no_noise, 10) == histogram(engine, both[1], no_noise, 10)


CUT = b"PAR1SENTINEL"
MIXED_TYPES = "user: column who is text in a.parquet and integer in sub/b.parquet"


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"", UnreachableError, "sub/b.parquet is empty, has no end or is gone"),
        (CUT, UnreachableError, "sub/b.parquet is empty, has no end or is gone"),
        (b"PAR1", UnreachableError, "still being written. Try again"),
        (b"who,what", CorpusError, "sub/b.parquet cannot be read as Parquet"),
        (CUT + b"PAR1", CorpusError, "sub/b.parquet cannot be read as Parquet"),
        (None, CorpusError, MIXED_TYPES),
    ],
)
@pytest.mark.parametrize("below", ["", "/**/*.parquet"])
def test_of_many_files_the_bad_one_is_named(below, content, error, said, tmp_path, ledger):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "sub").mkdir()
    if content is None:
        pq.write_table(table(ROWS, int), tmp_path / "sub/b.parquet")
    else:
        (tmp_path / "sub/b.parquet").write_bytes(content)
    corpus = Corpus(f"{tmp_path}{below}", user="who", text="what")
    with pytest.raises(error, match=said) as caught:
        items(corpus, **ASK).run(ledger=ledger)
    assert "SENTINEL" not in str(caught.value)
    assert ledger.runs() == []
    # A file that may be complete by the next attempt is no bad input: a scheduler tries again.
    assert caught.value.exit_code == (2 if error is CorpusError else 1)
    assert "b.parquet" in repr(dphh.check(corpus, ledger=ledger))


def test_the_bad_file_is_named_without_the_user_id_of_its_folder(tmp_path, ledger):
    as_partitions_by_user(tmp_path, [("SENTINEL", "a")])
    (tmp_path / "who=SENTINEL/more=1").mkdir()
    (tmp_path / "who=SENTINEL/more=1/b.parquet").touch()
    corpus = Corpus(tmp_path, user="who", text="what")
    with pytest.raises(UnreachableError, match=r" who=\*/more=1/b.parquet is") as caught:
        items(corpus, **ASK).run(ledger=ledger)
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"a" * 200_000 + b"\n"])
def test_the_bad_start_of_a_csv_is_told_without_the_user_id_of_its_folder(content, tmp_path):
    (tmp_path / "who=SENTINEL").mkdir()
    (tmp_path / "who=SENTINEL/b.csv").write_bytes(content)
    with pytest.raises(CorpusError, match=r"who=\*/b.csv") as caught:
        items(Corpus(f"{tmp_path}/*/*.csv", user="who", text="what"), **ASK).run()
    assert "SENTINEL" not in str(caught.value)


# Which files a folder and a glob stand for


@pytest.mark.parametrize("below", ["", "/**", "/**/*.parquet"])
def test_unfinished_and_hidden_files_are_skipped_unless_they_are_named(
    below, engine, tmp_path, no_noise
):
    folder = tmp_path / ".kept" / "_data"  # what is spelled out may begin so
    names = [
        "_temporary/0/x.parquet", ".x.parquet", "_x.parquet", ".y/x.parquet", "_y/a=1/x.parquet",
    ]  # fmt: skip
    for name in ("a.parquet", "_day=1/b.PARQUET" if below == "" else "_day=1/b.parquet", *names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = {"a.parquet": ROWS[:3], **{each: [("9", "unfinished")] for each in names}}
        frame(rows.get(name, ROWS[3:])).write_parquet(folder / name)
    (folder / "_SUCCESS").touch()
    corpus = Corpus(f"{folder}{below}", user="who", text="what")
    before = corpus.local_files, state_of_files(corpus, b"")
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)
    frame(ROWS).write_parquet(folder / "_temporary/new.parquet")
    assert (corpus.local_files, state_of_files(corpus, b"")) == before
    named = ["_temporary", "_[xy]", "_temporary/*", "_*/0/*.parquet"]
    if engine != "spark":  # it reads no file of such a name
        named += ["_x.parquet", ".x.parquet", "_?.parquet", ".*.parquet"]
    for name in named:
        there = Corpus(folder / name, user="who", text="what").local_files
        if there:
            assert {*there} <= {str(folder / each) for each in (*names, "_temporary/new.parquet")}
            found = histogram(engine, Corpus(there[-1], user="who", text="what"), no_noise, 10)
            assert found in ({"unfinished": 1024}, expected(ROWS))
        else:
            assert name == "_[xy]"


def test_files_are_listed_once_a_run(tmp_path, ledger, monkeypatch):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    corpus, listed = Corpus(tmp_path, user="who", text="what"), []
    ledger.add("reviews", corpus, 1.0, 1e-6)

    def listing(pattern, **options):
        listed.append(pattern)
        return glob(pattern, **options)  # noqa: PTH207

    monkeypatch.setattr("dphh.reader.paths.glob", listing)
    items(corpus, **ASK).run(ledger=ledger)
    assert listed == [f"{tmp_path}/**"]


@pytest.mark.parametrize("columns", [["who", "more", "what"], ["what", "who"], ["who"]])
def test_columns_of_files_are_united_by_their_names(columns, engine, tmp_path, no_noise):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    more = frame([("8", "a")]).with_columns(more=pl.lit("b")).select(columns)
    more.write_parquet(tmp_path / "b.parquet")
    corpus = Corpus(tmp_path, user="who", text="what")
    there = [*ROWS, ("8", "a")] if "what" in columns else ROWS
    assert histogram(engine, corpus, no_noise, 10) == expected(there)


def test_a_folder_without_parquet_says_how_its_files_are_named(tmp_path, ledger, no_noise):
    (tmp_path / "deep").mkdir()
    as_csv(tmp_path / "deep", ROWS)
    with pytest.raises(CorpusError, match="name its files of another format, as") as caught:
        items(Corpus(tmp_path, user="who", text="what"), **ASK).run(ledger=ledger)
    place = re.findall("as '(.*?)'", str(caught.value))[0]
    corpus = Corpus(place, user="who", text="what")
    assert histogram("duckdb", corpus, no_noise, 3) == expected(ROWS)


def test_one_place_without_a_file_among_others_is_refused(tmp_path, ledger):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    refused([tmp_path / "a.parquet", tmp_path / "b*.parquet"], ledger, "no such file")


def test_a_file_whose_name_is_not_utf8_is_refused(tmp_path, ledger):
    frame(ROWS).write_parquet(tmp_path / "a.parquet")
    os.link(tmp_path / "a.parquet", os.fsencode(tmp_path) + b"/b\xff.parquet")
    refused(tmp_path, ledger, "the name of a file is not UTF-8")


# Tables with a log have rows that were deleted


@pytest.mark.parametrize("spelled", ["folder", "files", "one file", "above"])
def test_files_of_a_table_with_a_log_are_refused(spelled, tmp_path, engine, ledger):
    made = delta(tmp_path / "lake", ROWS)
    place = {
        "folder": made, "files": f"{made}/**/*.parquet", "above": tmp_path / "lake",
        "one file": sorted(made.rglob("*.parquet"))[0],
    }[spelled]  # fmt: skip
    refused(place, ledger, r"is a table of Delta, .*give a frame of it", engine)


def test_a_table_with_a_log_comes_as_a_frame(tmp_path, no_noise):
    deltalake = pytest.importorskip("deltalake", reason="needs dphh[delta]")
    corpus = Corpus(pl.scan_delta(delta(tmp_path / "d", ROWS)), user="who", text="what")
    assert histogram("polars", corpus, no_noise, 3) == expected(ROWS)
    with pytest.raises(UsageError, match=r"give pl\.scan_delta"):
        Corpus(deltalake.DeltaTable(tmp_path / "d"), user="who", text="what")


def test_one_tables_release_is_not_another_tables(tmp_path, ledger):
    file = database(tmp_path / "app.duckdb", ROWS)
    asked = [
        Corpus(f"{file}/{name}", user="who", text="what") for name in ("reviews", "old.reviews")
    ]
    made = [items(corpus, **ASK).run(ledger=ledger).run_id for corpus in asked]
    assert made[0] != made[1]
    assert items(asked[0], **ASK).run(ledger=ledger).run_id == made[0]


def test_gaps_of_a_pandas_frame_are_null_and_its_rows_are_not_shown(engine, no_noise):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"who": ["1", "2", "3"], "what": ["a", None, float("nan")]})
    corpus = Corpus(rows, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 3) == expected([("1", "a")])
    assert repr(corpus) == "Corpus(<frame 'pandas:DataFrame'>, user='who', text='what')"
    mixed = pandas.DataFrame({"who": [1, "SENTINEL"], "what": ["a", "b"]})
    with pytest.raises(CorpusError, match=r"user: column 'who', of pandas' type object") as caught:
        histogram(engine, Corpus(mixed, user="who", text="what"), no_noise, 3)
    assert "SENTINEL" not in str(caught.value)


def test_columns_of_a_pandas_frame_that_are_not_read_may_have_anything(engine, no_noise):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame([["1", "a", 1, "x"], ["2", "b", "y", {}]])
    rows.columns = ["who", "what", "twice", "twice"]
    corpus = Corpus(rows, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 3) == expected([("1", "a"), ("2", "b")])


def test_a_relation_of_a_closed_connection_is_said_to_be_one():
    con = duckdb.connect()
    corpus = Corpus(con.sql("SELECT 1 AS who, 'a' AS what"), user="who", text="what", account="a")
    con.close()
    with pytest.raises(CorpusError, match="is its connection closed"):
        schema_of_table(corpus)
