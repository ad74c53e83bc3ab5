"""One flow, one price: what a run spends, gives back, keeps and refuses; and the same request on
the same data gets the release that it had, and spends nothing."""

import re
import shutil
import warnings
from pathlib import Path

import polars as pl
import pytest

from dphh import BudgetRefused, Corpus, Ledger, LedgerError, Release, UsageError, items
from dphh.engines.duckdb.host import DuckDBHost
from dphh.errors import CorpusError, Notice, UnreachableError
from dphh.reader.corpus import replace_corpus
from dphh.run import Note
from dphh.testing import SeededRandomness
from tests.engines.levels import frame

ROWS = [(user, "the same words") for user in range(300)] + [(1, "secret")]


def plan(corpus, **asked):
    return items(corpus, **{"epsilon": 1.0, "delta": 1e-7} | asked)


@pytest.fixture
def corpus(written):
    return written(ROWS)


def states(ledger):
    return [run.state for run in ledger.runs()]


def test_a_release_of_files_that_changed_says_so_under_its_old_id(written, ledger):
    plan(written([(1, "a")])).run(ledger=ledger, run_id="one")
    corpus = written([(user, "b") for user in range(300)])
    with pytest.warns(UserWarning, match="run one was made before.*whatever the data are now"):
        again = plan(corpus).run(ledger=ledger, run_id="one")
    assert "b" not in again.to_polars()["item"].to_list()
    assert len(ledger.runs()) == 1


@pytest.mark.parametrize("are_known", [False, True])
def test_a_runs_id_does_not_publish_its_release_as_that_of_other_files(ledger, tmp_path, are_known):
    """As where a job names a new week's file and folder, and by a slip last week's run. The same
    rows in another place are the run's, whether their digest is known or has to be read."""
    for name, said in (("2", "a"), ("3", "b"), ("2-moved", "a")):
        frame([(n, said) for n in range(300)]).write_parquet(tmp_path / f"11-{name}.parquet")
    of = {name: plan(Corpus(tmp_path / f"11-{name}.parquet", user="who", item="what"))
          for name in ("2", "3", "2-moved")}  # fmt: skip
    made = of["2"].run(ledger=ledger, run_id="two")
    if are_known:
        of["3"].run(ledger=ledger)
    runs = ledger.runs()
    with pytest.raises(UsageError, match=r"two was made of .*11-2.parquet.*Nothing was spent"):
        of["3"].run(ledger=ledger, run_id="two", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of["2-moved"].run(ledger=ledger, run_id="two").table == made.table
    assert ledger.runs() == runs


def test_what_the_ledger_refuses_does_not_depend_on_rows(written, ledger, tmp_path):
    """The ledger is asked before rows are looked at, so a refusal tells nothing of them."""
    for rows in (ROWS, [*ROWS, (None, "b")]):
        corpus = written(rows)
        ledger.add("reviews", corpus, 0.5, 1e-7, if_missing=True)
        with pytest.raises(BudgetRefused, match="'reviews'"):
            plan(corpus).run(ledger=ledger, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_release_in_the_folder_is_seen_before_anything_is_spent(corpus, ledger, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="cannot be written"):
        plan(corpus).run(ledger=ledger, out=tmp_path / "link" / "out")
    assert not ledger.runs()
    plan(corpus).run(ledger=ledger, out=tmp_path / "out", run_id="one")
    with pytest.raises(UsageError, match="contains another release"):
        plan(corpus).run(ledger=ledger, out=tmp_path / "out", again=True)
    plan(corpus).run(ledger=ledger, out=tmp_path / "out")
    assert len(ledger.runs()) == 1
    assert Release.load(tmp_path / "out").run_id == "one"


@pytest.mark.parametrize("account", [True, False])
def test_no_release_is_written_among_the_data(written, ledger, tmp_path, account):
    """The next run would read it as rows."""
    (tmp_path / "data" / "day=1").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (path,) = written(ROWS).where
    Path(path).rename(tmp_path / "data" / "day=1" / "rows.parquet")
    corpus = Corpus(tmp_path / "data", user="who", item="what")
    if account:  # of a table, too, that was made of other data
        ledger.add("reviews", corpus, 3.0, 1e-6)
        corpus = Corpus(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", item="what",
                        account="reviews")  # fmt: skip
    for out in ("data", "data/out", "data/day=1", "link"):
        with pytest.raises(UsageError, match=r"among the data of .*data, so.* Nothing was spent"):
            plan(corpus).run(ledger=ledger, out=tmp_path / out)
    assert not ledger.runs()
    for out in ("data/_out", "data-out"):  # no run reads what is here
        plan(corpus).run(ledger=ledger, out=tmp_path / out)
    assert len(ledger.runs()) == 1


def test_a_release_that_the_ledger_cannot_keep_is_handed_over_all_the_same(
    corpus, ledger, monkeypatch
):
    def fail(*_):
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(Ledger, "settle", fail)
    with pytest.warns(UserWarning, match="Save the release now"):
        release = plan(corpus).run(ledger=ledger)
    assert len(release) == 3
    assert states(ledger) == ["running"]


def test_a_release_that_cannot_be_saved_is_kept_by_the_ledger(
    corpus, ledger, monkeypatch, tmp_path
):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dphh.release.write_whole", fail)
    with pytest.raises(UnreachableError, match="paid for, and the ledger keeps it"):
        plan(corpus).run(ledger=ledger, run_id="kept", out=tmp_path / "out")
    monkeypatch.undo()
    release = plan(corpus).run(ledger=ledger, run_id="kept", out=tmp_path / "out")
    assert Release.load(tmp_path / "out").to_arrow() == release.to_arrow()
    assert states(ledger) == ["settled"]


def test_the_manifest_says_what_was_run(corpus, ledger):
    asked = plan(corpus, method="sips", max_items=7)
    found = asked.run(ledger=ledger).manifest
    said = {"epsilon": 1.0, "delta": 1e-7, "max_items": 7, "method": "sips", "user": "who"}
    assert said.items() <= found["parameters"].items()
    assert found["parameters"]["content"]["column"] == "what"
    assert found["privacy"] == asked.privacy.to_json()
    assert [level["round"] for level in found["levels"]] == [1, 2, 3]
    assert sum(level["released"] for level in found["levels"]) == 3
    assert (found["randomness"], found["is_test"]) == ("operating system", False)
    assert found["engine"]["name"] == "duckdb"
    assert found["finds"]["probability"] == 0.9


def test_the_manifest_and_the_ledger_hold_no_item_that_was_not_released(written, ledger):
    release = plan(written([*ROWS, (1, "SENTINEL")])).run(ledger=ledger)
    assert "SENTINEL" not in release.dumps() + repr(release) + release._repr_html_()
    assert b"SENTINEL" not in release.parquet() + ledger.path.read_bytes()


@pytest.mark.parametrize(("counts", "column"), [(None, "users"), (0, "score")])
def test_rows_come_by_users_or_score_and_not_as_they_arrived(written, ledger, counts, column):
    rows = [(user, f"w{index}") for index in range(30) for user in range(100 + index)]
    asked = {"max_items": 100, "epsilon": 8, "delta": 1e-5, "counts": counts}
    release = items(written(rows), **asked).run(ledger=ledger)
    found = release.to_polars()
    assert ("users" in found.columns) == (counts is None)
    numbers = found[column].to_list()
    assert len(numbers) == 30
    assert numbers == sorted(numbers, reverse=True)


def test_a_seeded_run_says_that_it_is_not_private(corpus):
    release = plan(corpus).run(randomness=SeededRandomness(1))
    assert release.manifest["randomness"] == "a test's seed: this release is NOT private"
    assert release.manifest["is_test"] and release.is_test
    assert "NOT private" in repr(release)


def test_progress_tells_what_is_released_and_nothing_else(corpus, ledger):
    said = []
    plan(corpus, method="gaussian").run(ledger=ledger, progress=said.append)
    (note,) = (line for line in said if isinstance(line, Note))
    assert note.startswith("note: no account holds this corpus")
    numbers = [int(n) for line in said for n in re.findall(r"\d+", line)]
    assert numbers == [1, 3]  # level 1: 3 released
    plan(corpus, method="sips").run(ledger=ledger, progress=said.append)
    assert [line.partition(":")[0] for line in said if line.startswith("level")] == [
        *("level 1", "level 1", "level 1, round 2", "level 1, round 3")
    ]


def test_a_repeat_needs_no_engine(corpus, ledger, monkeypatch, tmp_path):
    """An engine may take long to start."""
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
        assert again.spent is False
    assert first.spent is True
    assert (tmp_path / "out" / "release.parquet").exists()
    with pytest.raises(UsageError, match="with another request"):
        plan(corpus, epsilon=0.5).run(**asked, run_id=first.run_id)
    with pytest.raises(AssertionError, match="was opened"):
        plan(corpus).run(**asked, again=True)
    assert len(ledger.runs()) == 1


def test_a_run_is_failed_until_it_is_begun_again(corpus, ledger, monkeypatch):
    states, closed = [], []
    close = DuckDBHost.close
    monkeypatch.setattr(DuckDBHost, "close", lambda self: (closed.append(1), close(self)))

    def stop(said):
        states.append(ledger.runs()[0].state)
        if said.startswith("level"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(corpus).run(ledger=ledger, progress=stop)
    assert (ledger.runs()[0].state, closed) == ("failed", [1])
    states.clear()
    gone_on = plan(corpus).run(
        ledger=ledger, progress=lambda _: states.append(ledger.runs()[0].state)
    )
    assert gone_on.spent is True, "each run that was paid for says so, once"
    assert states[-1] == "running"
    assert [run.state for run in ledger.runs()] == ["settled"]


def test_a_tests_release_is_no_answer(corpus, ledger):
    seeded = plan(corpus).run(ledger=ledger, randomness=SeededRandomness(1))
    private = plan(corpus).run(ledger=ledger)
    assert private.run_id != seeded.run_id
    assert private.manifest["randomness"] == "operating system"


def test_a_table_that_failed_continues_in_the_same_process(ledger):
    table = frame([*ROWS, (1, "a" * 1001)])
    for _ in range(2):
        with pytest.raises(CorpusError):
            plan(Corpus(table, user="who", text="what", too_long="error")).run(ledger=ledger)
    assert len(ledger.runs()) == 1


def test_a_release_given_by_its_id_is_not_taken_for_that_of_this_table(ledger):
    first = plan(Corpus(frame(ROWS), user="who", text="what")).run(ledger=ledger)
    others = Corpus(frame([(n, "goodbye") for n in range(300)]), user="who", text="what")
    with pytest.warns(UserWarning, match="made before, and this is its release"):
        assert plan(others).run(ledger=ledger, run_id=first.run_id).table == first.table
    own = plan(others).run(ledger=ledger)
    assert own.to_polars()["item"].to_list() == ["goodbye"]
    assert own.run_id != first.run_id


def test_a_run_that_must_have_an_account_is_refused_without_one(ledger, tmp_path):
    frame([(n, "hi") for n in range(300)]).write_parquet(tmp_path / "one.parquet")
    asked = plan(Corpus(tmp_path / "one.parquet", user="who", text="what"))
    with pytest.raises(UsageError, match=r"^account: none pays for this corpus.*Nothing was spent"):
        asked.run(ledger=ledger, require_account=True)
    assert not ledger.runs()
    ledger.add("greetings", asked.corpus, 5.0, 1e-4)
    asked.run(ledger=ledger, require_account=True)
    assert [run.accounts for run in ledger.runs()] == [("greetings",)]


def test_a_copied_folder_is_told_that_nobody_pays(corpus, ledger, tmp_path):
    ledger.add("reviews", corpus, 5.0, 1e-4)
    (tmp_path / "copy").mkdir()
    for each in (Path(corpus.where[0]), ledger.path):
        shutil.copy2(each, tmp_path / "copy")
    there = Corpus(tmp_path / "copy" / "corpus.parquet", user="who", text="what")
    copied = Ledger(tmp_path / "copy" / ledger.path.name)
    with pytest.warns(Notice, match=r"no account holds.*`--replace`, if it is that of reviews"):
        plan(there).run(ledger=copied)
    with pytest.raises(UsageError, match="Name the account that has this data, or let its owner"):
        plan(replace_corpus(there, account="reviews"), epsilon=0.5).run(ledger=copied)
    assert copied.add("reviews", there, 5.0, 1e-4, replace=True).runs == 1  # and it is paid for
