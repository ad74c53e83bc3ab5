"""The stock DuckDB shell, over a gateway elsewhere and its own; and commands of `dphh serve`."""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dphh import Ledger
from dphh.asking.clients import init_sql
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
    from dphh.cli.shell import _httpfs_file, _shell_program

    init = place.folder / f"{who}.sql"
    init.write_text(init_sql(place.address, place.tokens[who], f"LOAD '{_httpfs_file()}';"))
    return said([_shell_program(), "-init", str(init), "-csv", "-noheader"], typed)


def test_add_analyst_prints_the_token_once_and_what_to_do_with_it(own):
    asked = ("--corpus", "reviews", "--epsilon", "1", "--delta", "1e-6")
    given = run(own, "serve", "add-analyst", "carol", *asked, "--address", "https://dphh.example/")
    assert given.returncode == 0, given.stderr
    (token,) = {*re.findall(r"BEARER_TOKEN '([^']+)'", given.stdout)}
    assert own.ledger.analyst_with(token) == "carol"
    assert "SCOPE 'https://dphh.example/'" in given.stdout
    assert "'https://dphh.example/v1/ngrams'" in given.stdout and "curl -H" in given.stderr
    file = own.folder / "dave.sql"
    to_file = run(own, "serve", "add-analyst", "dave", *asked, "--out", str(file))
    assert to_file.stdout == "" and file.stat().st_mode & 0o777 == 0o600
    (token_of_dave,) = {*re.findall(r"BEARER_TOKEN '([^']+)'", file.read_text())}
    assert own.ledger.analyst_with(token_of_dave) == "dave"
    again = run(own, "serve", "add-analyst", "dave", *asked, "--new-token", "--out", str(file))
    assert again.returncode == 2 and "give a file that is not there yet" in again.stderr
    assert own.ledger.analyst_with(token_of_dave) == "dave"
    higher = run(own, "serve", "add-analyst", "carol", *asked[:3], "2", *asked[4:])
    assert higher.returncode == 2 and "--yes confirms it" in higher.stderr
    lower = run(own, "serve", "add-analyst", "carol", *asked[:5], "1e-7", "--yes")
    assert lower.returncode == 0 and "has spent more" not in lower.stderr
    ask(Ledger(own.ledger.path, "carol"), "run", own.corpus, 0.5, account="reviews")
    below = run(own, "serve", "add-analyst", "carol", *asked[:3], "0.4", "--delta", "1e-7")
    assert "carol has spent more than that already" in below.stderr
    new = run(own, "serve", "add-analyst", "carol", *asked, "--new-token", "--yes")
    assert own.ledger.analyst_with(token) is None and "BEARER_TOKEN" in new.stdout
    assert "carol  reviews: a share of (1, 1e-06)" in run(own, "serve", "show").stdout
    assert run(own, "serve", "remove-analyst", "carol").returncode == 0
    assert "no token in force" in run(own, "serve", "show").stdout


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
        """,
    )
    assert spent.stdout.splitlines()[-4:] == ["cat,1", "dog,1", "5", "3"], spent.stderr
    assert len(place.ledger.runs()) == runs + 2


@pytest.mark.usefixtures("_shell")
def test_refusals_are_errors_of_the_shell_in_dphhs_own_words(place):
    refused = {
        "dphh_items('letters', epsilon := 0.1, delta := 1e-8)": "found no corpus 'letters' of you",
        "dphh_items('reviews', epsilon := '1&x=1', delta := 1)": "epsilon: found '1&x=1'",
        "dphh_options('itmes')": "verb: found 'itmes'",
    }
    asked = "".join(f"SELECT count(*) FROM {each};\n" for each in refused)
    told = stock_shell(place, f".bail off\n{asked}")
    assert told.stderr.count("Invalid Input Error: ") == len(refused)
    assert [said for said in refused.values() if said not in told.stderr] == []
    place.tokens["nobody"] = "not-in-force"
    nobody = stock_shell(place, "FROM dphh_ledger();", "nobody")
    assert nobody.returncode == 1 and "Not authorised: send a token" in nobody.stderr


@pytest.mark.usefixtures("_shell")
def test_dphh_shell_has_all_of_its_owners_corpora_and_ends_with_the_shell(own):
    typed = """
        SELECT corpus FROM dphh_ledger();
        SELECT count(*) FROM dphh_items('letters', epsilon := 0.5, delta := 1e-8);
        SELECT count(*) FROM dphh_releases();
    """
    done = run(own, "shell", "--", "-csv", "-noheader", typed=typed)
    assert (done.returncode, done.stdout.split()) == (0, ["reviews", "letters", "5", "1"]), (
        done.stderr
    )
    failed = run(own, "shell", typed="FROM dphh_items('nothing', epsilon := 1, delta := 1e-8);")
    assert failed.returncode == 1 and "found no corpus 'nothing'" in failed.stderr
    assert not [*Path(tempfile.gettempdir()).glob("dphh-shell-*")]
