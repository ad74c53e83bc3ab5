"""Every source and every user type, against plain Python. One body, every engine."""

from __future__ import annotations

import uuid
from datetime import date

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError
from dphh.mechanisms.set_union.levels import draw_words
from dphh.udfs.kernel.reading import Words
from tests.engines.contents import ROWS, expected, frame
from tests.engines.levels import bare_level, histogram, host_on


def as_path(folder, con):
    frame(ROWS).write_parquet(folder / "one.parquet")
    return {"source": str(folder / "one.parquet")}


def as_path_object(folder, con):
    as_path(folder, con)
    return {"source": folder / "one.parquet"}


def as_list(folder, con):
    frame(ROWS[:2]).write_parquet(folder / "one.parquet")
    frame(ROWS[2:]).write_parquet(folder / "two.parquet")
    return {"source": [folder / "one.parquet", str(folder / "two.parquet")]}


def as_glob(folder, con):
    as_list(folder, con)
    return {"source": f"{folder}/*.parquet"}


def as_folder(folder, con):
    (folder / "deep" / "er").mkdir(parents=True)
    frame(ROWS[:2]).write_parquet(folder / "deep" / "one.parquet")
    frame(ROWS[2:]).write_parquet(folder / "deep" / "er" / "two.parquet")
    return {"source": folder}


def as_partitions_by_user(folder, con):
    for index, (user, text) in enumerate(ROWS):
        (folder / f"who={user}").mkdir(exist_ok=True)
        pl.DataFrame({"what": [text]}).write_parquet(folder / f"who={user}" / f"{index}.parquet")
    return {"source": folder}


def as_table(folder, con):
    con.execute("CREATE TABLE messages AS FROM rows")
    return {"source": "messages", "connection": con}


def as_quoted_table(folder, con):
    con.execute('CREATE SCHEMA s; CREATE TABLE s."odd; na\'me" AS FROM rows')
    return {"source": 's."odd; na\'me"', "connection": con}


def as_view(folder, con):
    con.execute("CREATE TABLE messages AS FROM rows; CREATE VIEW seen AS FROM messages")
    return {"source": "seen", "connection": con}


def as_temp_table(folder, con):
    con.execute("CREATE TEMP TABLE hidden AS FROM rows")
    return {"source": con.sql("FROM hidden")}


def as_relation(folder, con):
    return {"source": con.sql("SELECT what, who, 1 AS more FROM rows WHERE who > 0")}


def as_arrow(folder, con):
    return {"source": frame(ROWS).to_arrow()}


def as_reader(folder, con):
    table = frame(ROWS).to_arrow()
    return {"source": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2))}


def as_polars(folder, con):
    return {"source": frame(ROWS)}


def as_lazy(folder, con):
    return {"source": frame(ROWS).lazy().with_columns(more=pl.lit(1))}


SOURCES = [
    as_path, as_path_object, as_list, as_glob, as_folder, as_partitions_by_user, as_table,
    as_quoted_table, as_view, as_temp_table, as_relation, as_arrow, as_reader, as_polars, as_lazy,
]  # fmt: skip


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_same_histogram(engine, tmp_path, no_noise, make):
    con = duckdb.connect()
    con.register("rows", frame(ROWS).to_arrow())
    corpus = Corpus(**make(tmp_path, con), user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_columns_of_the_files_go_before_those_of_the_folders_names(engine, tmp_path, no_noise):
    """Else a folder on the way that happens to be called who=7 would make all users one."""
    folder = tmp_path / "who=7" / "what=x"
    folder.mkdir(parents=True)
    frame(ROWS).write_parquet(folder / "one.parquet")
    for source in (folder / "one.parquet", tmp_path):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_users_of_folders_stay_apart_even_where_they_look_like_one_number(
    engine, tmp_path, no_noise
):
    for user in ("01", "1", "a b"):
        (tmp_path / f"who={user}").mkdir()
        pl.DataFrame({"what": ["x"]}).write_parquet(tmp_path / f"who={user}" / "one.parquet")
    corpus = Corpus(tmp_path, user="who", text="what")
    assert histogram(engine, corpus, no_noise, 10) == {"x": 3 * 1024}


def test_one_users_folder_does_not_decide_how_other_names_are_read(engine, tmp_path, no_noise):
    def users_of(*names):
        folder = tmp_path / str(len(names))
        for name in names:
            (folder / f"what={name}").mkdir(parents=True)
            pl.DataFrame({"who": ["u" + name]}).write_parquet(folder / f"what={name}" / "1.parquet")
        return histogram(engine, Corpus(folder, user="who", item="what"), no_noise, 10)

    alone = users_of("007", "8")
    assert alone == {"007": 1024, "8": 1024}
    assert users_of("007", "8", "x") == alone | {"x": 1024}


def test_a_partition_without_a_user_is_an_error(engine, tmp_path, no_noise):
    folder = tmp_path / "who=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir()
    pl.DataFrame({"what": ["x"]}).write_parquet(folder / "one.parquet")
    with pytest.raises(CorpusError, match="a NULL user id"):
        histogram(engine, Corpus(tmp_path, user="who", text="what"), no_noise, 10)


NAMES = [
    "o'dd na\"me", "[x]", "st*r", "q?", "únï", "a{b,c}", "p%20q", "x; DROP TABLE y; --",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_files_and_folders_are_taken_as_they_are(engine, tmp_path, no_noise, name):
    (tmp_path / name).mkdir()
    path = tmp_path / name / f"{name}.parquet"
    frame(ROWS).write_parquet(path)
    (tmp_path / "x").mkdir()  # what [x] and q? would match as globs
    frame([(9, "other")]).write_parquet(tmp_path / "x" / "x.parquet")
    for source in (path, tmp_path / name):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


ODD = "we\"ird; 'drop' na.me $1 ñ\n--"


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.lazy(), lambda f: f.to_arrow(), None])
def test_odd_column_names_are_taken_as_they_are(engine, tmp_path, no_noise, make):
    odd = frame(ROWS).rename({"who": ODD, "what": ODD[::-1]})
    odd.write_parquet(tmp_path / "odd.parquet")
    source = tmp_path / "odd.parquet" if make is None else make(odd)
    corpus = Corpus(source, user=ODD, text=ODD[::-1])
    assert histogram(engine, corpus, no_noise, 10) == expected(ROWS)


def test_the_user_column_may_be_the_content_column_too(engine, no_noise):
    corpus = Corpus(pl.DataFrame({"who": ["a b", "c"]}), user="who", text="who")
    assert histogram(engine, corpus, no_noise, 10) == {"a": 724, "b": 724, "c": 1024}


# Users


USERS = {
    "integer": [1, 2, 3],
    "huge integer": [2**63 - 1, -(2**63), 0],
    "text": ["a", "A", "a "],
    "nul": ["a\0b", "a\0c", "a"],
    "date": [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "bool": [True, False, True],
}


@pytest.mark.parametrize("users", USERS.values(), ids=USERS.keys())
def test_users_of_every_type_are_told_apart(engine, tmp_path, no_noise, users):
    rows = [(user, f"w{index} shared") for index, user in enumerate(users)] + [(users[0], "more")]
    pq.write_table(
        pa.table({"who": [u for u, _ in rows], "what": [t for _, t in rows]}),
        tmp_path / "users.parquet",
    )
    for source in (tmp_path / "users.parquet", frame(rows)):
        corpus = Corpus(source, user="who", text="what")
        assert histogram(engine, corpus, no_noise, 10) == expected(rows)


def test_users_of_one_hash_are_told_apart(no_noise):
    rows = [(f"user {i % 7}", f"w{i % 5} shared") for i in range(100)]
    corpus = Corpus(frame(rows), user="who", text="what")
    with host_on("duckdb", corpus, no_noise) as host:
        host.con.execute("CREATE OR REPLACE TEMP MACRO order_of_user(user_id) AS 0")
        host.gather("users", Words())
        passed = draw_words(host, bare_level(10), "test")
    found = dict(zip(*(passed.column(c).to_pylist() for c in ("key", "noisy")), strict=True))
    assert found == expected(rows)


def test_users_may_be_uuids(engine, no_noise):
    con = duckdb.connect()
    rows = [(str(uuid.UUID(int=user)), text) for user, text in ROWS]
    con.register("rows", frame(rows).to_arrow())
    relation = con.sql("SELECT CAST(who AS UUID) AS who, what FROM rows")
    found = histogram(engine, Corpus(relation, user="who", text="what"), no_noise, 10)
    assert found == expected(rows)


def test_rows_of_nobody_are_an_error_and_not_a_user(engine, written, no_noise):
    with pytest.raises(CorpusError, match=r"^user: found rows with a NULL user id"):
        histogram(engine, written([(1, "a"), (None, "b")]), no_noise, 10)


def test_rows_without_content_are_ignored_whoever_they_are_of(engine, written, no_noise):
    rows = [(1, "a"), (2, None), (3, ""), (4, " \t\n"), (None, None), (None, " ")]
    assert histogram(engine, written(rows), no_noise, 10) == {"a": 1024}


def test_an_item_in_several_rows_of_a_user_counts_once(engine, written, no_noise):
    assert histogram(engine, written([(1, "a a"), (1, "a"), (1, "a")]), no_noise, 10) == {"a": 1024}
