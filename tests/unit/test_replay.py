"""The same request on the same data gets the release that it had, and spends nothing."""

from __future__ import annotations

import sqlite3

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import dphh
from dphh import Corpus, Ledger, UsageError
from dphh.engines.duckdb.host import DuckDBHost
from dphh.errors import CorpusError, Notice
from dphh.ledger import Request
from dphh.ledger.places import files_state
from dphh.replay import Asked
from dphh.testing import SeededRandomness

ROWS = [(person, "hello there") for person in range(300)]


def plan(corpus, epsilon=1.0):
    return dphh.items(corpus, epsilon=epsilon, delta=1e-6, max_items=4)


def frame(rows=ROWS):
    return pl.DataFrame(rows, schema=["who", "what"], orient="row")


def test_a_repeat_needs_no_engine(written, ledger, monkeypatch, tmp_path):
    """An engine may take long to start."""
    corpus = written(ROWS)
    first = plan(corpus).run(ledger=ledger)

    def no_engine(*_):
        raise AssertionError("an engine was opened")

    monkeypatch.setattr("dphh.run.open_host", no_engine)
    asked = {"ledger": ledger, "engine": "spark"}
    for again in (
        plan(corpus).run(**asked, out=tmp_path / "out"),
        plan(corpus).run(**asked, run_id=first.run_id),
    ):
        assert again.table == first.table
    assert (tmp_path / "out" / "release.parquet").exists()
    with pytest.raises(UsageError, match="with another request"):
        plan(corpus, epsilon=0.5).run(**asked, run_id=first.run_id)
    with pytest.raises(AssertionError, match="was opened"):
        plan(corpus).run(**asked, again=True)
    assert len(ledger.runs()) == 1


def test_a_run_is_failed_until_it_is_begun_again(written, ledger, monkeypatch):
    states, closed = [], []
    close = DuckDBHost.close
    monkeypatch.setattr(DuckDBHost, "close", lambda self: (closed.append(1), close(self)))

    def stop(said):
        states.append(ledger.runs()[0].state)
        if said.startswith("level"):
            raise KeyboardInterrupt

    corpus = written(ROWS)
    with pytest.raises(KeyboardInterrupt):
        plan(corpus).run(ledger=ledger, progress=stop)
    assert (ledger.runs()[0].state, closed) == ("failed", [1])
    states.clear()
    plan(corpus).run(ledger=ledger, progress=lambda _: states.append(ledger.runs()[0].state))
    assert states[-1] == "running"
    assert [run.state for run in ledger.runs()] == ["settled"]


def test_the_ledger_keeps_sixteen_bits_of_files_and_exports_none(written, ledger, tmp_path):
    corpus = written(ROWS)
    plan(corpus).run(ledger=ledger)
    with sqlite3.connect(ledger.path) as con:
        ((kept,),) = con.execute("SELECT files FROM runs").fetchall()
    assert kept == files_state(corpus)[:4]
    assert len(bytes.fromhex(kept)) * 8 == 16
    ledger.export(tmp_path / "runs.parquet")
    exported = pl.read_parquet(tmp_path / "runs.parquet")
    assert "files" not in exported.columns
    assert kept not in exported.drop("run_id", "source").write_csv()


def test_a_tests_release_is_no_answer(written, ledger):
    corpus = written(ROWS)
    seeded = plan(corpus).run(ledger=ledger, randomness=SeededRandomness(1))
    private = plan(corpus).run(ledger=ledger)
    assert private.run_id != seeded.run_id
    assert private.manifest["randomness"] == "operating system"


def as_pandas(rows):
    pytest.importorskip("pandas")
    return rows.to_pandas()


KINDS = {
    "polars": lambda f: f,
    "lazy": lambda f: f.lazy(),
    "arrow": pa.table,
    "pandas": as_pandas,
    "relation": lambda f: duckdb.connect().from_arrow(f.to_arrow()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_table_gets_its_release_and_another_one_its_own(ledger, kind):
    def asked(table):
        return plan(Corpus(table, user="who", text="what"))

    table, other = (KINDS[kind](frame([(n, word) for n in range(300)])) for word in ("hi", "bye"))
    first = asked(table).run(ledger=ledger)
    assert asked(table).run(ledger=ledger).run_id == first.run_id
    other_ledger = Ledger(ledger.path.with_name("other.sqlite"))
    assert asked(table).run(ledger=other_ledger).run_id != first.run_id
    with pytest.warns(Notice, match="this run spends anew") as told:
        second = asked(other).run(ledger=ledger)
    assert {each.filename for each in told} == {__file__}  # the line that asked
    assert [each.to_polars()["item"].to_list() for each in (first, second)] == [["hi"], ["bye"]]
    assert (len(ledger.runs()), len(other_ledger.runs())) == (2, 1)


def test_a_table_at_a_reused_address_is_another_table(ledger, monkeypatch):
    """As when the first was deleted, and the second is where it was."""
    monkeypatch.setattr("dphh.replay.id", lambda _: 1, raising=False)
    found = [
        plan(Corpus(frame([(n, word) for n in range(300)]), user="who", text="what"))
        .run(ledger=ledger)
        .to_polars()["item"]
        .to_list()
        for word in ("hello", "goodbye")
    ]
    assert found == [["hello"], ["goodbye"]]


def test_a_table_that_failed_continues_in_the_same_process(ledger):
    table = frame([*ROWS, (1, "a" * 1001)])
    for _ in range(2):
        with pytest.raises(CorpusError):
            plan(Corpus(table, user="who", text="what", too_long="error")).run(ledger=ledger)
    assert len(ledger.runs()) == 1


def test_rows_without_a_user_are_refused_where_the_ledger_was_replaced_meanwhile(ledger):
    """This process remembers the run that the other ledger had, and would pay for a new one."""
    table = pl.DataFrame({"who": [*range(300), None], "what": ["hello"] * 301})
    corpus = Corpus(table, user="who", text="what", null_users="refuse")
    asked = Asked(Request.of(plan(corpus).price, corpus), ledger, "")
    asked.remember("of the other ledger")
    with pytest.raises(CorpusError, match="Nothing was spent"):
        plan(corpus).run(ledger=ledger)
    assert ledger.runs() == []


def test_a_release_given_by_its_id_is_not_taken_for_that_of_this_table(ledger):
    first = plan(Corpus(frame(), user="who", text="what")).run(ledger=ledger)
    others = Corpus(frame([(n, "goodbye") for n in range(300)]), user="who", text="what")
    with pytest.warns(UserWarning, match="made before, and this is its release.*is not seen"):
        assert plan(others).run(ledger=ledger, run_id=first.run_id).table == first.table
    own = plan(others).run(ledger=ledger)
    assert own.to_polars()["item"].to_list() == ["goodbye"]
    assert own.run_id != first.run_id


@pytest.mark.filterwarnings("ignore:run .* was made before")
def test_a_table_with_an_account_does_not_pay_twice_unasked(ledger):
    def asked():
        return plan(Corpus(frame().lazy(), user="who", text="what", account="greetings"))

    ledger.add("greetings", asked().corpus, 5.0, 1e-4)
    first = asked().run(ledger=ledger)
    with pytest.raises(UsageError, match=f"Pass run_id='{first.run_id}' for that release"):
        asked().run(ledger=ledger)
    assert asked().run(ledger=ledger, run_id=first.run_id).table == first.table
    assert asked().run(ledger=ledger, again=True).run_id != first.run_id
    assert len(ledger.runs()) == 2
