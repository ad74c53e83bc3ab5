"""Spend once: the same request on the same data comes to the release that it came to before."""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, Ledger, LedgerError, UsageError
from dphh.cli import cli
from dphh.errors import CorpusError, Notice
from dphh.ledger.corpora import source_of
from dphh.ledger.sources import files_state
from dphh.replay import Note, Replay, notice
from dphh.testing import SeededRandomness

ROWS = [(person, "hello there") for person in range(300)]


def plan(corpus, epsilon=1.0):
    return dphh.items(corpus, epsilon=epsilon, delta=1e-6, max_items=4)


def frame(rows=ROWS):
    return pl.DataFrame(rows, schema=["who", "what"], orient="row")


def test_the_same_request_on_the_same_files_spends_once_and_says_from_which_run(written, ledger):
    corpus = written(ROWS)
    first = plan(corpus).run(ledger=ledger)
    with pytest.warns(Notice, match=f"release of run {first.run_id}"):
        second = plan(Corpus(*corpus.where, user="who", text="what")).run(ledger=ledger)
    assert second.table == first.table
    assert len(ledger.runs()) == 1


def test_a_repeat_needs_no_engine_which_may_take_long_to_start(
    written, ledger, monkeypatch, tmp_path
):
    corpus = written(ROWS)
    first = plan(corpus).run(ledger=ledger)

    def no_engine(*_):
        raise AssertionError("an engine was opened")

    monkeypatch.setattr("dphh.run.open_session", no_engine)
    asked = {"ledger": ledger, "engine": "spark"}
    for again in (
        plan(corpus).run(**asked, out=tmp_path / "out"),
        plan(corpus).run(**asked, run_id=first.run_id),
    ):
        assert again.table == first.table
    assert (tmp_path / "out" / "release.parquet").exists()
    with pytest.raises(UsageError, match="with another request"):
        plan(corpus, epsilon=0.5).run(**asked, run_id=first.run_id)
    with pytest.raises(UsageError, match="give one of duckdb"):
        plan(corpus).run(ledger=ledger, engine="sparc")
    with pytest.raises(AssertionError, match="was opened"):
        plan(corpus).run(**asked, again=True)
    assert len(ledger.runs()) == 1


def test_a_ledger_that_was_copied_back_gives_no_release_either(written, ledger, tmp_path):
    corpus, older = written(ROWS), tmp_path / "older.sqlite"
    first = plan(corpus).run(ledger=ledger)
    shutil.copy(ledger.path, older)
    for _ in range(2):
        plan(corpus).run(ledger=ledger, again=True)
    shutil.copy(older, ledger.path)
    with pytest.raises(LedgerError, match="replaced by an older copy"):
        plan(corpus).run(ledger=ledger, run_id=first.run_id)


def test_a_column_may_be_in_a_file_that_was_not_looked_at(written, ledger, monkeypatch):
    monkeypatch.setattr("dphh.run.open_session", None)
    monkeypatch.setattr("dphh.ledger.columns_there.MOST_FILES", 1)
    one, wider = written(ROWS), frame().with_columns(also=pl.lit("here"))
    wider.write_parquet(Path(one.where[0]).with_name("zz.parquet"))
    folder = str(Path(one.where[0]).parent / "*.parquet")
    with pytest.raises(TypeError, match="not callable"):  # an engine is asked
        plan(Corpus(folder, user="who", text="also")).run(ledger=ledger, engine="spark")


def test_a_wrong_column_of_parquet_files_is_told_before_java_starts(written, ledger, monkeypatch):
    monkeypatch.setattr("dphh.run.open_session", None)
    wrong = Corpus(*written(ROWS).where, user="who", text="waht")
    with pytest.raises(CorpusError, match=r"no column 'waht'; did you mean 'what'.*was spent"):
        plan(wrong).run(ledger=ledger, engine="spark")


def test_what_others_asked_for_is_no_analysts_answer(written, ledger):
    corpus = written(ROWS)
    run = plan(corpus).run(ledger=ledger)
    for book, before in ((ledger, run.run_id), (Ledger(ledger.path, "alice"), None)):
        found = Replay.of(plan(corpus).price, corpus, book).before(str, str)
        assert (found and found.run_id) == before


def test_it_is_drawn_anew_where_that_is_asked_for(written, ledger):
    corpus = written(ROWS)
    first, second = (plan(corpus).run(ledger=ledger, again=True) for _ in range(2))
    assert first.run_id != second.run_id
    assert plan(corpus, epsilon=0.5).run(ledger=ledger).run_id not in {
        run.run_id for run in ledger.runs()[:2]
    }
    assert len(ledger.runs()) == 3


@pytest.mark.parametrize("change", ["written again", "one more", "moved there"])
def test_a_file_that_changed_is_other_data(tmp_path, ledger, change):
    folder = tmp_path / "corpus"
    folder.mkdir()
    frame().write_parquet(folder / "a.parquet")
    frame(ROWS[:5]).write_parquet(tmp_path / "old.parquet")
    corpus = Corpus(str(folder / "*.parquet"), user="who", text="what")
    first = plan(corpus).run(ledger=ledger)
    if change == "written again":
        frame().write_parquet(folder / "a.parquet")
    elif change == "one more":
        frame(ROWS[:5]).write_parquet(folder / "b.parquet")
    else:  # with times of long ago, as a copy that keeps them has
        os.utime(tmp_path / "old.parquet", (1, 1))
        (tmp_path / "old.parquet").rename(folder / "b.parquet")
    assert plan(corpus).run(ledger=ledger).run_id != first.run_id


def test_a_run_that_was_cut_short_is_gone_on_with(written, ledger):
    corpus = written([*ROWS, (1, "a" * 1001)], too_long="error")
    for _ in range(2):
        with pytest.raises(CorpusError):
            plan(corpus).run(ledger=ledger)
    assert len(ledger.runs()) == 1


def test_that_it_failed_is_shown_until_it_is_begun_again(written, ledger):
    states = []

    def stop(said):
        states.append(ledger.runs()[0].state)
        if said.startswith("level"):
            raise KeyboardInterrupt

    corpus = written(ROWS)
    with pytest.raises(KeyboardInterrupt):
        plan(corpus).run(ledger=ledger, progress=stop)
    assert ledger.runs()[0].state == "failed"
    states.clear()
    plan(corpus).run(ledger=ledger, progress=lambda _: states.append(ledger.runs()[0].state))
    assert states[-1] == "running"
    assert [run.state for run in ledger.runs()] == ["settled"]


def test_of_two_that_ask_at_once_one_pays(written, ledger):
    """Both have looked and found nothing before either reserves."""
    corpus = written(ROWS)
    asking = Replay.of(plan(corpus).price, corpus, ledger)
    reserved = [
        ledger.reserve(name, asking.request, files=asking.files, once=True)
        for name in ("one", "two")
    ]
    assert [each.run_id for each in reserved] == ["one", "one"]
    assert len(ledger.runs()) == 1


def test_what_is_kept_of_files_is_sixteen_bits_and_no_export_has_it(written, ledger, tmp_path):
    corpus = written(ROWS)
    plan(corpus).run(ledger=ledger)
    with sqlite3.connect(ledger.path) as con:
        ((kept,),) = con.execute("SELECT files FROM asked").fetchall()
    assert kept == files_state(source_of(corpus), str(ledger.path))[:4]
    assert len(bytes.fromhex(kept)) * 8 == 16
    ledger.export(tmp_path / "runs.parquet")
    exported = pl.read_parquet(tmp_path / "runs.parquet")
    assert "files" not in exported.columns
    assert kept not in exported.drop("run_id", "source").write_csv()


def test_of_many_states_of_the_files_the_last_alone_is_compared(written, ledger):
    """Of sixteen bits, many states would soon meet by chance."""
    corpus = written(ROWS)
    os.utime(*corpus.where, (1, 1))
    first = plan(corpus).run(ledger=ledger)
    os.utime(*corpus.where, (2, 2))
    assert plan(corpus).run(ledger=ledger).run_id != first.run_id
    os.utime(*corpus.where, (1, 1))
    assert plan(corpus).run(ledger=ledger).run_id != first.run_id


def test_files_are_the_same_by_their_path_and_by_their_name(written, ledger):
    corpus = written(ROWS)
    ledger.add("greetings", corpus, 5.0, 1e-4)
    named = plan(corpus.named("greetings")).run(ledger=ledger)
    assert plan(corpus).run(ledger=ledger).run_id == named.run_id
    other = plan(corpus, epsilon=0.5).run(ledger=ledger)
    assert plan(corpus.named("greetings"), epsilon=0.5).run(ledger=ledger).run_id == other.run_id
    assert len(ledger.runs()) == 2


def test_an_id_and_again_contradict_each_other(written, ledger):
    with pytest.raises(UsageError, match="again: makes a run with a new id"):
        plan(written(ROWS)).run(ledger=ledger, again=True, run_id="mine")


def test_a_tests_release_is_nobody_elses_answer(written, ledger):
    corpus = written(ROWS)
    seeded = plan(corpus).run(ledger=ledger, randomness=SeededRandomness(1))
    private = plan(corpus).run(ledger=ledger)
    assert private.run_id != seeded.run_id
    assert private.manifest["randomness"] == "operating system"


def as_pandas(rows):
    pytest.importorskip("pandas")
    return rows.to_pandas()


KINDS = [lambda f: f, lambda f: f.lazy(), pa.table, as_pandas]


@pytest.mark.parametrize("kind", KINDS)
def test_another_frames_release_is_never_handed_out(ledger, kind):
    def asked(rows):
        return Corpus(kind(frame(rows)), user="who", text="what")

    first = plan(asked(ROWS)).run(ledger=ledger)
    with pytest.warns(Notice, match="this run spends anew"):
        second = plan(asked([(n, "goodbye") for n in range(300)])).run(ledger=ledger)
    assert second.to_polars()["item"].to_list() == ["goodbye"]
    assert "goodbye" not in first.to_polars()["item"].to_list()
    assert len(ledger.runs()) == 2


@pytest.mark.parametrize("kind", [KINDS[0], *KINDS[2:]])
def test_within_a_process_the_same_rows_are_paid_for_once(ledger, kind):
    first, second = (
        plan(Corpus(kind(frame()), user="who", text="what")).run(ledger=ledger) for _ in range(2)
    )
    assert first.run_id == second.run_id
    other_ledger = Ledger(ledger.path.with_name("other.sqlite"))
    assert plan(Corpus(kind(frame()), user="who", text="what")).run(ledger=other_ledger) != first
    assert (len(ledger.runs()), len(other_ledger.runs())) == (1, 1)


def test_a_release_given_by_its_id_is_not_taken_for_one_of_these_rows(ledger):
    first = plan(Corpus(frame(), user="who", text="what")).run(ledger=ledger)
    others = Corpus(frame([(n, "goodbye") for n in range(300)]), user="who", text="what")
    with pytest.warns(UserWarning, match="was made before, and this is its release"):
        assert plan(others).run(ledger=ledger, run_id=first.run_id).table == first.table
    own = plan(others).run(ledger=ledger)
    assert own.to_polars()["item"].to_list() == ["goodbye"]
    assert own.run_id != first.run_id


def test_in_sql_a_release_given_by_its_id_is_not_taken_for_one_of_these_rows(ledger):
    con = dphh.connect(ledger=ledger.path)

    def items(more=""):
        return [found[1] for found in con.execute(f"{asked}, delta := 1e-6{more})").fetchall()]

    rows = "CREATE OR REPLACE TABLE said AS SELECT range AS who, '{}' AS what FROM range(300)"
    asked = "FROM dphh_items('said', user_column := 'who', text_column := 'what', epsilon := 1.0"
    con.execute(rows.format("hello"))
    items()
    (run,) = ledger.runs()
    con.execute(rows.format("goodbye"))
    assert items(f", run_id := '{run.run_id}'") == ["hello"]
    assert items() == ["goodbye"]


def over_files(kind, path, word):
    """A frame, a relation or a view over a file, made anew."""
    if kind == "polars":
        lazy = pl.scan_parquet(path).filter(pl.col("what") != word)
        lazy.collect_schema()  # Polars then writes its plan down otherwise
        return Corpus(lazy, user="who", text="what")
    con = duckdb.connect()
    query = f"FROM read_parquet('{path}') WHERE what <> '{word}'"
    if kind == "relation":
        return Corpus(con.sql(query).filter("who >= 0"), user="who", text="what")
    con.execute(f"CREATE VIEW greetings AS {query}")
    return Corpus("greetings", user="who", text="what", connection=con)


def test_a_run_that_is_refused_says_nothing_of_being_asked_again(ledger):
    refused = plan(Corpus(frame().lazy(), user="who", text="missing"), epsilon=0.1)
    told = []
    with pytest.raises(CorpusError, match="missing"):
        refused.run(ledger=ledger, progress=told.append)
    assert not [line for line in told if "would spend again" in line]
    assert ledger.runs() == []


def test_what_cannot_be_compared_says_that_it_would_pay_again(ledger):
    def asked(source):
        return plan(Corpus(source, user="who", text="what"), epsilon=0.1)

    with pytest.warns(Notice, match="nobody can tell .* the same request would spend again"):
        asked(frame().lazy()).run(ledger=ledger)
    with pytest.warns(Notice, match="no later session can tell .* would spend again"):
        asked(frame()).run(ledger=ledger)


def test_a_frame_with_a_name_is_asked_about_before_it_pays_twice(ledger):
    corpus = Corpus(frame().lazy(), user="who", text="what", name="greetings")
    ledger.add("greetings", source_of(corpus), 5.0, 1e-4)
    first = plan(corpus).run(ledger=ledger)
    with pytest.raises(UsageError, match=f"Pass run_id='{first.run_id}' for that release"):
        plan(corpus).run(ledger=ledger)
    assert plan(corpus).run(ledger=ledger, run_id=first.run_id).table == first.table
    assert plan(corpus).run(ledger=ledger, again=True).run_id != first.run_id
    assert len(ledger.runs()) == 2


def test_a_later_connection_spends_nothing(written, ledger):
    (path,) = written(ROWS).where
    query = (
        f"FROM dphh_items('{path}', user_column := 'who', text_column := 'what', "
        "epsilon := 1.0, delta := 1e-6)"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        found = [dphh.connect(ledger).execute(query).fetchall() for _ in range(2)]
    assert found[0] == found[1]
    assert len(ledger.runs()) == 1


def test_an_uncapped_run_says_so_though_nobody_watches(written, ledger):
    with pytest.warns(Notice, match="nobody has capped this corpus"):
        plan(written(ROWS)).run(ledger=ledger)


def test_of_progress_notes_alone_are_said_where_nobody_watches():
    with pytest.warns(Notice, match=r"^nobody has capped it$"):
        notice(Note("nobody has capped it"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notice("note: only a line of progress")
    assert Note("nobody has capped it") == "note: nobody has capped it"  # as it is printed


def test_on_the_command_line(written, own_ledger):
    asked = ["items", *written(ROWS).where, "--user", "who", "--text", "what",
             "--epsilon", "1", "--delta", "1e-6"]  # fmt: skip
    first, second, third = (
        CliRunner().invoke(cli, [*asked, *more]) for more in ([], [], ["--again"])
    )
    assert "nothing is spent" in second.output
    assert "nothing is spent" not in first.output + third.output
    assert len(dphh.Ledger(own_ledger).runs()) == 2
