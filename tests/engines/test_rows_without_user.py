"""Rows without a user: what is looked at before a run pays, what a run refuses, what is dropped."""

from __future__ import annotations

from functools import partial
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import BudgetRefused, Corpus, CorpusError, DphhError, check, items, ldp_trie, ngrams, trie
from dphh.corpus import narrowed
from tests.engines.levels import histogram
from tests.engines.test_content import expected

ROWS = [("ann", 1, "a b"), ("bob", 1, "b"), (None, None, "SENTINEL"), (None, None, None)]
#: A NULL in one of two columns: a row of somebody.
HALF = [("ann", 1, "a b"), ("bob", None, "b")]
NEVER = "a NULL user id"
ASK: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def table(rows) -> pa.Table:
    names = ("who", "month", "what")
    kinds = (pa.string(), pa.int64(), pa.string())
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(c, k) for n, k, c in zip(names, kinds, columns, strict=True)})


def in_files(folder, rows) -> Any:
    pq.write_table(table(rows), folder / "c.parquet")
    return folder / "c.parquet"


def in_csv(folder, rows) -> Any:
    pl.DataFrame(table(rows)).write_csv(folder / "c.csv")
    return folder / "c.csv"


WAYS: dict[str, Any] = {
    "files": in_files,
    "csv": in_csv,
    "a table": lambda folder, rows: table(rows),
    "a frame": lambda folder, rows: pl.DataFrame(table(rows)),
    "a lazy frame": lambda folder, rows: pl.scan_parquet(in_files(folder, rows)),
    "a relation": lambda folder, rows: duckdb.connect().read_parquet(str(in_files(folder, rows))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("user", ["who", ["who", "month"]])
def test_rows_without_any_user_are_refused_before_anything_is_paid(
    way, user, engine, tmp_path, ledger
):
    corpus = Corpus(WAYS[way](tmp_path, ROWS), user=user, text="what")
    with pytest.raises(CorpusError, match=f"{NEVER}.*null_users='drop'.*Nothing was spent") as said:
        items(corpus, **ASK).run(engine=engine, ledger=ledger)
    assert "SENTINEL" not in str(said.value)
    assert ledger.runs() == []
    assert not check(corpus, ledger=ledger, engine=engine).ok


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("user", "rows"), [("who", ROWS), (["who", "month"], ROWS + HALF)])
def test_dropped_they_change_nothing(way, user, rows, engine, tmp_path, no_noise):
    corpus = Corpus(WAYS[way](tmp_path, rows), user=user, text="what", null_users="drop")
    names = (lambda r: r[0]) if user == "who" else (lambda r: (r[0], r[1]))
    there = [(names(r), r[2]) for r in rows if r[0] and (user == "who" or r[1])]
    assert histogram(engine, corpus, no_noise, 4) == expected(there)
    assert corpus.content.to_json()["null_users"] == "drop"


VERBS: dict[str, Any] = {
    "items": partial(items, **ASK),
    "ngrams": partial(ngrams, max_n=2, **ASK),
    "trie": partial(trie, max_length=2, **ASK),
    "ldp_trie": partial(
        ldp_trie, local_epsilon=4, delta=1e-6, users_per_level=1, max_length=1, pad=True,
        character_set=["a", "b"], keep=1, contributions=1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_null_in_one_of_several_columns_is_refused_by_the_run(verb, engine, tmp_path, ledger):
    content = {"item": "what"} if "trie" in verb else {"text": "what"}
    corpus = Corpus(in_files(tmp_path, HALF), user=["who", "month"], **content)
    with pytest.raises(DphhError, match=NEVER):
        VERBS[verb](corpus).run(engine=engine, ledger=ledger)
    assert [run.state for run in ledger.runs()] == ["failed"]


def test_what_a_refusal_says_does_not_depend_on_where(engine, tmp_path, ledger):
    """A request beyond the cap met a row without a user, or did not, by its `where`: so many free
    requests read a secret of one person."""
    rows = [*ROWS[:2], (None, None, "1234")]
    corpus = Corpus(in_files(tmp_path, rows), user="who", text="what")
    ledger.add("c", corpus, 0.5, 1e-7)
    said = set()
    for where in ("what = '1234'", "what = '1235'", "what = 'a b'"):
        if engine == "spark":
            pytest.skip("where= is not Spark's")
        with pytest.raises((CorpusError, BudgetRefused)) as caught:
            items(narrowed(corpus, where=where), **ASK).run(engine=engine, ledger=ledger)
        said.add(str(caught.value))
    assert len(said) == 1
    assert ledger.runs() == []


def test_a_damaged_line_is_named_and_not_quoted(engine, tmp_path, ledger):
    (tmp_path / "c.csv").write_text("who,what\nann,a\nbob,SENTINEL,c\n")
    corpus = Corpus(tmp_path / "c.csv", user="who", text="what")
    with pytest.raises(CorpusError, match="line 3 cannot be read") as caught:
        items(corpus, **ASK).run(engine=engine, ledger=ledger)
    assert "SENTINEL" not in str(caught.value)
    assert ledger.runs() == []
