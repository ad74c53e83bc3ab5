"""Spend once: the same request on the same data comes to the release that it came to before."""

from __future__ import annotations

import os
import warnings

import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import dphh
from dphh import Corpus, UsageError
from dphh.cli import cli
from dphh.errors import CorpusError, Notice
from dphh.ledger.corpora import source_of
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
    corpus = written([*ROWS, (None, "nobody's")])
    for _ in range(2):
        with pytest.raises(CorpusError):
            plan(corpus).run(ledger=ledger)
    assert len(ledger.runs()) == 1


def test_a_tests_release_is_nobody_elses_answer(written, ledger):
    corpus = written(ROWS)
    seeded = plan(corpus).run(ledger=ledger, randomness=SeededRandomness(1))
    private = plan(corpus).run(ledger=ledger)
    assert private.run_id != seeded.run_id
    assert private.manifest["randomness"] == "operating system"


@pytest.mark.parametrize("kind", [lambda f: f, lambda f: f.lazy(), pa.table])
def test_another_frames_release_is_never_handed_out(ledger, kind):
    def asked(rows):
        return Corpus(kind(frame(rows)), user="who", text="what")

    first = plan(asked(ROWS)).run(ledger=ledger)
    with pytest.warns(Notice, match="cannot be compared in public; this run spends anew"):
        second = plan(asked([(n, "goodbye") for n in range(300)])).run(ledger=ledger)
    assert second.to_polars()["item"].to_list() == ["goodbye"]
    assert "goodbye" not in first.to_polars()["item"].to_list()
    assert len(ledger.runs()) == 2


def test_a_frame_with_a_name_and_a_cap_is_asked_about_before_it_pays_twice(ledger):
    corpus = Corpus(frame(), user="who", text="what", name="greetings")
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


def test_on_the_command_line(written, own_ledger):
    asked = ["items", *written(ROWS).where, "--user", "who", "--text", "what",
             "--epsilon", "1", "--delta", "1e-6"]  # fmt: skip
    first, second, third = (
        CliRunner().invoke(cli, [*asked, *more]) for more in ([], [], ["--again"])
    )
    assert "nothing was spent" in second.output
    assert "nothing was spent" not in first.output + third.output
    assert len(dphh.Ledger(own_ledger).runs()) == 2


def test_an_account_that_never_paid_can_be_put_right(written, ledger):
    corpus = written(ROWS)
    wrong = source_of(Corpus(*corpus.where, user="what", text="what"))
    ledger.add("survey", wrong, 1.0, 1e-6)
    assert ledger.rename("survey", "study").name == "study"
    with pytest.raises(UsageError, match="no account 'survey'"):
        ledger.remove("survey")
    ledger.remove("study")
    ledger.add("survey", source_of(corpus), 5.0, 1e-4)
    plan(corpus).run(ledger=ledger)
    for spend_again in (lambda: ledger.remove("survey"), lambda: ledger.rename("survey", "x")):
        with pytest.raises(UsageError, match="was charged 1 times"):
            spend_again()
    assert ledger.status("survey").runs == 1


def test_a_wrong_column_is_told_when_it_is_named(written, own_ledger):
    (path,) = written(ROWS).where

    def add(column, *more):
        asked = ["ledger", "add", "survey", path, "--user", "who", "--text", column]
        return CliRunner().invoke(cli, [*asked, "--epsilon", "1", "--delta", "1e-6", *more])

    assert add("waht").exit_code != 0
    assert dphh.Ledger(own_ledger).accounts() == []
    assert add("waht", "--unseen").exit_code == 0
    renamed = CliRunner().invoke(cli, ["ledger", "rename", "survey", "old"])
    assert "old" in renamed.output
    assert CliRunner().invoke(cli, ["ledger", "remove", "old"]).exit_code == 0
    assert add("what").exit_code == 0


def test_a_frames_account_is_named_by_what_it_is(ledger):
    plan(Corpus(frame(), user="who", text="what")).run(ledger=ledger)
    other = frame().rename({"what": "said"})
    plan(Corpus(other, user="who", text="said")).run(ledger=ledger)
    labels = [account.label for account in ledger.accounts()]
    assert labels == ["polars:DataFrame(who, what)", "polars:DataFrame(who, said)"]
