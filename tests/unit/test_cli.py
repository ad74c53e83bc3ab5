"""The command line: exit codes, what goes to which stream, and what programs are told as JSON."""

import json
import os
import re
import subprocess
import sys

import click
import polars as pl
import pytest
from click.testing import CliRunner

from dphh import Ledger, Release, __version__
from dphh.cli import cli
from dphh.errors import EngineError
from dphh.registry import VERBS

COST = ["--epsilon", "1", "--delta", "1e-7"]
READ = ["--user", "who", "--text", "what"]


@pytest.fixture
def path(written):
    return written([(who, "the same words") for who in range(300)]).where[0]


@pytest.fixture
def weeks(tmp_path, dphh):
    for week in (1, 2):
        pl.DataFrame({"who": range(300), "what": [f"week number{week}"] * 300}).write_parquet(
            tmp_path / f"week-{week}.parquet"
        )
    cap = ("--epsilon", "2.2", "--delta", "1e-6")
    assert dphh("ledger", "add", "notes", tmp_path / "week-*.parquet", *READ, *cap)[0] == 0
    return tmp_path


def test_a_run_prints_its_release_and_how_to_get_it_back(dphh, path, tmp_path):
    code, out, err = dphh("items", path, *READ, *COST)
    assert code == 0
    assert "3 found by items" in out and "(1, 1e-07)-differential privacy" in out
    note, *progress, kept = err.splitlines()  # a line a level, for a job's log
    run_id = kept.split()[-3]
    run = f"dphh: items {run_id}: "  # each line, as several jobs may have one log
    assert note.startswith(f"{run}note: no account holds this corpus")
    assert progress[0] == f"{run}reading the corpus"
    assert any(line.startswith(f"{run}level 1, round 2: ") for line in progress)
    assert kept == f"{run}kept in the ledger: dphh ledger release {run_id} --out DIR"
    code, out, err = dphh("items", path, *READ, *COST, "--quiet", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "3 found" in out


def test_a_plan_costs_nothing_and_writes_nothing(dphh, own_ledger, path):
    code, out, err = dphh("items", path, *READ, *COST, "--plan")
    assert (code, err) == (0, "")
    assert "(1, 1e-07)-differential privacy" in out and len(out.splitlines()) <= 22
    assert "theorem" in dphh("items", path, *READ, *COST, "--plan", "--details")[1]
    assert not own_ledger.exists()


def test_an_account_of_wrong_columns_is_not_added(dphh, tmp_path):
    pl.DataFrame({"who": [1], "what": ["a"]}).write_parquet(tmp_path / "c.parquet")
    dphh("ledger", "add", "notes", tmp_path / "c.parquet", *READ, *COST)
    (tmp_path / "bad.csv").write_text("who,body\n1,a\n")
    bad = ("ledger", "add", "notes", tmp_path / "bad.csv", *READ, *COST, "--replace")
    code, _, err = dphh(*bad)
    assert code == 2 and err.endswith("Nothing was added\n")
    assert "c.parquet" in dphh("ledger", "show", "notes", "--json")[1]


def test_conditions_given_several_times_must_all_be_true(dphh, path, tmp_path):
    several = ["--where", "what = 'no' OR what IS NULL -- all", "--where", "who > 4",
               "--since", "who=100", "--since", "who=101", "--until", "who=200"]  # fmt: skip
    (tmp_path / "lines.txt").write_text("the\nsame")
    asked = ["counts", path, *READ, *COST, *several, "--of", tmp_path / "lines.txt", "--json"]
    assert json.loads(dphh(*asked)[1])["parameters"]["content"]["where"] == (
        "(what = 'no' OR what IS NULL -- all\n) AND (who > 4\n) AND "
        "(\"who\" >= '100'\n) AND (\"who\" >= '101'\n) AND (\"who\" < '200'\n)"
    )


def test_swapped_days_are_refused_on_the_command_line_too(dphh, path):
    since = ["--since", "what=2026-11-01", "--since", "what=2026-11-16"]
    code, _, err = dphh("items", path, *READ, *COST, *since, "--until", "what=2026-11-09")
    assert code == 2 and "until: found 2026-11-09, and since begins at 2026-11-16" in err


def test_an_option_with_commas_is_a_list_and_a_file_is_its_lines(dphh, path):
    asked = ("ngrams", path, *READ, *COST, "--max-n", "2", "--plan", "--json")
    found = json.loads(dphh(*asked, "--max-items", "7")[1])["parameters"]
    assert (found["max_items"], found["spurious"]) == (7, 0.01)
    more = ("--shares", "1,2.5", "--method", "dpne")
    assert json.loads(dphh(*asked, *more)[1])["parameters"]["shares"] == [1.0, 2.5]
    code, _, err = dphh(*asked, "--shares", "7,x", "--method", "dpne")
    assert code == 2
    assert "'--shares': found '7,x'; give " in err


def test_a_defect_shows_where_it_is_and_not_what_it_says(dphh, path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("SENTINEL")

    monkeypatch.setattr("dphh.run.open_host", fail)
    code, out, err = dphh("items", path, *READ, *COST)
    assert (code, out) == (1, "")
    assert "RuntimeError" in err
    assert "SENTINEL\n" not in err.replace('raise RuntimeError("SENTINEL")', "")


def test_a_release_is_explained_and_no_groups_are_of_its_users(dphh, path, tmp_path):
    out = tmp_path / "out"
    asked = ("ngrams", path, *READ, *COST, "--max-n", "2", "--prior-is-public", "--out", out)
    assert dphh(*asked, "--prior", path, "--prior-text", "what")[0] == 0
    assert Release.load(out).manifest["prior"]["words"] == 3
    assert "was not looked at" in dphh("why", out, "other words")[1]
    assert "no account paid for its run" in dphh("verify", out)[2]
    dphh("ledger", "add", "notes", path, *READ, *COST)
    code, _, err = dphh("ledger", "groups", "notes", "--groups", "a", "--by", "who")
    assert code == 2 and "Nothing was declared" in err


def test_a_script_asks_beforehand_whether_there_is_money(dphh, weeks):
    asked = ("items", "notes", "--delta", "1e-7", "--plan", "--json", "--epsilon")
    told = json.loads(dphh(*asked, "1")[1])["ledger"]
    assert (told["refused"], told["runs_left"]) == (None, 3) and 0.2 < told["takes"] < 0.3
    assert [each["name"] for each in told["accounts"]] == ["notes"]
    code, out, _ = dphh(*asked, "9")
    assert code == 3  # as the run
    assert "would exceed the cap of the account 'notes'" in json.loads(out)["ledger"]["refused"]
    asked = ("items", "notes", "--delta", "1e-7", "--epsilon", "2.2", "--run-id", "mine")
    dphh(*asked)
    assert dphh(*asked, "--plan")[0] == 0  # it is made, and comes back for nothing
    code, out, err = dphh(*asked[:-1], "other", "--plan")
    assert (code, "would refuse" in out) == (3, True) and err.startswith("dphh: Refused")
    code, out, err = dphh(*asked, "--max-items", "3", "--plan", "--json")
    assert (code, err) == (2, "") and "with another request" in json.loads(out)["ledger"]["refused"]


def test_a_slip_is_answered_with_the_nearest_option_alone(dphh, path):
    code, _, err = dphh("ngrams", path, *READ, *COST, "--maxn", "2")
    assert code == 2 and "--max-n" in err and "--again" not in err


def test_the_ledgers_verbs(dphh, path, tmp_path):
    add = ["ledger", "add", "notes", path, *READ, "--epsilon", "3", "--delta", "1e-6"]
    dphh(*add)
    dphh("items", "notes", *COST, "--run-id", "one")
    out = dphh("ledger", "show", "notes")[1]
    assert "settled" in out and "Promised to each user: (3, 1e-06), whatever is asked" in out
    found = json.loads(dphh("ledger", "show", "notes", "--json")[1])
    assert (found["name"], [run["run_id"] for run in found["runs"]]) == ("notes", ["one"])
    assert found["cap"] == {"epsilon": 3.0, "delta": 1e-6, "rule": "divergence"}
    assert 0 < found["one_more"]["epsilon"] < 3 and 0 < found["used"] < 1
    assert dphh("ledger", "show", "notes", "--quiet")[1] == out
    assert json.loads(dphh("ledger", "show", "--json")[1])["accounts"][0]["runs_count"] == 1
    raised = ["ledger", "cap", "notes", "--epsilon", "9", "--delta", "1e-6"]
    code, _, error = dphh(*raised)
    assert (code, "--yes confirms it" in error) == (2, True)
    assert "(9, 1e-06)" in dphh(*raised, "--yes")[1]
    out = dphh("ledger", "show", "notes")[1]
    assert "after 1 run: cap changed from epsilon 3, delta 1e-06 to epsilon 9, delta 1e-06" in out
    code, _, error = dphh(*add, "--if-missing")
    assert (code, "exists and keeps its cap (9, 1e-06)" in error) == (0, True)
    dphh("ledger", "release", "one", "--out", tmp_path / "back")
    assert Release.load(tmp_path / "back").run_id == "one"
    code, _, error = dphh("ledger", "add", "second", path, *READ, *COST, "--rule", "divergence")
    assert (code, "files of it are those of notes too: each run on them pays all" in error) == (
        0,
        True,
    )
    code, _, error = dphh("ledger", "remove", "notes")
    assert (code, "has paid for 1 run" in error) == (2, True)
    for suffix, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet)):
        assert dphh("ledger", "export", tmp_path / f"all{suffix}")[0] == 0
        assert dphh("ledger", "export", tmp_path / f"all{suffix}")[0] == 2
        again = dphh("ledger", "export", tmp_path / f"all{suffix}", "--replace", "--quiet")
        assert again == (0, "", "")
        assert read(tmp_path / f"all{suffix}")["run_id"].to_list() == ["one"]


def test_a_ledger_is_copied_while_it_is_used(dphh, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dphh("ledger", "add", "notes", path, *READ, *COST)
    copy = tmp_path / "copy.sqlite"
    code, out, err = dphh("ledger", "backup", copy)
    assert (code, out, err) == (0, "", f"a copy of the ledger, with 0 runs: {copy}\n")
    assert dphh("ledger", "backup", "copy.sqlite", "--quiet") == (0, "", "")
    dphh("items", "notes", *COST)
    assert "no earlier copy" not in dphh("ledger", "backup", copy)[2]
    assert "no earlier copy is there, so nothing" in dphh("ledger", "backup", "late.sqlite")[2]
    assert "notes" in dphh("ledger", "show", "--ledger", copy)[1]
    assert dphh("ledger", "backup", tmp_path / "own-data" / "dphh" / "ledger.sqlite")[0] == 2


def test_a_statement_is_one_page_for_an_auditor(dphh, path, tmp_path):
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "4", "--delta", "1e-6")
    assert dphh("items", "notes", *COST, "--run-id", "one")[0] == 0
    code, page, _ = dphh("ledger", "show", "notes")
    assert code == 0
    parts = (" ".join(part.split()) for part in page.split("\n\n## "))
    promise, changes, runs, signed = parts
    assert re.search("Name: __+ Date: __+ Signature: __+$", signed)
    release = Ledger(tmp_path / "own-data" / "dphh" / "ledger.sqlite").release("one").manifest
    assert f"Its release.json has table_sha256 {release['table_sha256']}" in runs
    assert "By itself: at most 2.719 times as likely, plus a probability of 1e-07 (1 in 10," in runs
    both = r"two parts, (\d+%|less than 1%) of what noise must hide is used, and 10% of how rarely"
    assert re.search(both + r".* so one more run of items may have epsilon 3\.\d+ at", promise)
    assert "Promised to each user: (4, 1e-06)" in promise and path in promise
    assert (
        "In words: whatever came out, it was at most 54.60 times as likely with the rows" in promise
    )
    assert "sure of it; who thinks it 10 in 100, 85.9; and 1 in 100, 35.6, but for" in promise
    assert "as without, plus a probability of 1e-06 (1 in 1,000,000), and the other way" in promise
    share = json.loads(dphh("ledger", "show", "notes", "--json")[1])["runs"][0]["used"]
    assert f": items (1, 1e-07), settled; took {share:.0%} of the cap Asked for: words of" in runs
    assert f"Run one, made with dphh {__version__} on duckdb" in runs
    assert "before any run: account made: a cap of epsilon 4, delta 1e-06, for " in changes
    lowered = ("ledger", "cap", "notes", "--epsilon", "0.1", "--delta", "1e-6")
    code, _, err = dphh(*lowered)
    assert code == 2 and "More is spent already" in err and "--yes confirms it" in err
    dphh(*lowered, "--yes")
    broken = " ".join(dphh("ledger", "show", "notes")[1].split())
    assert "The cap of (0.1, 1e-06) is broken, and promises nothing to anyone: 1 run" in broken
    assert re.search(r"settled; took more than 100 times the cap|took [\d.]+ times the cap", broken)
    assert "than this cap, so it promises nothing. Whether a larger one was" in broken and (
        "times as likely" not in broken.split("## Runs")[0]
    )


def commands(group=cli, names=()):
    yield names, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), (*names, name))


def test_the_help_lists_each_verb_with_its_summary():
    listed = CliRunner().invoke(cli, ["--help"]).output
    for verb in VERBS.values():
        assert f"  {verb.name.replace('_', '-')} " in listed and f"  {verb.summary}\n" in listed


def test_every_command_and_option_explains_itself():
    for names, command in commands():
        assert command.help, names
        for option in command.params:
            assert isinstance(option, click.Argument) or option.help, (names, option.name)
        text = CliRunner().invoke(cli, [*names, "--help"], terminal_width=100).output
        assert max(map(len, text.splitlines())) <= 100, names
        of_options = re.findall(r"^[^:\n]*(?<!Commands):\n((?:  .*\n)+)", text, re.MULTILINE)
        assert not re.findall(r"^  [^ -]", "".join(of_options), re.MULTILINE), names


def test_a_terminal_that_knows_only_ascii_still_gets_its_release(written):
    path = written([(who, "日本 é") for who in range(300)]).where[0]
    done = subprocess.run(
        [sys.executable, "-m", "dphh", "items", path, *READ, *COST],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "日本".encode() in done.stdout


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


def test_a_run_that_goes_on_after_a_cut_is_told_as_spent(dphh, weeks, ledger, monkeypatch):
    asked = ("items", "notes", *COST, "--run-id", "mine", "--json", "--quiet")

    def failing(*_):
        raise EngineError("cut")

    with monkeypatch.context() as cut:
        cut.setattr("dphh.run.run_levels", failing)
        for _ in range(2):
            code, out, _ = dphh(*asked)
            told = json.loads(out)["error"]
            assert (code, told["spent"], told["run_id"]) == (1, True, "mine")
    with monkeypatch.context() as killed:
        killed.setattr("dphh.ledger.Ledger.failed", lambda *_: None)
        killed.setattr("dphh.run.run_levels", failing)
        dphh(*asked)
    (run,) = json.loads(dphh("ledger", "show", "notes", "--json")[1])["runs"]
    assert run["state"] == "running" and run["since"] == run["when"]
    first, again = (json.loads(dphh(*asked)[1]) for _ in range(2))
    assert (first["found"], first["spent"], again["spent"]) == (3, True, False)
    (account,) = first["accounts"]
    assert account["name"] == "notes" and again["accounts"] == first["accounts"]
    assert len(ledger.runs()) == 1


def test_a_late_file_is_told_to_programs(dphh, weeks):
    asked = ("items", "notes", *COST, "--run-id", "mine", "--json", "--quiet")
    assert json.loads(dphh(*asked)[1])["notes"] == []
    pl.DataFrame({"who": [1], "what": ["late"]}).write_parquet(weeks / "week-3.parquet")
    code, out, err = dphh(*asked)
    (note,) = json.loads(out)["notes"]
    assert (code, err) == (0, "") and "whatever the data are now" in note
    assert f"dphh: warning: {note}\n" in dphh(*asked[:-1])[2]


def test_notes_on_the_budget_are_told_to_programs(dphh, path):
    (note,) = json.loads(dphh("items", path, *READ, *COST, "--json", "--quiet")[1])["notes"]
    assert note.startswith("no account holds this corpus")


def test_a_defect_is_told_to_programs_and_quotes_nothing(dphh, path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("SENTINEL")

    monkeypatch.setattr("dphh.run.open_host", fail)
    code, out, _ = dphh("items", path, *READ, *COST, "--json")
    told = json.loads(out)["error"]
    assert (code, told["exit_code"], told["kind"]) == (1, 1, "RuntimeError")
    assert "SENTINEL" not in out and (told["spent"], told["run_id"]) == (False, None)


def test_memory_that_cannot_suffice_is_refused_before_payment(dphh, weeks, ledger):
    asked = ("items", "notes", *COST, "--memory-limit")
    code, _, err = dphh(*asked, "150MB")
    assert code == 2 and "give 200MB or more" in err and "Nothing was spent" in err
    assert ledger.runs() == []
    assert dphh(*asked, "200MB")[0] == 0


def test_a_ledger_that_cannot_be_read_is_not_the_requests_fault(dphh, weeks, ledger):
    asked = [
        ("items", "notes", *COST, "--json"),
        ("items", weeks / "week-1.parquet", *READ, *COST, "--json"),
        ("ledger", "show"),
        ("ledger", "cap", "notes", "--epsilon", "1", "--delta", "1e-7"),
        ("ledger", "export", weeks / "runs.csv"),
    ]
    whole = ledger.path.read_bytes()
    for found in (b"no ledger" * 99, whole[: len(whole) // 2]):
        ledger.path.write_bytes(found)
        assert [dphh(*each)[0] for each in asked] == [1] * len(asked), found
    assert dphh("ledger", "show", "--ledger", weeks / "none")[0] == 2  # the name may be wrong


def test_a_job_at_night_is_not_run_uncapped_by_a_slip(dphh, weeks, ledger, monkeypatch):
    uncapped = ("items", weeks.parent / "other.parquet", *READ, *COST, "--json", "--quiet")
    (weeks.parent / "other.parquet").write_bytes((weeks / "week-1.parquet").read_bytes())
    capped = ("items", weeks / "week-1.parquet", *READ, *COST, "--json", "--quiet")
    code, out, _ = dphh(*uncapped, "--require-account")
    assert (code, json.loads(out)["error"]["spent"]) == (2, False)
    for options in (
        ("--ledger", weeks / "leger.sqlite"),
        ("--ledger", weeks / "leger.sqlite", "--plan"),
    ):
        code, out, err = dphh(*capped, *options)
        assert (code, json.loads(out)["error"]["kind"]) == (2, "UsageError")
        assert "There is no ledger at" in err
    with monkeypatch.context() as slip:
        slip.setenv("DPHH_LEDGER", str(weeks / "leger.sqlite"))
        assert dphh(*capped)[0] == dphh("check", *capped[1:-2])[0] == 2
        for asked in (("check", capped[1], *READ), (*capped[:-2], "--plan")):
            code, out, _ = dphh(*asked)  # all that can be looked at is, and the path is said
            assert code == 2 and "leger.sqlite" in out
            assert "+ users" in out or "found with probability 0.9" in out
    assert not (weeks / "leger.sqlite").exists() and not ledger.runs()
    assert dphh(*capped, "--require-account")[0] == 0


def test_files_of_a_named_corpus_are_read_as_its_owner_said(dphh, weeks, ledger):
    for week in (1, 2):
        file, out = weeks / f"week-{week}.parquet", weeks / f"out-{week}"
        assert dphh("items", "notes", *COST, "--files", file, "--out", out)[0] == 0
        found = {row["item"] for row in Release.load(out)}
        assert found == {"week", f"number{week}"}
    assert len(ledger.runs("notes")) == 2
