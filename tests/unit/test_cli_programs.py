"""What programs are told on standard output: how a run ended, whether it cost anything, what is
left; and files of a corpus whose options its owner has said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import polars as pl
import pytest

from dphh import Ledger, Release
from dphh.errors import EngineError

READ = ("--user", "who", "--text", "what")
COST = ("--epsilon", "1", "--delta", "1e-7")


@pytest.fixture
def weeks(tmp_path, dphh):
    for week in (1, 2):
        pl.DataFrame({"who": range(300), "what": [f"week number{week}"] * 300}).write_parquet(
            tmp_path / f"week-{week}.parquet"
        )
    cap = ("--epsilon", "2.2", "--delta", "1e-6")
    assert dphh("ledger", "add", "notes", tmp_path / "week-*.parquet", *READ, *cap)[0] == 0
    return tmp_path


def test_a_run_says_how_many_it_found_and_what_is_left(dphh, weeks):
    asked = ("items", "notes", *COST, "--json", "--quiet")
    code, out, _ = dphh(*asked)
    first = json.loads(out)
    assert (code, first["found"], first["spent"]) == (0, 3, True)
    (account,) = first["left"]
    assert account["name"] == "notes"
    again = json.loads(dphh(*asked)[1])
    assert (again["run_id"], again["spent"]) == (first["run_id"], False)
    assert again["left"] == first["left"]


@pytest.mark.parametrize(
    "asked, kind, code",
    [
        (("items", "notes", "--epsilon", "9", "--delta", "1e-7"), "BudgetRefused", 3),
        (("items", "notes", "--epsilon", "1", "--delta", "2"), "UsageError", 2),
        (("items", "notes", "--epsilon", "1"), "MissingParameter", 2),
        (("items", "nowhere.parquet", *READ, *COST), "CorpusError", 2),
    ],
)
def test_what_is_refused_is_said_as_json_too(dphh, weeks, asked, kind, code):
    ended, out, err = dphh(*asked, "--json")
    told = json.loads(out)["error"]
    assert (ended, told["exit_code"], told["kind"], told["spent"]) == (code, code, kind, False)
    assert told["message"].split(";")[0] in " ".join(err.split()) or kind == "MissingParameter"


def test_of_two_that_ask_the_same_one_is_told_that_it_spent(dphh, weeks, monkeypatch):
    book_it, asked = Ledger.book, ("items", "notes", *COST, "--json", "--quiet")
    others = []

    def after_the_same(book, request, setting, **options):
        monkeypatch.setattr(Ledger, "book", book_it)
        others.append(json.loads(dphh(*asked)[1]))
        return book_it(book, request, setting, **options)

    monkeypatch.setattr(Ledger, "book", after_the_same)
    mine = json.loads(dphh(*asked)[1])
    assert mine["run_id"] == others[0]["run_id"]
    assert (mine["spent"], others[0]["spent"]) == (False, True)


def test_a_run_that_goes_on_after_a_cut_is_told_as_spent(dphh, weeks, ledger, monkeypatch):
    asked = ("items", "notes", *COST, "--run-id", "mine", "--json", "--quiet")

    def failing(*_):
        raise EngineError("cut")

    with monkeypatch.context() as cut:
        cut.setattr("dphh.run.found_by", failing)
        for _ in range(2):
            code, out, _ = dphh(*asked)
            assert (code, json.loads(out)["error"]["spent"]) == (1, True)
    told = [json.loads(dphh(*asked)[1])["spent"] for _ in range(2)]
    assert told == [True, False]
    assert len(ledger.runs()) == 1


def test_a_ledger_that_cannot_be_read_is_not_the_requests_fault(dphh, weeks, ledger, monkeypatch):
    file = ledger.path
    asked = [
        ("items", "notes", *COST, "--json"),
        ("items", weeks / "week-1.parquet", *READ, *COST, "--json"),
        ("ledger", "show"),
        ("ledger", "cap", "notes", "--epsilon", "1", "--delta", "1e-7"),
        ("ledger", "export", weeks / "runs.csv"),
    ]
    whole = file.read_bytes()
    assert dphh("items", "notes", *COST)[0] == 0
    for found in (b"no ledger" * 99, whole[: len(whole) // 2]):
        file.write_bytes(found)
        assert [dphh(*each)[0] for each in asked] == [1] * len(asked), found
    file.write_bytes(whole)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr("dphh.ledger.schema.TIMEOUT", 0.1)
        assert [dphh(*each)[0] for each in asked] == [1] * len(asked)
    assert dphh("ledger", "show", "--ledger", weeks / "none")[0] == 2  # the name may be wrong


def test_files_of_a_named_corpus_are_read_as_its_owner_said(dphh, weeks, ledger):
    for week in (1, 2):
        file, out = weeks / f"week-{week}.parquet", weeks / f"out-{week}"
        assert dphh("items", "notes", *COST, "--files", file, "--out", out)[0] == 0
        found = {row["item"] for row in Release.load(out)}
        assert found == {"week", f"number{week}"}
    assert len(ledger.runs("notes")) == 2
