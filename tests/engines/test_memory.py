"""A corpus larger than the memory that is allowed: DuckDB spills, finishes, and cleans up."""

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from dphh import Corpus, items

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


@pytest.mark.slow
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
