"""Who a user is: by any type of id, by several columns, and rows of nobody.

DuckDB reads rows for Polars too: files and tables are opened here on DuckDB, and on Spark where it
is asked for.
"""

import decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphh import (
    Corpus,
    CorpusError,
    Ledger,
    UsageError,
    check,
    counts,
    items,
    ldp_trie,
    ngrams,
    trie,
)
from dphh.mechanisms.set_union.draws import draw_words
from dphh.reader.files import refuse_unclear_columns
from dphh.udfs.kernel.gathering import ReadWords
from tests.engines.levels import bare_level, expected, few, frame, histogram, host_on

ASK: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
SPELLED = "so that equal users are spelled equally. Nothing was spent"
NULL = "a NULL user id"


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Types of ids


def test_users_of_one_hash_are_told_apart(no_noise):
    rows = [(f"user {i % 7}", f"w{i % 5} shared") for i in range(100)]
    corpus = Corpus(frame(rows), user="who", text="what")
    with host_on("duckdb", corpus, no_noise) as host:
        host.con.execute("CREATE OR REPLACE TEMP MACRO order_of_user(user_id) AS 0")
        host.gather("users", ReadWords())
        passed = draw_words(host, bare_level(10), "test")
    found = dict(zip(*(passed.column(c).to_pylist() for c in ("key", "noisy")), strict=True))
    assert found == expected(rows)


def test_rows_without_a_user_are_refused_that_came_after_the_look(tmp_path, no_noise):
    """A file is replaced between the look at it and the gathering: nobody's rows are no user's."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"who": ["ann"], "what": ["a b"]}), path)
    with host_on("duckdb", Corpus(path, user="who", text="what"), no_noise) as host:
        host.open()
        pq.write_table(pa.table({"who": ["ann", None], "what": ["a b", "c"]}), path)
        with pytest.raises(CorpusError, match=NULL):
            host.gather("users", ReadWords())


#: Two ids of each type that is refused. The first kinds are equal, and written in two ways.
REFUSED: dict[str, Any] = {
    "zeros": pa.array([0.0, -0.0]),
    "lists": pa.array([[0.0], [-0.0]]),
    "structs": pa.array([{"x": 0.0}, {"x": -0.0}]),
    "binary": pa.array([b"\xff", b"\xfe"]),
    "times": pa.array([1, 2], pa.time64("us")),
    "timestamps": pa.array([1, 2], pa.timestamp("us")),
    "instants": pa.array([1, 2], pa.timestamp("us", "UTC")),
}


def refused(corpus: Corpus, ledger: Ledger, engine: str) -> str:
    with pytest.raises((CorpusError, UsageError), match=r"^user") as caught:
        items(corpus, counts=0, **ASK).run(ledger=ledger, engine=engine)
    assert ledger.runs() == []
    return str(caught.value)


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("kind", REFUSED)
def test_a_type_of_several_spellings_is_refused_before_anything_is_paid(
    engine, tmp_path, ledger, kind
):
    if (engine, kind) == ("spark", "times"):
        pytest.skip("Spark reads no file of them at all")
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"who": REFUSED[kind], "what": ["a", "b"]}), path)
    said = refused(Corpus(path, user="who", text="what"), ledger, engine)
    assert "user: column who is " in said
    assert said.endswith(f"cast it to text or to an integer in a view, {SPELLED}")
    several = Corpus(path, user=["what", "who"], text="what")
    assert "user, column 2: column who is" in refused(several, ledger, engine)


VERBS: dict[str, Any] = {
    "items": items,
    "ngrams": partial(ngrams, max_n=2),
    "counts": partial(counts, of=[["a"]]),
    "trie": partial(trie, max_length=2),
    "ldp_trie": partial(
        ldp_trie, local_epsilon=4, users_per_level=99, max_length=1, keep=1, contributions=1
    ),
}


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("verb", VERBS)
def test_one_id_in_two_spellings_is_refused_by_every_verb(engine, tmp_path, ledger, verb):
    pq.write_table(pa.table({"who": [0.0, -0.0], "what": ["a", "b"]}), tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", item="what")
    asked = {"delta": 1e-6} if verb == "ldp_trie" else ASK
    with pytest.raises(CorpusError, match=SPELLED):
        VERBS[verb](corpus, **asked).run(ledger=ledger, engine=engine)
    assert ledger.runs() == []


#: The user's column in two or three files. United as text, or as a decimal, one user's id would be
#: spelled in two ways, or two users' ids in one.
APART: dict[str, tuple[Any, ...]] = {
    "zeros beside text": (pa.array([0.0, -0.0]), pa.array(["x"])),
    "integers beside floats": (pa.array([2**53, 2**53 + 1]), pa.array([1.5, None])),
    "decimals and integers beside text": (
        pa.array([decimal.Decimal("1.00")]), pa.array([1]), pa.array(["x"])
    ),
    "decimals of two scales": (
        pa.array([decimal.Decimal(10**37)], pa.decimal128(38, 0)),
        pa.array([decimal.Decimal("1.1"), decimal.Decimal("1.4")], pa.decimal128(38, 30)),
    ),
}  # fmt: skip


def files_of(folder: Path, columns: tuple[Any, ...]) -> Path:
    for number, ids in enumerate(columns):
        table = pa.table({"who": ids, "what": ["a"] * len(ids)})
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("files", APART)
def test_a_user_column_of_two_types_in_two_files_is_refused_before_anything_is_paid(
    engine, tmp_path, ledger, files
):
    corpus = Corpus(files_of(tmp_path, APART[files]), user="who", text="what")
    said = refused(corpus, ledger, engine)
    assert said.endswith(SPELLED)


def test_widths_of_integers_and_columns_without_values_are_no_other_type(tmp_path):
    columns = (
        pa.array([None], pa.null()), pa.array([1], pa.int32()), pa.array([2**53 + 1]),
        pa.array([2**64 - 1], pa.uint64()),
    )  # fmt: skip
    refuse_unclear_columns(
        Corpus(files_of(tmp_path, columns), user="who", text="what", null_users="drop")
    )


@pytest.mark.parametrize("ids", [["1.0", "1"], ["2e0", "2.0"], ['{"x": 1}', '{"x":1}'], ["[1]"]])
def test_users_that_json_spells_in_two_ways_are_refused(tmp_path, ledger, ids):
    lines = [f'{{"who": {each}, "what": "a"}}' for each in ("7", *ids)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    corpus = Corpus(tmp_path / "c.jsonl", user="who", text="what")
    assert SPELLED in refused(corpus, ledger, "duckdb")
    con = duckdb.connect()
    for each in ids:
        relation = con.sql(f"SELECT '{each}'::JSON AS who, 'a' AS what")
        assert "is JSON" in refused(Corpus(relation, user="who", text="what"), ledger, "duckdb")


def test_what_duckdb_says_of_folders_named_after_users_is_not_shown(tmp_path, ledger):
    for name in ("SENTINEL", "x=y"):
        (tmp_path / f"who={name}").mkdir()
        pq.write_table(pa.table({"what": ["a"]}), tmp_path / f"who={name}" / "c.parquet")
    with pytest.raises(CorpusError, match="DuckDB cannot take its columns or its folders") as said:
        items(Corpus(tmp_path, user="who", text="what"), **ASK).run(ledger=ledger)
    assert "SENTINEL" not in str(said.value)
    assert ledger.runs() == []


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_refused_type_has_the_name_that_its_frame_gives_it(kind, ledger):
    rows: Any = pl.DataFrame({"who": [1.5], "what": ["a"]})
    if kind == "pandas":
        pytest.importorskip("pandas")
        rows = rows.to_pandas()
    said = {"polars": "column who is Float64;", "pandas": "float64 (integers with gaps: astype("}[
        kind
    ]
    assert said in refused(Corpus(rows, user="who", text="what"), ledger, "duckdb")


# Rows of nobody

ROWS = [("ann", 1, "a b"), ("bob", 1, "b"), (None, None, "SENTINEL"), (None, None, None)]
#: A NULL in one of two columns: a row of somebody.
HALF = [("ann", 1, "a b"), ("bob", None, "b")]


def table(rows) -> pa.Table:
    names = ("who", "month", "what")
    kinds = (pa.string(), pa.int64(), pa.string())
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(c, k) for n, k, c in zip(names, kinds, columns, strict=True)})


def in_files(folder, rows) -> Any:
    pq.write_table(table(rows), folder / "c.parquet")
    return folder / "c.parquet"


WAYS = pytest.mark.parametrize("way", [in_files, lambda folder, rows: table(rows)])
IN_TABLES: dict[str, Any] = {
    "files": in_files,
    "arrow": lambda folder, rows: table(rows),
    "polars": lambda folder, rows: pl.DataFrame(table(rows)).lazy(),
    "relation": lambda folder, rows: duckdb.connect().from_arrow(table(rows)),
}


@pytest.mark.parametrize("way", IN_TABLES)
@pytest.mark.parametrize(
    ("user", "rows"),
    [
        ("who", ROWS),
        (["who", "month"], ROWS),
        (["who", "month"], HALF),
        (["month", "who"], HALF),
        ("who", [ROWS[0], ROWS[3]]),  # a row that would not count
    ],
)
def test_rows_without_any_user_are_refused_before_anything_is_paid(
    way, user, rows, engine, tmp_path, ledger
):
    corpus = Corpus(IN_TABLES[way](tmp_path, rows), user=user, text="what")
    with pytest.raises(CorpusError, match=f"{NULL}.*null_users='drop'.*Nothing was spent") as said:
        items(corpus, counts=0, **ASK).run(engine=engine, ledger=ledger)
    assert "SENTINEL" not in str(said.value)
    assert ledger.runs() == []
    assert not check(corpus, ledger=ledger, engine=engine).ok


@WAYS
@pytest.mark.parametrize(("user", "rows"), [("who", ROWS), (["who", "month"], ROWS + HALF)])
def test_dropped_they_change_nothing(way, user, rows, engine, tmp_path, no_noise):
    corpus = Corpus(way(tmp_path, rows), user=user, text="what", null_users="drop")
    names = (lambda r: r[0]) if user == "who" else (lambda r: (r[0], r[1]))
    there = [(names(r), r[2]) for r in rows if r[0] and (user == "who" or r[1])]
    assert histogram(engine, corpus, no_noise, 4) == expected(there)
    assert corpus.content.to_json()["null_users"] == "drop"


def test_rows_without_content_are_ignored_whoever_they_are_of(engine, written, no_noise):
    rows = [(1, "a"), (2, None), (3, ""), (4, " \t\n")]
    assert histogram(engine, written(rows), no_noise, 10) == {"a": 1024}


# Several columns

#: Names that run into one another where they are put side by side, or together with their lengths.
NAMES = st.sampled_from(["", "1", "11", "1:1", ":", "é", "1:11:1", "a,b", "a"])
UNITS = st.lists(
    st.tuples(NAMES, NAMES, st.sampled_from(["x", "y", "z", "x y"])), min_size=1, max_size=20
)


def by_month(folder, rows, user=("who", "month")):
    path = folder / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "month", "what"], orient="row").write_parquet(path)
    return Corpus(path, user=user, text="what")


@given(rows=UNITS)
@example(rows=[("a", "bc", "x"), ("ab", "c", "x"), ("a:", "b", "x"), ("a", ":b", "x")])
@few(10)
def test_each_combination_of_values_is_one_unit(engine, tmp_path, no_noise, rows):
    units = [((who, month), text) for who, month, text in rows]
    assert histogram(engine, by_month(tmp_path, rows), no_noise, 10) == expected(units)


def test_the_account_knows_its_unit_and_keeps_to_it(tmp_path, ledger):
    rows = [("ann", "may", "x")]
    account = ledger.add("months", by_month(tmp_path, rows), 1.0, 1e-6)
    assert account.corpus.user == ("who", "month")
    assert "promised to each combination of who and month; less to a person" in repr(account)
    for user in ("who", "month", ["month", "who"]):
        with pytest.raises(UsageError, match="protects combinations of the columns"):
            items(by_month(tmp_path, rows, user=user), epsilon=0.1, delta=1e-8).run(ledger=ledger)
    items(by_month(tmp_path, rows), epsilon=0.1, delta=1e-8).run(ledger=ledger)
    (entry,) = ledger.runs()
    assert entry.parameters["user"] == ["who", "month"]
    assert entry.corpus.user == ("who", "month")
