"""A corpus larger than the memory that is allowed: DuckDB spills, finishes, and cleans up."""

from __future__ import annotations

import resource
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, CorpusError, UsageError, items, ngrams
from dphh.engines.duckdb.memory import SharedMemory
from dphh.errors import EngineOutOfMemory
from tests.conftest import full

USERS, PER_USER = 280_000, 6


def write(path: Path) -> None:
    with duckdb.connect() as con:
        con.execute(
            f"""
            COPY (
                SELECT user_id, CASE WHEN i = 0 THEN 'shared'
                    ELSE 'own item ' || hash(user_id, i) || ' of this user alone' END AS item
                FROM range({USERS}) AS u(user_id), range({PER_USER}) AS t(i)
            ) TO '{path}' (FORMAT parquet)
            """
        )


def watch(folder: Path, stop: threading.Event) -> tuple[list[int], list[int]]:
    """The largest size of what lies in a folder's folders, and the folders' modes."""
    sizes, modes = [0], [0]
    while not stop.wait(0.02):
        with suppress(OSError):
            sizes.append(sum(path.stat().st_size for path in folder.glob("*/*")))
            modes += [path.stat().st_mode for path in folder.iterdir()]
    return sizes, modes


def test_a_corpus_larger_than_the_memory_limit_spills_and_cleans_up(tmp_path, monkeypatch):
    write(tmp_path / "large.parquet")
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    corpus = Corpus(tmp_path / "large.parquet", user="user_id", item="item")
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        watched = pool.submit(watch, spill, stop)
        try:
            release = items(corpus, epsilon=1, delta=1e-14, max_items=4).run(
                engine="duckdb", memory_limit="220MB", threads=2
            )
        finally:
            stop.set()
        sizes, modes = watched.result()
    found = release.to_polars()
    # Users are over the cap of 4: each kept "shared" with probability 4/6, at weight 1/2.
    assert found["item"].to_list() == ["shared"]
    assert abs(found["score"][0] - USERS * 4 / 6 / 2) < 1000
    assert max(sizes) > 1_000_000, "hardly anything was spilled: make the corpus larger"
    assert not any(mode & 0o077 for mode in modes)
    assert list(spill.iterdir()) == []


def test_a_failed_run_leaves_no_spill_behind(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    frame = pl.DataFrame({"who": [None], "what": ["a"]})
    for corpus in (Corpus(frame, user="who", text="what"), Corpus(frame, user="x", text="what")):
        with pytest.raises(CorpusError):
            items(corpus, epsilon=1, delta=1e-8).run(engine=engine)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    "limit, said",
    [
        ({"memory_limit": "1GB"}, "memory_limit: found '1GB', but Polars has no memory limit"),
        ({"threads": 2}, "threads: found 2, but Polars fixes its threads"),
    ],
)
def test_limits_that_polars_cannot_keep_are_refused(limit, said):
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    plan = items(Corpus(frame, user="who", text="what"), epsilon=1, delta=1e-8)
    with pytest.raises(UsageError, match=said):
        plan.run(engine="polars", **limit)


def write_words(path: Path, rows: int) -> None:
    """Four words a row, three rows a user."""
    word = "'w' || (hash(range, {}) % 1000)"
    text = " || ' ' || ".join(word.format(place) for place in range(4))
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT range // 3 AS who, {text} AS what FROM range({rows})) "
            f"TO '{path}' (FORMAT parquet)"
        )


@pytest.mark.slow
def test_texts_larger_than_what_the_engine_may_take_finish(tmp_path):
    rows = 4_000_000 if full() else 1_000_000
    write_words(tmp_path / "many.parquet", rows)
    corpus = Corpus(tmp_path / "many.parquet", user="who", text="what")
    plan = ngrams(corpus, max_n=2, epsilon=4, delta=1e-7, max_items=12, method="dpne")
    release = plan.run(engine="duckdb", memory_limit=f"{rows // 5_000}MB", threads=1)
    released = {level["level"]: level["released"] for level in release.manifest["levels"]}
    assert released[1] == 1000
    assert released[2] > (1000 if full() else 10)


def peak_of_long_texts(path: str, ledger: str) -> tuple[int, str]:
    """The most memory that a run takes on these texts, in MiB, and how it ends."""
    plan = items(Corpus(path, user="who", text="what"), epsilon=1, delta=1e-6)
    try:
        plan.run(ledger=ledger, memory_limit="1GB", threads=1)
        ended = "settled"
    except EngineOutOfMemory as problem:
        ended = str(problem)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, ended


def test_rows_that_name_one_long_text_are_read_within_the_limit(tmp_path):
    """Each row's text is cut to 100,000 characters; of 2,048 rows, which DuckDB hands on at once,
    the tokens of all would take 3.7 GB."""
    rows = 4_096
    text = pa.array([("SENTINEL ipsum " * 700_000)[:10_000_000]])
    what = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), text)
    table = pa.table({"who": np.arange(rows), "what": what})
    pq.write_table(
        table, tmp_path / "x.parquet", dictionary_pagesize_limit=1 << 30, store_schema=False,
        compression="zstd",
    )  # fmt: skip
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        asked = str(tmp_path / "x.parquet"), str(tmp_path / "ledger.db")
        peak, ended = other.submit(peak_of_long_texts, *asked).result()
    assert peak < 1_500
    assert ended == "settled"


def test_duckdb_has_what_the_rest_of_the_process_leaves_of_the_limit():
    """In a process of its own: one that ran tests before gives memory back at any time."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        limit, before, after, size = other.submit(shares_of_memory).result()
    assert 0.99 * 8e9 <= limit <= 8e9
    assert 4e9 < before <= 0.75 * 8e9
    assert abs(before - after - size) < 0.3e9


def shares_of_memory():
    """Of a limit of 8 GB, what DuckDB has before and while an array of this size is held."""
    con = duckdb.connect(config={"memory_limit": "8GB"})
    memory = SharedMemory(con, is_kept=True)

    def share():
        memory.settle()
        ((written,),) = con.execute("SELECT current_setting('memory_limit')").fetchall()
        return float(written.removesuffix(" GiB")) * 2**30

    before = share()
    held = np.ones(80_000_000, dtype=np.int64)
    return memory.limit, before, share(), held.nbytes


def test_a_limit_that_is_full_stays_as_it_was():
    con = duckdb.connect(config={"memory_limit": "200MB", "temp_directory": ""})
    memory = SharedMemory(con, is_kept=True)
    con.execute("CREATE TABLE numbers AS SELECT range AS number FROM range(12_000_000)")
    for _ in range(2):
        memory.settle()
    assert con.execute("SELECT max(number) FROM numbers").fetchall() == [(11_999_999,)]
