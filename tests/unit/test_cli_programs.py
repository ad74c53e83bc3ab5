"""What programs are told on standard output: how a run ended, whether it cost anything, what is
left; and files of a corpus whose options its owner has said."""

from __future__ import annotations

import json

import polars as pl
import pytest

from dphh import Corpus, Release
from dphh.sources.reading import unreadable

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


def test_a_warning_is_one_line_without_source_and_none_with_quiet(dphh, weeks):
    asked = ("items", "notes", *COST, "--run-id", "mine", "--json")
    assert dphh(*asked)[0] == 0
    pl.DataFrame({"who": [1], "what": ["late"]}).write_parquet(weeks / "week-3.parquet")
    code, _, err = dphh(*asked)
    assert code == 0 and err.count("\n") == 1
    assert err.startswith("dphh: warning: run mine was made before") and ".py" not in err
    code, _, err = dphh(*asked, "--quiet")
    assert (code, err) == (0, "")


def test_a_store_that_does_not_answer_is_to_be_tried_again(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    corpus = Corpus("s3://bucket/a.parquet", user="who", text="what")
    silent = unreadable(corpus, OSError("HIDDEN"))
    assert silent.exit_code == 1 and "try again later" in str(silent)
    assert unreadable(corpus, OSError("403 Forbidden")).exit_code == 2
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert unreadable(corpus, OSError("HIDDEN")).exit_code == 2


def test_a_run_that_fails_after_payment_says_so(dphh, weeks, tmp_path):
    path = tmp_path / "broken.parquet"
    pl.DataFrame({"who": ["a"], "what": ["x" * 50]}).write_parquet(path)
    long = ("--max-token-length", "9", "--too-long", "error")
    _, out, _ = dphh("items", path, *READ, *COST, *long, "--json")
    assert json.loads(out)["error"]["spent"] is True


def test_files_of_a_named_corpus_are_read_as_its_owner_said(dphh, weeks, ledger):
    for week in (1, 2):
        file, out = weeks / f"week-{week}.parquet", weeks / f"out-{week}"
        assert dphh("items", "notes", *COST, "--files", file, "--out", out)[0] == 0
        found = {row["item"] for row in Release.load(out)}
        assert found == {"week", f"number{week}"}
    assert len(ledger.runs("notes")) == 2


def test_which_rows_count_is_said_of_named_corpora_too(dphh, weeks, ledger, tmp_path):
    asked = ["items", "notes", *COST, "--where", "what LIKE '%number1'", "--out", tmp_path / "out"]
    assert dphh(*asked)[0] == 0
    assert {row["item"] for row in Release.load(tmp_path / "out")} == {"week", "number1"}
    assert dphh(*asked[:-2], "--until", "what=a", "--plan")[0] == 0
    code, _, err = dphh(*asked, "--where", "count(*) > 3")
    assert code == 2 and "one row" in err
    assert len(ledger.runs("notes")) == 1


def test_files_that_are_not_the_corpuss_are_refused(dphh, weeks, tmp_path):
    other = tmp_path / "other.parquet"
    pl.DataFrame({"who": [1], "what": ["a"]}).write_parquet(other)
    code, _, err = dphh("items", "notes", *COST, "--files", other)
    assert code == 2 and "leave name= out" in err
    code, _, err = dphh("items", other, *READ, *COST, "--files", other)
    assert code == 2 and "the ledger has no corpus" in err
