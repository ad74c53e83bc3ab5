"""What dphh refuses, in its own words: refusals.txt is to be read from top to bottom.

After a change of words, `DPHH_WRITE_REFUSALS=1 pytest tests/unit/test_refusals.py` writes it anew:
read what changed. Each says what was found and the one thing to do, in the language of who asks.
"""

from __future__ import annotations

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

PYTHON = """
Corpus("a.parquet", usr="u", text="t")
Corpus("a.parquet", text="t")
Corpus("a.parquet", "u", text="t")
Corpus("a.parquet", user="u")
Corpus("a.parquet", user="", text="t")
Corpus("a.parquet", user="u", text=3)
Corpus("a.parquet", user="u", text="t", as_="sentences")
Corpus("a.parquet", user="u", text="t", lower="yes")
Corpus("a.parquet", user="u", text="t", split="")
Corpus("a.parquet", user="u", text="t", split="white space", as_="whole")
Corpus("a.parquet", user="u", text="t", strip=None)
Corpus("a.parquet", user="u", text="t", too_long="cry")
Corpus("a.parquet", user="u", text="t", max_text_length=2**31)
Corpus("a.parquet", user="u", text="t", max_token_length=1.5)
Corpus("a.parquet", user="u", text="t", account=3)
Corpus("a.parquet", user="u", text="t", connection="any")
Corpus("", user="u", text="t")
Corpus([], user="u", text="t")
Corpus({"a": 1}, user="u", text="t")
Corpus("~no-such-user-here/x.parquet", user="u", text="t")
items(epsilom=1, delta=1e-8)
items(epsilon=1, delta=1e-8, keys=["a"])
items(epsilon=0, delta=1e-8)
items(epsilon=1, delta=2)
items(epsilon=1, delta=1e-8, max_items=0)
items(epsilon=1, delta=1e-8, method="sip")
items(Corpus("held.parquet", user="who", text="what", keep="("), epsilon=1, delta=1e-8).run()
items(Corpus("none.parquet", user="u", text="t"), epsilon=1, delta=1e-8).run()
items(Corpus(frame, user="person", text="what"), epsilon=1, delta=1e-8).run()
items(Corpus(frame, user="who", text="what"), epsilon=1, delta=1e-8).run()
items(Corpus(frame, user="who", text="what", account="typo"), epsilon=1, delta=1e-8).run()
items(held, epsilon=99, delta=1e-8).run()
ngrams(epsilon=1)
counts(held, of=plan, epsilon=1, delta=1e-8)
counts(held, of=["no such file"], by=3, epsilon=1, delta=1e-8)
connect(leger="x")
Ledger().add("x", "x.parquet", 1, 0)
plan.run(corpus="x.parquet")
plan.run(run_id=7)
plan.run(threads="2")
plan.run(progress=True)
plan.run(randomness=5)
plan.run(ledger=3)
frame.dphh.items(user="who", tokens="what", epsilon=1, delta=1e-8)
"""

SQL = """
FROM dphh_items('nothing', epsilon := 1, delta := 1e-6)
FROM dphh_items('held', epsilon := 99, delta := 1e-6)
FROM dphh_items('held', epsilon := 1)
FROM dphh_items('held', epsilon := 'much', delta := 1e-6)
FROM dphh_items('held', lower := true, epsilon := 1, delta := 1e-6)
FROM dphh_items(NULL, epsilon := 1, delta := 1e-6)
FROM dphh_plan_items('rows', user_column := 'person', text_column := 'what', epsilon := 1, delta := 1e-6)
FROM dphh_items('rows', user_column := 'who', text_column := 'what', epsilon := 1, delta := 1e-6)
FROM dphh_options('itmes')
FROM dphh_release('none')
"""  # noqa: E501

COMMANDS = """
ngram held.parquet
items held.parquet --user who --text what
items held.parquet --epsilon 1 --delta 1e-7
items held.parquet --user who --epsilon 1 --delta 1e-7
items held.parquet --user who --text what --epsilon 2 --delta 1e-7 --memory-limit much
items held.parquet --user person --text what --epsilon 1 --delta 1e-7
items rows.parquet --user who --text what --epsilon 1 --delta 1e-7
items held --lower --epsilon 1 --delta 1e-7
ledger show nobody
ledger add a held.parquet --epsilon 1 --delta 1e-7
ledger add held held.parquet --user who --text what --epsilon 1 --delta 1e-7
ledger export x.txt
"""


def test_refusals_are_those_that_a_person_has_read(tmp_path, monkeypatch, ledger) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPHH_LEDGER", str(ledger.path))
    monkeypatch.setenv("COLUMNS", "100")
    pl.DataFrame({"who": range(300), "what": ["a b"] * 300}).write_parquet("held.parquet")
    pl.DataFrame({"who": [None], "what": ["a"]}).write_parquet("rows.parquet")
    held = dphh.Corpus("held.parquet", user="who", text="what")
    ledger.add("held", held, 4.0, 1e-5)
    spent = dphh.items(held, epsilon=1, delta=1e-7).run(ledger=ledger)
    runs = ledger.runs()
    said = [
        *_told("In Python", PYTHON, _in_python(held, spent)),
        *_told("In SQL", SQL, _in_sql(ledger)),
        *_told("On the command line", COMMANDS, _on_the_command_line),
    ]
    text = "\n".join(said).replace(str(tmp_path.resolve()), "FOLDER")
    if os.environ.get("DPHH_WRITE_REFUSALS"):
        WORDS.write_text(text, encoding="utf-8")
    assert text == WORDS.read_text(encoding="utf-8")
    assert ledger.runs() == runs  # nothing was spent


def _told(where: str, asked: str, refusal: Callable[[str], str]) -> list[str]:
    found = [f"{each}\n    {refusal(each)}\n" for each in asked.strip().splitlines()]
    return [f"{where}\n", *found]


def _in_python(held: dphh.Corpus, release: dphh.Release) -> Callable[[str], str]:
    frame = pl.DataFrame({"who": [None], "what": ["a"]})
    plan = dphh.items(held, epsilon=1.0, delta=1e-8)
    names = {name: getattr(dphh, name) for name in dphh.__all__}
    names |= {"held": held, "release": release, "frame": frame, "plan": plan, "pl": pl}

    def refusal(call: str) -> str:
        with pytest.raises(DphhError) as told:
            eval(call, names)
        return f"{type(told.value).__name__}: {told.value}"

    return refusal


def _in_sql(ledger: Ledger) -> Callable[[str], str]:
    con: Any = dphh.connect(ledger)
    con.execute("CREATE TABLE rows AS FROM 'rows.parquet'")

    def refusal(query: str) -> str:
        with pytest.raises(duckdb.InvalidInputException) as told:
            con.execute(query)
        return str(told.value)

    return refusal


def _on_the_command_line(arguments: str) -> str:
    problem: Any = CliRunner().invoke(cli, arguments.split(), standalone_mode=False).exception
    return f"exit {problem.exit_code}: {_message_of(problem)}"
