"""What a run would fail of is seen before it pays: rows with a NULL user id, damaged files, texts
too long. Of queries only those are looked at that return the rows of Parquet files unchanged."""

from __future__ import annotations

import gzip
import re
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, DphhError, check, items
from dphh.sources.long_texts import longest_texts

GOOD = "who,what\n" + "".join(f"{user},the same words\n" for user in range(200))
OBJECTS = '{"who": "1", "what": "a b"}\n'


def refused(path, ledger, engine, **limits):
    corpus = Corpus(path, user="who", text="what")
    with pytest.raises(CorpusError) as caught:
        items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, engine=engine, **limits)
    assert ledger.runs() == []
    assert "Nothing was spent" in str(caught.value) and "SENTINEL" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", GOOD + ",SENTINEL\n", "a NULL user id"),
        ("x.jsonl", OBJECTS + '{"who": null, "what": "SENTINEL"}\n', "a NULL user id"),
        ("x.csv", GOOD + "1,SENTINEL,c\n", "line 202 has 3 fields where the first line has 2"),
        ("x.csv", GOOD + "SENTINEL\n", "line 202 has 1 fields where the first line has 2"),
        ("x.csv", GOOD + '1,"SENTINEL\n', "line 202 opens a quote that is never closed"),
        ("x.csv", GOOD.encode() + b"1,caf\xe9 SENTINEL\n", "line 202 is not UTF-8 .*WINDOWS-1252"),
        ("x.jsonl", OBJECTS + '["SENTINEL"]\n', "line 2 is no JSON object"),
        ("x.jsonl", OBJECTS + '{"who": "SENTINEL\n', "line 2 is no JSON object"),
        ("x.jsonl", OBJECTS.encode() + b'{"who": "SENTINEL\xe9"}\n', "line 2 is not UTF-8"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_files_of_text_are_seen_to_be_readable_before_it_is_paid(
    name, content, said, zipped, tmp_path, ledger, engine
):
    content = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(content) if zipped else content)
    told = refused(path, ledger, engine)
    assert re.search(said, told)


def test_rows_of_nobody_that_say_nothing_harm_no_file_of_text(tmp_path, ledger, engine):
    (tmp_path / "x.csv").write_text(GOOD + ",\n,  \n")
    corpus = Corpus(tmp_path / "x.csv", user="who", text="what")
    assert len(items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, engine=engine)) == 3


LITTLE = {"memory_limit": "600MB", "threads": 1}


def bomb(path, column="what", rows=300_000, size=1_000_000):
    """One text, so many times: some hundred KB on disk."""
    one = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array([("SENTINEL ipsum " * size)[:size]])
    )
    other = pa.array([f"{row}" for row in range(rows)])
    both = {"who": other, "what": other} | {column: one}
    pq.write_table(
        pa.table(both), path, dictionary_pagesize_limit=1 << 30, store_schema=False,
        compression="zstd",
    )  # fmt: skip
    assert path.stat().st_size < 5_000_000
    return path


@pytest.mark.parametrize("column", ["what", "who"])
def test_one_long_text_a_million_times_is_refused_before_it_is_paid(
    column, tmp_path, ledger, engine
):
    if engine == "spark":
        pytest.skip("the memory of Spark's machines is not ours to know")
    limits = {"memory_limit": "600MB"} if engine == "duckdb" else {}
    told = refused(bomb(tmp_path / "x.parquet", column), ledger, engine, **limits)
    assert "too long for the memory" in told


def test_what_a_refusal_advises_says_nothing_of_how_long_the_texts_are(tmp_path, ledger, engine):
    if engine != "duckdb":
        pytest.skip("Polars keeps to no limit; the machine's own takes a larger file")
    said = {
        refused(bomb(tmp_path / f"{size}.parquet", rows=5_000, size=size), ledger, engine, **LITTLE)
        for size in (60_000, 61_000, 64_000)
    }
    assert len(said) == 1


def test_long_rows_of_a_zipped_csv_are_refused_before_it_is_paid(tmp_path, ledger):
    row = "SENTINEL ipsum " * 60_000
    with gzip.open(tmp_path / "x.csv.gz", "wt", compresslevel=1) as file:
        file.write("who,what\n")
        file.writelines(f"{user},{row}\n" for user in range(100))
    told = refused(tmp_path / "x.csv.gz", ledger, "duckdb", memory_limit="200MB")
    assert "too long for the memory" in told


def test_some_long_texts_among_short_ones_run(tmp_path, ledger, engine):
    texts = ["the same words"] * 300 + ["long " * 40_000] * 3
    rows = {"who": [str(user) for user in range(303)], "what": texts}
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    corpus = Corpus(tmp_path / "x.parquet", user="who", text="what")
    limits = {"memory_limit": "600MB"} if engine == "duckdb" else {}
    run = items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, engine=engine, **limits)
    assert len(run) == 3


@pytest.mark.parametrize("is_dictionary", [False, True])
@pytest.mark.parametrize("most", [1, 7, 100, 10_000])
def test_the_longest_texts_are_those_that_sorting_all_of_them_gives(is_dictionary, most, tmp_path):
    texts = [None if row % 11 == 0 else "ü" * (row * 37 % 501) for row in range(5_000)]
    pq.write_table(
        pa.table({"what": texts}), tmp_path / "x.parquet", row_group_size=1_300,
        use_dictionary=is_dictionary,
    )  # fmt: skip
    lengths = sorted((len((text or "").encode()) for text in texts), reverse=True)
    found = longest_texts([str(tmp_path / "x.parquet")], "what", most, fits=10)
    assert [*found] == lengths[:most]


def test_files_whose_footers_and_dictionaries_say_that_they_fit_are_not_gone_through(tmp_path):
    pq.write_table(pa.table({"what": ["a b c"] * 5_000}), tmp_path / "x.parquet")
    assert len(longest_texts([str(tmp_path / "x.parquet")], "what", 2_048, fits=100_000)) == 0


def with_rows_of_nobody(folder):
    same = ["the same words"] * 300
    pq.write_table(
        pa.table({"who": list(map(str, range(300))), "what": same}), folder / "a.parquet"
    )
    pq.write_table(pa.table({"who": ["1", None], "what": ["x", "SENTINEL"]}), folder / "b.parquet")


def table_of(query, folder) -> Any:
    """A lazy frame of a function, or a relation of SQL."""
    return query(folder) if callable(query) else duckdb.connect().sql(query.format(at=folder))


CHANGED = {
    "a view with a filter": "CREATE VIEW v AS FROM '{at}/*.parquet' WHERE what <> 'z'; FROM v",
    "a view with columns": "CREATE VIEW v AS SELECT who, what FROM '{at}/*.parquet'; FROM v",
    "a question": "FROM '{at}/*.parquet' WHERE if(what = 'SENTINEL', error('it is'), true)",
    "two scans": "FROM '{at}/a.parquet' UNION ALL FROM '{at}/b.parquet'",
    "a lazy frame with a filter": lambda at: pl.scan_parquet(at).filter(pl.col("what") != "z"),
    "a lazy frame with columns": lambda at: pl.scan_parquet(at).select("who", "what"),
}


def says_of_users(corpus, ledger):
    (found,) = (each for each in check(corpus, ledger=ledger).findings if each.what == "users")
    return found.verdict


@pytest.mark.parametrize("query", CHANGED.values(), ids=CHANGED.keys())
def test_a_query_that_does_anything_more_is_not_run_before_it_is_paid(query, tmp_path, ledger):
    with_rows_of_nobody(tmp_path)
    corpus = Corpus(table_of(query, tmp_path), user="who", text="what")
    assert says_of_users(corpus, ledger) == "unknown"
    with pytest.raises(DphhError) as caught:
        items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger)
    assert "Nothing was spent" not in str(caught.value) and "SENTINEL" not in str(caught.value)
    assert [run.state for run in ledger.runs()] == ["failed"]
