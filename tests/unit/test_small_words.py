"""Small answers that a newcomer met and that said something else than what was so."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, CorpusError, items
from dphh.cli import cli
from dphh.registry import VERBS
from dphh.testing import SeededRandomness


@pytest.fixture
def twice(tmp_path):
    path = tmp_path / "twice.parquet"
    columns = [["a"] * 9, ["x y"] * 9, ["z"] * 9]
    pq.write_table(pa.table(columns, names=["who", "body", "body"]), path)
    return path


def test_a_column_that_is_there_twice_is_refused_and_not_guessed(twice, engine):
    corpus = Corpus(twice, user="who", text="body")
    with pytest.raises(CorpusError, match=r"has 2 columns 'body'; rename all but one"):
        items(corpus, epsilon=1, delta=1e-6).run(engine=engine)
    assert "2 columns 'body'" in " ".join(repr(dphh.check(corpus)).split())
    # A name that only looks like a second one is another column.
    path = twice.with_name("other.parquet")
    pl.DataFrame({"who": ["a"], "body": ["x"], "body_1": ["y"]}).write_parquet(path)
    assert "2 columns" not in repr(dphh.check(Corpus(path, user="who", text="body")))


def test_a_selector_behind_a_sign_is_no_word(tmp_path, engine):
    path = tmp_path / "signs.parquet"
    texts = ["\u2764\ufe0f you \u270c\ufe0fok nai\u0308ve"] * 300
    pl.DataFrame({"who": range(300), "body": texts}).write_parquet(path)
    corpus = Corpus(path, user="who", text="body", split="unicode")
    found = items(corpus, epsilon=8, delta=1e-5).run(engine=engine, randomness=SeededRandomness(1))
    assert {row["item"] for row in found} == {"you", "ok", "nai\u0308ve"}


def test_a_number_below_0_is_a_value_and_no_option(twice):
    asked = ["items", str(twice), "--user", "who", "--text", "x", "--epsilon", "-1"]
    told = CliRunner().invoke(cli, [*asked, "--delta", "0.1"])
    assert "epsilon: found -1; give a number above 0" in str(told.exception)


def test_an_empty_folder_is_no_missing_file(tmp_path, engine):
    with pytest.raises(CorpusError, match=r"in this folder, and below it, is no file \*\.parquet"):
        items(Corpus(tmp_path, user="a", text="b"), epsilon=1, delta=1e-6).run(engine=engine)


@pytest.mark.parametrize("verb", VERBS)
def test_a_connection_names_the_options_that_its_macros_take(verb):
    con = dphh.connect()
    rows = con.execute("SELECT option, what FROM dphh_options(?)", [verb]).fetchall()
    taken = "SELECT parameters FROM duckdb_functions() WHERE function_name = 'dphh_' || ?"
    ((parameters,),) = con.execute(taken, [verb]).fetchall()
    assert ["corpus", *(option for option, _ in rows)] == parameters
    assert all(what for _, what in rows)


def test_options_of_no_verb_are_refused_with_the_verbs():
    with pytest.raises(duckdb.Error, match=r"verb: found 'ngram'.*ngrams"):
        dphh.connect().execute("FROM dphh_options('ngram')").fetchall()
