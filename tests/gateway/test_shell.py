"""An analyst's stock DuckDB shell, the owner's `dphh shell`, and commands of `dphh serve`."""

import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dphh import Ledger
from dphh.asking.clients import init_sql
from dphh.reader.files import extension_file
from tests.gateway.conftest import DPHH, Place
from tests.ledger.asked import ask


def run(place: Place, *arguments: str, typed: str = "") -> Any:
    ledger = os.environ | {"DPHH_LEDGER": str(place.ledger.path)}
    return said([*DPHH, *arguments], typed, env=ledger)


def said(command: list[str], typed: str, **more: Any) -> Any:
    how = {"capture_output": True, "text": True, "timeout": 250, "check": False}
    return subprocess.run(command, input=typed, **how | more)  # noqa: PLW1510


def stock_shell(place: Place, typed: str, who: str = "alice") -> Any:
    """What the stock shell says, with the init file of an analyst."""
    (folder,) = find_spec("duckdb_cli").submodule_search_locations
    shell = Path(folder, "duckdb")
    httpfs = extension_file("httpfs", version("duckdb-cli"))
    init = place.folder / f"{who}.sql"
    init.write_text(f"LOAD '{httpfs}';\n{init_sql(place.address, place.tokens[who])}")
    return said([str(shell), "-init", str(init), "-csv", "-noheader"], typed)


def test_add_analyst_prints_the_token_once_and_what_to_do_with_it(own, dphh, monkeypatch):
    def run(*arguments: str) -> Any:
        return SimpleNamespace(
            **dict(zip(("returncode", "stdout", "stderr"), dphh(*arguments), strict=True))
        )

    monkeypatch.setenv("DPHH_LEDGER", str(own.ledger.path))
    asked = ("--corpus", "reviews", "--epsilon", "1", "--delta", "1e-6")
    given = run("serve", "add-analyst", "carol", *asked, "--address", "https://dphh.example/")
    assert given.returncode == 0, given.stderr
    (token,) = {*re.findall(r"BEARER_TOKEN '([^']+)'", given.stdout)}
    assert own.ledger.analyst_with(token) == "carol"
    assert "SCOPE 'https://dphh.example/'" in given.stdout
    assert "'https://dphh.example/v1/ngrams'" in given.stdout and "curl -H" in given.stderr
    file = own.folder / "dave.sql"
    to_file = run("serve", "add-analyst", "dave", *asked, "--out", str(file))
    assert to_file.stdout == "" and file.stat().st_mode & 0o777 == 0o600
    (token_of_dave,) = {*re.findall(r"BEARER_TOKEN '([^']+)'", file.read_text())}
    assert own.ledger.analyst_with(token_of_dave) == "dave"
    again = run("serve", "add-analyst", "dave", *asked, "--new-token", "--out", str(file))
    assert again.returncode == 2 and "give a file that is not there yet" in again.stderr
    assert own.ledger.analyst_with(token_of_dave) == "dave"
    higher = run("serve", "add-analyst", "carol", *asked[:3], "2", *asked[4:])
    assert higher.returncode == 2 and "--yes confirms it" in higher.stderr
    lower = run("serve", "add-analyst", "carol", *asked[:5], "1e-7", "--yes")
    assert lower.returncode == 0 and "has spent more" not in lower.stderr
    ask(Ledger(own.ledger.path, "carol"), "run", own.corpus, 0.5, account="reviews")
    below = run("serve", "add-analyst", "carol", *asked[:3], "0.4", "--delta", "1e-7")
    assert "carol has spent more than that already" in below.stderr
    new = run("serve", "add-analyst", "carol", *asked, "--new-token", "--yes")
    assert own.ledger.analyst_with(token) is None and "BEARER_TOKEN" in new.stdout
    assert "carol  reviews: a share of (1, 1e-06)" in run("serve", "show").stdout
    assert run("serve", "remove-analyst", "carol").returncode == 0
    assert "no token in force" in run("serve", "show").stdout


@pytest.mark.usefixtures("_shell")
def test_macros_in_the_stock_shell_answer_as_in_python(place):
    runs = len(place.ledger.runs())
    items = "dphh_items('reviews', epsilon := 0.45, delta := 1e-8)"
    free = stock_shell(
        place,
        f"""
        EXPLAIN FROM {items};
        PREPARE asked AS FROM {items};
        CREATE VIEW words AS FROM {items};
        SELECT cap_epsilon FROM dphh_ledger();
        SELECT count(*) FROM duckdb_functions()
            WHERE function_name LIKE 'dphh%' AND comment IS NULL;
        """,
    )
    assert free.stdout.splitlines()[-2:] == ["3.5", "0"]
    assert len(place.ledger.runs()) == runs
    spent = stock_shell(
        place,
        f"""
        CREATE TABLE mine AS SELECT unnest(['cat', 'dog', 'emu']) AS item;
        SELECT item, len(tokens) FROM {items} JOIN mine USING (item) ORDER BY item;
        SELECT count(*) FROM {items} a JOIN {items} b USING (item, score);
        SELECT count(*) FROM dphh_counts('reviews', of := ['it''s & so', 'emu', 'cat'],
            epsilon := 0.05, delta := 1e-8);
        SET VARIABLE words = (SELECT list(item) FROM mine);
        SELECT count(*) FROM dphh_counts('reviews', of := getvariable('words'),
            epsilon := 0.05, delta := 1e-8);
        SET VARIABLE run = (SELECT any_value(run_id) FROM dphh_releases() WHERE verb = 'items');
        SELECT reason FROM dphh_why(getvariable('run'), 'emu');
        """,
    )
    said = ["cat,1", "dog,1", "5", "3", "3", "below"]
    assert spent.stdout.splitlines()[-6:] == said, spent.stderr
    assert len(place.ledger.runs()) == runs + 3


@pytest.mark.usefixtures("_shell")
def test_refusals_are_errors_of_the_shell_in_dphhs_own_words(place):
    refused = {
        "dphh_items('letters', epsilon := 0.1, delta := 1e-8)": "found no corpus 'letters' of you",
        "dphh_items('reviews', epsilon := '1&x=1', delta := 1)": "epsilon: found '1&x=1'",
        "dphh_options('itmes')": "verb: found 'itmes'",
        "dphh_items()": "corpus: is missing",
        "dphh_items('reviews', user_column := 'x')": "user_column: how a corpus is read, and who",
    }
    for condition in ("", " WHERE COLUMNS(*)::VARCHAR LIKE 'D%'"):
        asked = "".join(f"SELECT count(*) FROM {each}{condition};\n" for each in refused)
        told = stock_shell(place, f".bail off\n{asked}")
        assert told.stderr.count("Invalid Input Error: ") == len(refused)
        assert [said for said in refused.values() if said not in told.stderr] == []
    place.tokens["nobody"] = "not-in-force"
    nobody = stock_shell(place, "FROM dphh_ledger();", "nobody")
    assert nobody.returncode == 1 and "Not authorised: send a token" in nobody.stderr


def test_dphh_shell_has_what_connect_has(own):
    failed = run(own, "shell", "-c", "SELECT 1 AS one; FROM dphh_items()", "--csv")
    assert (failed.returncode, failed.stdout) == (1, "one\n1\n")
    assert "corpus: is missing; give it, as in FROM dphh_items(corpus, ...)" in failed.stderr
    unfit = run(own, "shell", "-c", "FROM dphh_plan_items('letters', user := 'who')")
    assert "user_column := NULL" in unfit.stderr and "FROM dphh_options('items');" in unfit.stderr
    file, out = own.folder / "letters.parquet", own.folder / "out"
    typed = f"""
        SELECT corpus FROM dphh_ledger();
        CREATE VIEW few AS FROM '{file}' WHERE who <> 'u0';
        CREATE TABLE found AS FROM dphh_items('few', user_column := 'who', text_column := 'what',
            account := 'letters', where_rows := 'length(who) > 2', epsilon := 0.5, delta := 1e-8);
        SELECT len(list(item)) AS items FROM found;
        SELECT count(*) AS "in" FROM dphh_counts('letters', of := (SELECT list(item) FROM found),
            epsilon := 0.05, delta := 1e-8);
        SET VARIABLE run = (SELECT run_id FROM dphh_releases() LIMIT 1);
        SELECT count(*) AS files FROM dphh_save(getvariable('run'), '{out}');
        SELECT count(*) = 1 AS paid FROM dphh_verify('{out}') WHERE what = 'account';
        SELECT groups FROM dphh_declare_groups('letters', 'what', ['the cat sat']);
    """
    done = run(own, "shell", "--csv", typed=typed)
    assert done.returncode == 0, done.stderr
    said = "corpus reviews letters items 5 in 5 files 2 paid true groups"
    assert done.stdout.split()[:12] == said.split(), done.stdout
    assert done.stdout.splitlines()[-1] == '"{""what"": [""the cat sat""]}"'


def test_ctrl_c_ends_a_statement_of_the_shell_and_not_the_shell(own):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["DPHH_LEDGER"] = str(own.ledger.path)
        os.execv(sys.executable, [*DPHH, "shell"])
    heard = b""

    def until_heard(words: bytes) -> None:
        nonlocal heard
        while words not in heard:
            heard += os.read(terminal, 4096)
        heard = heard.partition(words)[2]

    until_heard(b"dphh> ")
    os.write(terminal, b"SELECT 1 +\n")
    until_heard(b"...> ")
    time.sleep(0.5)  # Python's readline misses a signal between its prompt and its wait
    os.write(terminal, b"\x03")
    until_heard(b"interrupted; what is paid stays paid")
    until_heard(b"dphh> ")
    os.write(terminal, b"FROM nothing;\n")
    until_heard(b"Catalog Error: Table with name nothing does not exist")
    os.write(terminal, b"SELECT 41 + 1 AS sum;\nexit\n")
    until_heard(b"    42 ")
    with suppress(OSError):  # a terminal that has ended is no file that ends
        while os.read(terminal, 4096):
            pass
    assert os.waitpid(pid, 0)[1] == 0
