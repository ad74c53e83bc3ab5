"""dphh's macros in other people's tools, as docs/engines.md says, where they are installed."""

import subprocess
import sys
import warnings
from typing import Any

import duckdb
import polars as pl
import pytest

import dphh

COLUMNS = "user_column := 'who', text_column := 'what', epsilon := 1.0, delta := 1e-6"


@pytest.fixture
def asked(written, ledger):
    rows = [(f"u{n}", "the cat sat" if n % 3 else "the dog ran") for n in range(600)]
    (path,) = written(rows).where
    ledger.add("cats", dphh.Corpus(path, user="who", text="what"), 10.0, 1e-4)
    return f"SELECT item, users FROM dphh_items('{path}', {COLUMNS})"


@pytest.mark.parametrize("file", [False, True])
def test_sqlalchemy(asked, ledger, tmp_path, file):
    pytest.importorskip("duckdb_engine")
    from sqlalchemy import create_engine, event, text

    engine = create_engine(f"duckdb:///{tmp_path / 'own.duckdb'}" if file else "duckdb:///:memory:")

    @event.listens_for(engine, "connect")
    def add_macros(connection: Any, _: Any) -> None:
        dphh.register(connection, ledger)

    for _ in range(2):
        with engine.connect() as con:
            assert len(con.execute(text(asked)).all()) == 5
    assert len(ledger.runs()) == 1


def test_harlequin(asked, ledger, monkeypatch):
    pytest.importorskip("harlequin_duckdb")
    from dphh.asking.harlequin import Adapter

    monkeypatch.setenv("DPHH_LEDGER", str(ledger.path))
    con = Adapter((":memory:",), no_init=True).connect()
    for _ in range(2):
        found = con.execute(asked).set_limit(3).fetchall()
        assert len(found) == 3
    assert len(ledger.runs()) == 1


def test_ibis(asked, ledger):
    ibis = pytest.importorskip("ibis")
    con = ibis.duckdb.connect()
    if not hasattr(con.con, "fetch_arrow_table"):
        pytest.skip("this Ibis needs DuckDB 1")
    dphh.register(con.con, ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = con.sql(asked)
        assert set(found.filter(found.users > 350).to_polars()["item"]) == {"the", "cat", "sat"}
    assert len(ledger.runs()) == 1


def test_dbt(asked, ledger, tmp_path):
    pytest.importorskip("dbt.adapters.duckdb")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "words.sql").write_text(
        "{{ config(materialized='table') }}\n" + asked, encoding="utf-8"
    )
    (tmp_path / "dbt_project.yml").write_text("name: cats\nprofile: cats\n", encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(
        f"""
cats:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: {tmp_path / "own.duckdb"}
      plugins:
        - module: dphh.asking.dbt
          config: {{ledger: {ledger.path}}}
""",
        encoding="utf-8",
    )
    run = [sys.executable, "-m", "dbt.cli.main", "run", "--profiles-dir", ".", "--no-version-check"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert len(ledger.runs()) == 1
    with duckdb.connect(str(tmp_path / "own.duckdb")) as con:
        assert len(con.execute("FROM words").fetchall()) == 5


def test_marimo(asked, ledger):
    marimo = pytest.importorskip("marimo")
    con = dphh.connect(ledger=ledger)
    assert set(pl.DataFrame(marimo.sql(asked, output=False, engine=con))["item"]) >= {"the", "cat"}
    assert len(ledger.runs()) == 1
