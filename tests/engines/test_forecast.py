"""The forecast ladder on every engine: what it finds, what a cut-short run draws again."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, Plan, ngrams
from dphh.levels.ngrams import ForecastLevel


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A sentence that everybody shares, words of all frequencies, and users of one word."""
    rows = [(user, f"to be or not w{user % 7} w{user % 40} w{user}") for user in range(4_000)]
    rows += [(user, "to be") for user in range(4_000, 4_200)] + [(5_000, "alone")]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    return Corpus(path, user="who", text="what")


def plan(corpus: Corpus, max_n: int = 4) -> Plan:
    return ngrams(corpus, max_n=max_n, epsilon=4, delta=1e-6, method="forecast")


def test_what_all_share_is_found_to_its_full_length(engine, corpus, tmp_path):
    release = plan(corpus).run(engine=engine, ledger=tmp_path / "ledger.db")
    found = release.to_polars()
    assert {"to be", "be or not", "to be or not"} <= set(found["item"])
    assert not set(found["item"]) & {"alone", "w41"}
    assert (found.filter(pl.col("level") > 1)["score"] > 0).all()


def test_rows_of_a_level_stand_in_an_order_that_says_nothing(engine, corpus, tmp_path):
    found = plan(corpus).run(engine=engine, ledger=tmp_path / "ledger.db").to_polars()
    assert found.height == found.unique(["level", "item"]).height


@pytest.mark.parametrize("max_n", [1, 2])
def test_short_ladders_stop_where_they_should(engine, corpus, tmp_path, max_n):
    release = plan(corpus, max_n).run(engine=engine, ledger=tmp_path / "ledger.db")
    assert release.to_polars()["level"].max() == max_n


def test_nobody_holds_anything(engine, tmp_path):
    path = tmp_path / "empty.parquet"
    pl.DataFrame({"who": [1, 2], "what": ["", " "]}).write_parquet(path)
    corpus = Corpus(path, user="who", text="what")
    release = plan(corpus).run(engine=engine, ledger=tmp_path / "ledger.db")
    assert release.to_polars().height == 0


def test_the_manifest_says_what_the_rounds_took_and_no_more_than_was_priced(
    engine, corpus, tmp_path
):
    release = plan(corpus).run(engine=engine, ledger=tmp_path / "ledger.db")
    levels = release.manifest["levels"]
    above = [level for level in levels if level["kind"] == ForecastLevel.kind]
    assert [level["level"] for level in above] == [2, 3, 4]
    spent = sum(level["sigma"] ** -2 for level in levels if level["kind"] == "set_union")
    spent += sum(level[name] ** -2 for level in above for name in ("first_sigma", "second_sigma"))
    assert spent <= above[0]["total_sigma"] ** -2 * (1 + 1e-9)


@pytest.mark.parametrize("cut", ["level 1", "level 2", "level 3"])
def test_a_run_that_was_cut_short_goes_on_with_the_levels_that_it_drew(
    engine, corpus, tmp_path, cut
):
    class CutShortError(Exception):
        pass

    def stop(said: str) -> None:
        if said.startswith(cut):
            raise CutShortError

    ledger = tmp_path / "ledger.db"
    with pytest.raises(CutShortError):
        plan(corpus).run(engine=engine, ledger=ledger, run_id="one", progress=stop)
    with closing(sqlite3.connect(ledger)) as con:
        stored = con.execute("SELECT step, data FROM pieces JOIN unfinished USING (run)").fetchall()
    found = plan(corpus).run(engine=engine, ledger=ledger, run_id="one").to_polars()
    assert len(stored) >= 1
    for step, data in stored:
        rows = pl.from_arrow(pq.read_table(io.BytesIO(data)))
        if "mass" in rows.columns:
            level = int(step.rsplit(" ", 1)[1])
            masses = rows.filter(pl.col("key") >= 0)["mass"].sort()
            assert found.filter(pl.col("level") == level)["score"].sort().equals(masses)
        else:
            words = found.filter(pl.col("level") == 1)["item"]
            assert set(rows["key"]) <= set(words)
