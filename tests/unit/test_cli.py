"""The command line: exit codes, what goes to which stream, and the JSON of DESIGN.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import polars as pl
import pytest
from click.testing import CliRunner

from dphh import Release, __version__, plan_from_json
from dphh.cli import cli

COST = ["--epsilon", "1", "--delta", "1e-7"]
READ = ["--user", "who", "--text", "what"]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "corpus.parquet"
    pl.DataFrame({"who": range(300), "what": ["the same words"] * 300}).write_parquet(file)
    return str(file)


def test_a_run_prints_its_release_and_how_to_get_it_back(dphh, path):
    code, out, err = dphh("items", path, *READ, *COST)
    assert code == 0
    assert "3 found by items" in out and "(1, 1e-07)-differential privacy" in out
    assert err.splitlines()[0].startswith("note: no account holds this corpus")
    assert err.splitlines()[1].startswith("kept in the ledger: dphh ledger release ")
    assert len(err.splitlines()) == 2  # no progress where nobody watches


def test_quiet_is_silent_but_for_the_release(dphh, path, tmp_path):
    for more in ([], ["--out", tmp_path / "out"]):
        code, out, err = dphh("items", path, *READ, *COST, "--quiet", *more)
        assert (code, err) == (0, "")
        assert "3 found" in out


def test_a_plan_costs_nothing_and_writes_nothing(dphh, own_ledger, path):
    code, out, err = dphh("items", path, *READ, *COST, "--plan")
    assert (code, err) == (0, "")
    assert "(1, 1e-07)-differential privacy" in out
    assert (
        len(out.splitlines()) <= 20
        and "theorem" in dphh("items", path, *READ, *COST, "--plan", "--details")[1]
    )
    code, out, err = dphh("items", path, *READ, *COST, "--plan", "--json")
    assert plan_from_json(out).verb == "items"
    assert {"verb", "parameters", "privacy", "levels", "finds"} <= json.loads(out).keys()
    assert not own_ledger.exists()


def test_rows_without_a_user_are_told_of_when_an_account_is_added(dphh, tmp_path):
    pl.DataFrame({"who": [1, None], "what": ["a", "b"]}).write_parquet(tmp_path / "c.parquet")
    code, _, err = dphh("ledger", "add", "notes", tmp_path / "c.parquet", *READ, *COST)
    assert code == 0 and "NULL user id" in err and "; --null-users drop leaves them out" in err
    more = ("--null-users", "drop")
    assert "NULL" not in dphh("ledger", "add", "n", tmp_path / "c.parquet", *READ, *COST, *more)[2]


def test_a_named_corpus_is_read_as_its_owner_said(dphh, path, ledger):
    assert dphh("ledger", "add", "notes", path, *READ, *COST)[0] == 0
    code, out, _ = dphh("items", "notes", *COST)
    assert code == 0
    assert "3 found" in out
    code, out, err = dphh("items", "notes", *COST, "--again")
    assert (code, out) == (3, "")
    assert err.startswith("dphh: Refused")
    assert "'notes'" in err
    code, _, err = dphh("items", "notes", *COST, "--no-lower", "--text", "x")
    assert code == 2
    assert "--lower, --text: the ledger has the corpus 'notes'" in err
    assert [run.state for run in ledger.runs()] == ["settled"]


def test_conditions_given_several_times_must_all_be_true(dphh, tmp_path):
    rows = {"who": range(300), "what": ["yes", "no"] * 150, "part": [n % 10 for n in range(300)]}
    pl.DataFrame(rows).write_parquet(tmp_path / "c.parquet")
    several = ["--where", "what = 'no' OR what IS NULL -- all", "--where", "part > 4", "--since",
               "part=6", "--since", "who=100", "--until", "part=9",
               "--until", "who=200"]  # fmt: skip
    asked = [tmp_path / "c.parquet", *READ, "--as", "whole", *COST, "--json"]
    (tmp_path / "lines.txt").write_text("yes\nno")
    code, out, _ = dphh("counts", *asked, *several, "--of", tmp_path / "lines.txt")
    assert code == 0
    assert json.loads(out)["parameters"]["content"]["where"] == (
        "(what = 'no' OR what IS NULL -- all\n) AND (part > 4\n) AND (\"part\" >= '6'\n) AND "
        "(\"who\" >= '100'\n) AND (\"part\" < '9'\n) AND (\"who\" < '200'\n)"
    )


def test_an_option_with_commas_is_a_list_and_a_file_is_its_lines(dphh, path):
    asked = ("ngrams", path, *READ, *COST, "--max-n", "2", "--plan", "--json")
    found = json.loads(dphh(*asked, "--max-items", "7")[1])["parameters"]
    assert (found["max_items"], found["spurious"]) == (7, 0.01)
    more = ("--max-items", "7,3", "--shares", "1,2.5", "--method", "dpne")
    found = json.loads(dphh(*asked, *more)[1])["parameters"]
    assert (found["max_items"], found["shares"]) == ([7, 3], [1.0, 2.5])
    code, _, err = dphh(*asked, "--max-items", "7,x")
    assert code == 2
    assert "'--max-items': found '7,x'; give a whole number" in err


def test_a_defect_shows_where_it_is_and_not_what_it_says(dphh, path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("SENTINEL")

    monkeypatch.setattr("dphh.run.open_host", fail)
    code, out, err = dphh("items", path, *READ, *COST)
    assert (code, out) == (1, "")
    assert "RuntimeError" in err
    assert "SENTINEL\n" not in err.replace('raise RuntimeError("SENTINEL")', "")


def test_a_release_is_explained_and_verified_and_no_groups_are_of_its_users(dphh, path, tmp_path):
    out = tmp_path / "out"
    asked = ("ngrams", path, *READ, *COST, "--max-n", "2", "--prior-is-public", "--out", out)
    assert dphh(*asked, "--prior", path, "--prior-text", "what")[0] == 0
    assert Release.load(out).manifest["prior"]["words"] == 3
    assert "was not looked at" in dphh("why", out, "other words")[1]
    assert "+ ledger" in dphh("verify", out)[1]
    (out / "release.json").write_text("{}")
    assert dphh("verify", out)[0] == 2
    dphh("ledger", "add", "notes", path, *READ, *COST)
    code, _, err = dphh("ledger", "groups", "notes", "--groups", "a", "--by", "who")
    assert code == 2 and "Nothing was declared" in err


def test_the_ledgers_verbs(dphh, path, tmp_path):
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "3", "--delta", "1e-6")
    dphh("items", "notes", *COST, "--run-id", "one")
    code, out, _ = dphh("ledger", "show", "notes")
    assert code == 0
    assert "settled" in out
    assert "one" in out
    found = json.loads(dphh("ledger", "show", "notes", "--json")[1])
    assert found["name"] == "notes"
    assert found["cap"] == {"epsilon": 3.0, "delta": 1e-6, "kept": "divergence"}
    assert "promised to each user: (3, 1e-06), whatever is asked" in out
    assert 0 < found["left"]["epsilon"] < 3
    assert [run["run_id"] for run in found["runs"]] == ["one"]
    assert json.loads(dphh("ledger", "show", "--json")[1])["accounts"][0]["runs_count"] == 1
    raised = ["ledger", "cap", "notes", "--epsilon", "9", "--delta", "1e-6"]
    code, _, error = dphh(*raised)
    assert (code, "--yes confirms it" in error) == (2, True)
    assert "(9, 1e-06)" in dphh(*raised, "--yes")[1]
    assert "cap: epsilon 9, delta 1e-06, before epsilon 3" in dphh("ledger", "show", "notes")[1]
    assert json.loads(dphh("ledger", "show", "notes", "--json")[1])["history"][1]["what"] == "cap"
    add = ["ledger", "add", "notes", path, *READ, "--epsilon", "3", "--delta", "1e-6"]
    assert dphh(*add)[0] == 2
    code, _, error = dphh(*add, "--if-missing")
    assert (code, "exists and keeps its cap (9, 1e-06)" in error) == (0, True)
    code, out, _ = dphh("ledger", "release", "one", "--out", tmp_path / "back", "--json")
    assert json.loads(out)["run_id"] == "one"
    assert Release.load(tmp_path / "back").run_id == "one"
    for suffix, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet)):
        assert dphh("ledger", "export", tmp_path / f"all{suffix}")[0] == 0
        assert read(tmp_path / f"all{suffix}")["run_id"].to_list() == ["one"]


def test_version(dphh):
    assert dphh("--version") == (0, f"dphh {__version__}\n", "")


def commands(group=cli, names=()):
    yield names
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), (*names, name))


def called(names):
    command = cli
    for name in names:
        command = command.get_command(click.Context(command), name)
    return command


@pytest.mark.parametrize("names", list(commands()), ids=" ".join)
def test_every_command_and_option_explains_itself(names):
    command = called(names)
    assert command.help
    for option in command.params:
        assert isinstance(option, click.Argument) or option.help, option.name
    text = CliRunner().invoke(cli, [*names, "--help"], terminal_width=100).output
    assert max(map(len, text.splitlines())) <= 100


def test_a_terminal_that_knows_only_ascii_still_gets_its_release(tmp_path):
    file = tmp_path / "c.parquet"
    pl.DataFrame({"who": range(300), "what": ["日本 é"] * 300}).write_parquet(file)
    done = subprocess.run(
        [sys.executable, "-m", "dphh", "items", str(file), *READ, *COST],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "日本".encode() in done.stdout


def test_a_statement_is_one_page_for_an_auditor(dphh, path):
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "4", "--delta", "1e-6")
    assert dphh("items", "notes", *COST, "--run-id", "one")[0] == 0
    code, page, _ = dphh("ledger", "statement", "notes")
    assert code == 0
    promise, runs, totals, changes = page.split("\n\n## ")
    assert "Promised to each user: (4, 1e-06)" in promise and path in promise
    (run,) = [line for line in runs.splitlines() if line.startswith("- ")]
    assert "items (1, 1e-07) settled, by " in run and run.endswith("on duckdb, run one")
    assert f"dphh {__version__}" in run
    assert "Claimed by all together: epsilon 1, delta 1e-07" in totals
    assert "cap: epsilon 4" in changes
