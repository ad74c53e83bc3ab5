"""One flow, one price: what a run spends, gives back, keeps, and refuses."""

from __future__ import annotations

import re

import pytest

from dphh import (
    BudgetRefused,
    Ledger,
    LedgerError,
    Release,
    UsageError,
    items,
)
from dphh.corpus import replace_corpus
from dphh.replay import Note
from dphh.testing import SeededRandomness

ASK = {"epsilon": 1.0, "delta": 1e-7}
ROWS = [(user, "the same words") for user in range(200)] + [(1, "secret")]


@pytest.fixture
def corpus(written):
    return written(ROWS)


def states(ledger):
    return [run.state for run in ledger.runs()]


def test_a_run_spends_once_and_is_kept(corpus, ledger):
    plan = items(corpus, **ASK)
    release = plan.run(ledger=ledger, run_id="first")
    assert set(release.to_polars()["item"]) == {"the", "same", "words"}
    (entry,) = ledger.runs()
    assert (entry.run_id, entry.state, entry.verb) == ("first", "settled", "items")
    assert (entry.epsilon, entry.delta, entry.events) == (1.0, 1e-7, plan.events)
    assert ledger.release("first").manifest == release.manifest


def test_a_release_of_files_that_changed_says_so_under_its_old_id(written, ledger):
    items(written([(1, "a")]), **ASK).run(ledger=ledger, run_id="one")
    corpus = written([(user, "b") for user in range(300)])
    with pytest.warns(UserWarning, match="run one was made before.*its files have changed since"):
        again = items(corpus, **ASK).run(ledger=ledger, run_id="one")
    assert "b" not in again.to_polars()["item"].to_list()
    assert len(ledger.runs()) == 1


def test_a_cap_is_kept_and_a_refusal_spends_nothing(corpus, ledger, tmp_path):
    named = replace_corpus(corpus, account="reviews")
    ledger.add("reviews", named, 1.0, 1e-7)
    items(named, **ASK).run(ledger=ledger)
    for asked in (named, corpus):  # files pay wherever they are named, whatever the caller says
        with pytest.raises(BudgetRefused, match="'reviews'"):
            items(asked, **ASK).run(ledger=ledger, again=True, out=tmp_path / "out")
    assert states(ledger) == ["settled"]
    assert not (tmp_path / "out").exists()


def test_what_the_ledger_refuses_does_not_depend_on_rows(written, ledger):
    """The ledger is asked before rows are looked at, so a refusal tells nothing of them."""
    for rows in (ROWS, [*ROWS, (None, "b")]):
        corpus = written(rows)
        ledger.add("reviews", corpus, 0.5, 1e-7, if_missing=True)
        with pytest.raises(BudgetRefused, match="'reviews'"):
            items(corpus, **ASK).run(ledger=ledger)


def test_another_release_in_the_folder_is_seen_before_anything_is_spent(corpus, ledger, tmp_path):
    items(corpus, **ASK).run(ledger=ledger, out=tmp_path / "out", run_id="one")
    with pytest.raises(UsageError, match="contains another release"):
        items(corpus, **ASK).run(ledger=ledger, out=tmp_path / "out", again=True)
    items(corpus, **ASK).run(ledger=ledger, out=tmp_path / "out")
    assert len(ledger.runs()) == 1
    assert Release.load(tmp_path / "out").run_id == "one"


def test_a_release_that_the_ledger_cannot_keep_is_handed_over_all_the_same(
    corpus, ledger, monkeypatch
):
    def fail(*_):
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(Ledger, "settle", fail)
    with pytest.warns(UserWarning, match="Save the release now"):
        release = items(corpus, **ASK).run(ledger=ledger)
    assert len(release) == 3
    assert states(ledger) == ["running"]


def test_a_release_that_cannot_be_saved_is_kept_by_the_ledger(
    corpus, ledger, monkeypatch, tmp_path
):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dphh.release.write_whole", fail)
    with pytest.raises(UsageError, match="paid for, and the ledger keeps it"):
        items(corpus, **ASK).run(ledger=ledger, run_id="kept", out=tmp_path / "out")
    monkeypatch.undo()
    release = items(corpus, **ASK).run(ledger=ledger, run_id="kept", out=tmp_path / "out")
    assert Release.load(tmp_path / "out").to_arrow() == release.to_arrow()
    assert states(ledger) == ["settled"]


def test_the_manifest_says_what_was_run(corpus, ledger):
    plan = items(corpus, method="sips", max_items=7, **ASK)
    found = plan.run(ledger=ledger).manifest
    assert (found["verb"], found["method"]) == ("items", "sips")
    assert (
        found["parameters"] | {"epsilon": 1.0, "delta": 1e-7, "max_items": 7, "user": "who"}
        == (found["parameters"])
    )
    assert found["parameters"]["content"]["column"] == "what"
    assert found["privacy"] == plan.privacy.to_json()
    # Three items are few: one round took the place of the second and third.
    assert [level["round"] for level in found["levels"]] == [1, 2]
    assert sum(level["released"] for level in found["levels"]) == 3
    assert (found["randomness"], found["is_test"]) == ("operating system", False)
    assert found["engine"]["name"] == "duckdb"
    assert found["finds"]["probability"] == 0.9


def test_the_manifest_and_the_ledger_hold_no_item_that_was_not_released(written, ledger):
    release = items(written([*ROWS, (1, "SENTINEL")]), **ASK).run(ledger=ledger)
    assert "SENTINEL" not in release.dumps() + repr(release) + release._repr_html_()
    assert b"SENTINEL" not in release.parquet() + ledger.path.read_bytes()


def test_rows_come_by_score_and_not_as_they_arrived(written, ledger):
    rows = [(user, f"w{index}") for index in range(30) for user in range(100 + index)]
    release = items(written(rows), max_items=100, epsilon=8, delta=1e-5).run(ledger=ledger)
    scores = release.to_polars()["score"].to_list()
    assert len(scores) == 30
    assert scores == sorted(scores, reverse=True)


def test_a_seeded_run_says_that_it_is_not_private(corpus):
    release = items(corpus, **ASK).run(randomness=SeededRandomness(1))
    assert release.manifest["randomness"] == "a test's seed: this release is NOT private"
    assert release.manifest["is_test"] and release.is_test
    assert "NOT private" in repr(release)


def test_progress_tells_what_is_released_and_nothing_else(corpus, ledger):
    said = []
    items(corpus, method="gaussian", **ASK).run(ledger=ledger, progress=said.append)
    (note,) = (line for line in said if isinstance(line, Note))
    assert note.startswith("note: no account holds this corpus")
    numbers = [int(n) for line in said for n in re.findall(r"\d+", line)]
    assert numbers == [1, 3]  # level 1: 3 released
