"""What dphh refuses, in its own words: refusals.txt is to be read from top to bottom.

After a change of words, `DPHH_WRITE_REFUSALS=1 pytest tests/unit/test_refusals.py` writes it anew:
read what changed. Each says what was found and the one thing to do, in the language of who asks.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

import dphh
from dphh import DphhError, Ledger
from dphh.cli import _message_of, cli

WORDS = Path(__file__).with_name("refusals.txt")
COST = {"epsilon": 1, "delta": 1e-7}
#: What the calls of refusals.txt name, beside what is public.
NAMES = {
    "cost": COST,
    "dpne": {**COST, "max_n": 3, "method": "dpne"},
    "path": {"epsilon": 1, "delta": 1e-8, "max_length": 10},
    "reports": {
        "local_epsilon": 4.0, "delta": 1e-6, "users_per_level": 2_000, "contributions": 2,
        "max_length": 3, "keep": 50, "character_set": "abc",
    },
    "stream": pl.DataFrame({"who": [1], "what": ["a"]}).to_arrow().to_reader(),
    "pairs": dphh.Corpus("a.parquet", user=["who", "where"], text="what"),
    "rows": pl.DataFrame({"who": [None], "what": ["a"]}),
    "duckdb": duckdb, "inf": math.inf, "nan": math.nan,
    **{name: getattr(dphh, name) for name in dphh.__all__},
}  # fmt: skip


def test_refusals_are_those_that_a_person_has_read(tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPHH_LEDGER", str(ledger.path))
    monkeypatch.setenv("COLUMNS", "100")
    pl.DataFrame({"who": range(300), "what": ["a b"] * 300}).write_parquet("held.parquet")
    pl.DataFrame({"who": [None], "what": ["a"]}).write_parquet("rows.parquet")
    held = dphh.Corpus("held.parquet", user="who", text="what")
    ledger.add("held", held, 4.0, 1e-5)
    spent = dphh.items(held, **COST, max_items=3).run(ledger=ledger)
    runs = ledger.runs()
    refusal = {
        "In Python": _in_python(held, spent),
        "In SQL": _in_sql(ledger),
        "On the command line": _on_the_command_line,
    }
    said = ""
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line in refusal:
            refused = refusal[line]
        if line.startswith("    "):
            continue
        is_call = line and line not in refusal
        said += f"{line}\n" + (f"    {refused(line)}\n" if is_call else "")
    said = said.replace(str(tmp_path.resolve()), "FOLDER")
    if os.environ.get("DPHH_WRITE_REFUSALS"):
        WORDS.write_text(said, encoding="utf-8")
    assert said == WORDS.read_text(encoding="utf-8")
    assert ledger.runs() == runs  # nothing was spent


def _in_python(held: dphh.Corpus, release: dphh.Release) -> Callable[[str], str]:
    plan = dphh.items(held, **COST)
    names = {**NAMES, "held": held, "release": release, "plan": plan}

    def refusal(call: str) -> str:
        with pytest.raises(DphhError) as told:
            eval(call, names)
        return f"{type(told.value).__name__}: {told.value}"

    return refusal


def _in_sql(ledger: Ledger) -> Callable[[str], str]:
    con: Any = dphh.connect(ledger=ledger)
    con.execute("CREATE TABLE rows AS FROM 'rows.parquet'")

    def refusal(query: str) -> str:
        with pytest.raises(duckdb.InvalidInputException) as told:
            con.execute(query)
        return str(told.value)

    return refusal


def _on_the_command_line(arguments: str) -> str:
    problem: Any = CliRunner().invoke(cli, arguments.split(), standalone_mode=False).exception
    return f"exit {problem.exit_code}: {_message_of(problem)}"
