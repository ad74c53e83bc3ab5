"""Jobs, as a page shows them: its model is called as dbt calls it, its task as Airflow does."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest

import dphh

_WEEKLY = (Path(__file__).parents[2] / "docs" / "weekly.md").read_text(encoding="utf-8")
PAGE = _WEEKLY.partition("\n## From cron, Airflow or dbt\n")[2]


def test_the_model_gives_one_release_however_often_dbt_runs(tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    Path("reviews").mkdir()
    rows = {"author": range(400), "body": ["see you later"] * 400}
    pl.DataFrame(rows).write_parquet("reviews/1.parquet")
    (code,) = re.findall("```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict = {}
    exec(code, names)
    dbt = SimpleNamespace(config=lambda **_: None)
    with duckdb.connect() as session:
        for _ in range(2):
            made = names["model"](dbt, session)
            session.register("made", made)
            session.execute("CREATE OR REPLACE TABLE phrases AS FROM made")
        (found,) = session.execute("SELECT count(*) FROM phrases WHERE level = 1").fetchone()
    assert found == 3
    assert len(ledger.runs()) == 1


def test_the_task_of_airflow_publishes_a_week_once(tmp_path, monkeypatch):
    (code,) = re.findall("```text\n(from airflow.*?)```", PAGE, re.DOTALL)
    code = code.replace("/srv/notes", str(tmp_path))
    # So many users that chance loses no phrase: a run that finds less gives some of its price back.
    rows = {"who": range(4_000), "what": ["see you later"] * 4_000}
    for week in ("47", "48"):
        pl.DataFrame(rows).write_parquet(tmp_path / f"week-{week}.parquet")
    corpus = dphh.Corpus(tmp_path / "week-*.parquet", user="who", text="what")
    book = dphh.Ledger(tmp_path / "ledger.db")
    book.add("remarks", corpus, 0.5, 1e-7)

    # Airflow is not installed: its two names are given, and the task is called as a function.
    airflow = SimpleNamespace(task=lambda **_: lambda task: task, AirflowFailException=RuntimeError)
    for name in ("airflow", "airflow.decorators", "airflow.exceptions"):
        monkeypatch.setitem(sys.modules, name, airflow)
    names: dict = {}
    exec(code, names)
    for _ in range(2):
        assert "see" in {row["item"] for row in dphh.Release.load(names["publish"]("47"))}
    (run,) = book.runs("remarks")
    assert run.run_id == "week-47"
    with pytest.raises(RuntimeError, match="Refused"):
        names["publish"]("48")
