"""The command line: exit codes, what goes to which stream, and the JSON of DESIGN.md."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner

import dphh as dphh_module
from dphh import EngineError, Ledger, Release, __version__, plan_from_json
from dphh.cli import cli
from dphh.corpus import HELP
from dphh.registry import VERBS

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


def test_json_is_the_manifest_as_one_object(dphh, path):
    code, out, _ = dphh("items", path, *READ, *COST, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"verb", "parameters", "privacy", "levels", "finds", "run_id"} <= found.keys()
    assert found["privacy"].keys() >= {"epsilon", "delta", "unit", "adjacency", "theorem"}
    assert found["levels"][0].keys() >= {"level", "released", "sigma", "threshold"}
    assert found["finds"].keys() >= {"probability", "users"}
    assert found["finds"]["probability"] == 0.9
    assert sum(level["released"] for level in found["levels"]) == 3


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


@pytest.mark.parametrize(
    ("corpus", "more", "said"),
    [
        ("/not/there.parquet", (), "there is no such file"),
        (None, ("--where", "nosuch = 3"), "no column 'nosuch'"),
    ],
)
def test_what_is_not_there_is_an_error_of_the_plan(dphh, path, corpus, more, said):
    code, _, err = dphh("items", corpus or path, *READ, *more, *COST, "--plan")
    assert code == 2 and said in err


def test_why_says_why_a_phrase_is_not_there(dphh, path, tmp_path):
    asked = ("ngrams", path, *READ, *COST, "--max-n", "2", "--out", tmp_path / "out")
    assert dphh(*asked)[0] == 0
    assert "was not looked at" in dphh("why", tmp_path / "out", "other words")[1]


def test_an_account_is_not_added_with_a_wrong_column(dphh, ledger, path, tmp_path):
    added = ("ledger", "add", "notes")
    code, _, err = dphh(*added, path, "--user", "who", "--text", "waht", *COST)
    assert code == 2
    assert "no column 'waht'; did you mean 'what'" in err and "Nothing was added" in err
    assert ledger.runs() == []
    code, _, err = dphh(*added, tmp_path / "later.parquet", *READ, *COST)
    assert code == 0 and "note: no file is at" in err


def test_rows_without_a_user_are_told_of_when_an_account_is_added(dphh, tmp_path):
    pl.DataFrame({"who": [1, None], "what": ["a", "b"]}).write_parquet(tmp_path / "c.parquet")
    code, _, err = dphh("ledger", "add", "notes", tmp_path / "c.parquet", *READ, *COST)
    assert code == 0 and "NULL user id" in err and "; --null-users drop leaves them out" in err
    more = ("--null-users", "drop")
    assert "NULL" not in dphh("ledger", "add", "n", tmp_path / "c.parquet", *READ, *COST, *more)[2]


def test_a_users_column_has_no_groups(dphh, path):
    dphh("ledger", "add", "notes", path, *READ, *COST)
    code, _, err = dphh("ledger", "groups", "notes", "--groups", "a", "--by", "who")
    assert code == 2 and len(err.splitlines()) == 1
    assert "by: 'who' identifies the users of 'notes'" in err and "Nothing was declared" in err


def test_out_writes_what_load_reads(dphh, path, tmp_path):
    code, _, err = dphh("items", path, *READ, *COST, "--out", tmp_path / "out", "--run-id", "one")
    assert code == 0
    assert f"written to {tmp_path / 'out'}" in err
    assert Release.load(tmp_path / "out").run_id == "one"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "release.json",
        "release.parquet",
    ]
    code, _, err = dphh("items", path, *READ, *COST, "--out", tmp_path / "out", "--again")
    assert code == 2
    assert "contains another release" in err


def test_a_run_id_again_gives_the_same_release(dphh, path, ledger):
    asked = ("items", path, *READ, *COST, "--json", "--run-id", "one")
    first, second = (json.loads(dphh(*asked)[1]) for _ in range(2))
    assert (first.pop("spent"), second.pop("spent")) == (True, False)
    assert first == second
    assert len(ledger.runs()) == 1


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


@pytest.mark.parametrize(
    "said",
    [
        ["--max-token-length", "0"],
        ["--max-token-length", "1000"],
        ["--split", "truncate"],
        ["--split", "white space"],
        ["--strip", "white space"],
        ["--strip", ""],
        ["--drop", ""],
    ],
    ids=" ".join,
)
def test_on_a_named_corpus_no_reading_option_is_passed_over(dphh, path, said):
    """Nor one that says what is said anyway: its owner's word may be another."""
    dphh("ledger", "add", "notes", path, *READ, *COST)
    code, out, err = dphh("items", "notes", *COST, *said, "--plan")
    assert (code, out) == (2, "")
    assert f"{said[0]}: the ledger has the corpus 'notes'" in err


def test_what_a_flag_of_the_ledger_says_is_kept(dphh, path, ledger):
    dphh("ledger", "add", "notes", path, *READ, *COST, "--no-lower", "--keep", "s.*")
    (account,) = ledger.accounts()
    assert (account.source.content["lower"], account.source.content["keep"]) == (False, "s.*")
    assert "1 found" in dphh("items", "notes", *COST)[1]


@pytest.mark.parametrize("name", VERBS)
def test_a_commands_options_are_those_of_the_verb_and_of_the_corpus(name):
    verb = VERBS[name]
    params = {param.name: param for param in called([name.replace("_", "-")]).params}
    assert verb.help.keys() == verb.options.keys() <= params.keys()
    assert {each for each in HELP if each not in verb.options} <= params.keys()
    for option in verb.options.values():
        assert params[option.name].required == (option.default is option.empty)


def test_a_user_given_twice_is_a_unit_of_two_columns(dphh, path):
    asked = ("items", path, "--item", "what", *COST, "--plan", "--json")
    plan = json.loads(dphh(*asked, "--user", "who", "--user", "what")[1])
    assert plan["corpus"]["user"] == ["who", "what"]
    assert "NOT a person" in plan["privacy"]["unit"]
    assert json.loads(dphh(*asked, "--user", "who")[1])["corpus"]["user"] == "who"


def test_conditions_given_several_times_must_all_be_true(dphh, tmp_path):
    rows = {"who": range(300), "what": ["yes", "no"] * 150, "part": [n % 10 for n in range(300)]}
    pl.DataFrame(rows).write_parquet(tmp_path / "c.parquet")
    several = ["--where", "what = 'no' OR what IS NULL -- all", "--where", "part > 4", "--since",
               "part=6", "--since", "who=100", "--until", "part=9",
               "--until", "who=200"]  # fmt: skip
    asked = [tmp_path / "c.parquet", *READ, "--as", "whole", *COST, "--json"]
    code, out, _ = dphh("counts", *asked, *several, "--of", _lines(tmp_path, "yes", "no"))
    assert code == 0
    assert json.loads(out)["parameters"]["content"]["where"] == (
        "(what = 'no' OR what IS NULL -- all\n) AND (part > 4\n) AND (\"part\" >= '6'\n) AND "
        "(\"who\" >= '100'\n) AND (\"part\" < '9'\n) AND (\"who\" < '200'\n)"
    )
    # A single one is the request that it was before several could be given.
    code, out, _ = dphh("items", *asked, "--where", "part > 4", "--plan")
    assert json.loads(out)["corpus"]["content"]["where"] == "part > 4"
    code, _, err = dphh("items", *asked, "--where", "part > 4", "--where", "max(part) > 4")
    assert code == 2 and "the function 'max'" in err


def _lines(folder, *lines):
    (folder / "lines.txt").write_text("\n".join(lines))
    return folder / "lines.txt"


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


def test_a_cap_holds_whatever_the_files_are_called(dphh, path):
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "0.5", "--delta", "1e-7")
    assert dphh("items", path, *READ, *COST)[0] == 3


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_user_ids_of_several_spellings_are_refused_on_the_command_line(dphh, tmp_path, engine):
    rows = pl.DataFrame({"who": [0.0, -0.0], "what": ["a", "b"]})
    rows.write_parquet(tmp_path / "numbers.parquet")
    found, out, err = dphh("items", tmp_path / "numbers.parquet", *READ, *COST, "--engine", engine)
    assert (found, out) == (2, "")
    assert "user: column who is " in err
    assert Ledger().runs() == []


def test_a_defect_shows_where_it_is_and_not_what_it_says(dphh, path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("SENTINEL")

    monkeypatch.setattr("dphh.run.open_host", fail)
    code, out, err = dphh("items", path, *READ, *COST)
    assert (code, out) == (1, "")
    assert "RuntimeError" in err
    assert "SENTINEL\n" not in err.replace('raise RuntimeError("SENTINEL")', "")


def test_an_interrupt_is_said_in_one_line(dphh, path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dphh.run.open_host", stop)
    code, _, err = dphh("items", path, *READ, *COST)
    assert code == 1
    assert err.strip() == "dphh: interrupted; `dphh ledger show` says what is spent"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, EngineError])
def test_a_run_that_is_cut_short_goes_on_under_its_id(dphh, path, monkeypatch, failure):
    def stop(*_, **__):
        raise failure("stopped")

    asked = ("items", path, *READ, *COST, "--run-id", "one")
    with monkeypatch.context() as patched:
        patched.setattr("dphh.engines.duckdb.host.DuckDBHost.gather", stop)
        code, _, err = dphh(*asked)
    assert code == 1
    assert "the same request with run id one goes on" in err.splitlines()[-1]
    code, out, _ = dphh(*asked)
    assert code == 0
    assert "3 found" in out
    assert [run.state for run in Ledger().runs()] == ["settled"]


def test_an_account_whose_data_were_moved(dphh, path, tmp_path):
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "0.5", "--delta", "1e-7")
    there = str(Path(path).rename(tmp_path / "there.parquet"))
    assert dphh("ledger", "add", "notes", there, *READ, *COST)[0] == 2
    code, _, err = dphh("ledger", "add", "notes", there, *READ, *COST, "--replace")
    assert (code, "exists and keeps its cap (0.5, 1e-07)" in err) == (0, True)
    assert dphh("items", there, *READ, *COST)[0] == 3
    assert f"corpus: {there}, users by" in " ".join(dphh("ledger", "show", "notes")[1].split())


@pytest.mark.parametrize(
    "looks",
    [
        ("ledger", "show"),
        ("ledger", "show", "--json"),
        ("ledger", "show", "notes"),
        ("ledger", "export", "x.csv"),
        ("ledger", "release", "one"),
        ("ledger", "cap", "notes", "--epsilon", "1", "--delta", "0"),
        ("check", "PATH", *READ),
    ],
)
def test_a_ledger_that_is_not_there_is_not_made_by_looking(dphh, path, tmp_path, looks):
    lost = tmp_path / "lost.sqlite"
    asked = [path if word == "PATH" else word for word in looks]
    code, out, err = dphh(*asked, "--ledger", lost)
    assert (code, bool(out)) == (2, "--json" in asked)  # programs are told on standard output
    assert f"There is no ledger at {lost}" in err
    assert not lost.exists()


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
    assert (code, "--yes says yes" in error) == (2, True)
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


def test_a_run_that_no_account_paid_for_is_shown_with_its_path(dphh, path):
    dphh("items", path, *READ, *COST, "--run-id", "mine")
    out = dphh("ledger", "show")[1]
    assert "The ledger has no account" in out
    assert "mine" in out and path in out
    found = json.loads(dphh("ledger", "show", "--json")[1])
    assert (found["accounts"], found["runs_of_no_account"][0]["run_id"]) == ([], "mine")
    dphh("ledger", "add", "notes", path, *READ, "--epsilon", "3", "--delta", "1e-6")
    assert "mine" not in dphh("ledger", "show")[1]
    assert "mine" in dphh("ledger", "show", "notes")[1]


def test_version(dphh):
    assert dphh("--version") == (0, f"dphh {__version__}\n", "")


def test_completion_knows_the_options():
    found = CliRunner().invoke(
        cli,
        [],
        prog_name="dphh",
        env={"_DPHH_COMPLETE": "bash_complete", "COMP_WORDS": "dphh items --me", "COMP_CWORD": "2"},
    )
    assert "--method" in found.output
    assert "--memory-limit" in found.output


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


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_five_groups_with_each_option_in_one_line(verb):
    command = called([verb.replace("_", "-")])
    text = CliRunner().invoke(cli, [command.name, "--help"], terminal_width=80).output
    groups = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert groups == ["The corpus", "The search", "The budget", "Where it runs", "What to show"]
    lines = text.partition("The corpus:")[2].splitlines()
    options = [option for option in command.get_params(click.Context(command))
               if isinstance(option, click.Option)]  # fmt: skip
    assert len([line for line in lines if line.startswith("  ")]) == len(options)
    for option in options:
        name = max(option.opts, key=len)  # click gives -h and --help in either order
        (line,) = (line for line in lines if re.match(rf"  (-h, )?{name}(?= )", line))
        if isinstance(option.type, click.Choice):
            assert set(re.split(r"\W+", "-".join(option.type.choices))) <= set(
                re.split(r"\W+", line)
            )


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_options_have_one_order_everywhere(verb):
    asked = [*verb.options]
    function = getattr(dphh_module, verb.name)
    assert [*signature(function).parameters] == ["corpus", *asked]
    found = re.findall(r"^(\w+): ", function.__doc__, re.MULTILINE)
    assert found[-len(asked) :] == asked
    shown = [option.name for option in called([verb.name.replace("_", "-")]).params]
    assert [name for name in shown if name in asked] == asked


def test_dphh_alone_says_what_to_type_next(dphh):
    code, out, _ = dphh()
    assert code == 0
    assert len(out.splitlines()) == 5
    for line in out.splitlines()[1:4]:
        assert line.split()[1] in cli.list_commands(click.Context(cli))


def test_progress_shows_on_a_terminal_and_holds_no_private_number(path):
    terminal, other_end = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "dphh", "items", path, *READ, *COST, "--run-id", "one"],
        stdout=subprocess.PIPE, stderr=other_end, check=True, text=True,
    )  # fmt: skip
    os.close(other_end)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert b"level 1: 3 released" in shown
    assert b"300" not in shown
    assert "3 found" in done.stdout


def test_a_terminal_that_knows_only_ascii_still_gets_its_release(tmp_path):
    file = tmp_path / "c.parquet"
    pl.DataFrame({"who": range(300), "what": ["日本 é"] * 300}).write_parquet(file)
    done = subprocess.run(
        [sys.executable, "-m", "dphh", "items", str(file), *READ, *COST],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "日本".encode() in done.stdout


def test_the_demo_finds_what_is_shared_and_keeps_back_what_is_not(dphh, own_ledger, monkeypatch):
    # At the demo's own delta one of its 100,000 secrets passes three times in 100,000 runs.
    monkeypatch.setattr(sys.modules["dphh.cli.demo"], "DELTA", 1e-14)
    code, out, _ = dphh("demo")
    assert code == 0
    alone = next(line for line in out.splitlines() if "held by one person alone" in line)
    assert "  0 found" in alone
    many = next(line for line in out.splitlines() if "1,000 people or more" in line)
    assert many.rstrip().endswith("100.0%")
    assert "Refused" in out
    assert not own_ledger.exists()
    assert Ledger().runs() == []
