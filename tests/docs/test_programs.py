"""The page for jobs: its model of dbt is called as dbt calls it, its commands as cron does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")


def test_the_model_gives_one_release_however_often_dbt_runs(tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    Path("reviews").mkdir()
    rows = {"author": range(400), "body": ["see you later"] * 400}
    pl.DataFrame(rows).write_parquet("reviews/1.parquet")
    (code,) = re.findall("```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict = {}
    exec(code, names)

    class Dbt:
        def config(self, **_):
            return None

    with duckdb.connect() as session:
        for _ in range(2):
            made = names["model"](Dbt(), session)
            session.register("made", made)
            session.execute("CREATE OR REPLACE TABLE phrases AS FROM made")
        (found,) = session.execute("SELECT count(*) FROM phrases WHERE level = 1").fetchone()
    assert found == 3
    assert len(ledger.runs()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a script of sh")
def test_the_script_of_cron_is_sh():
    (script,) = re.findall("```sh\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_what_the_task_of_airflow_imports_is_there():
    import dphh
    from dphh.ledger.corpora import files_of_named, named_corpus

    for name in re.findall(r"dphh\.([A-Z]\w+)", PAGE):
        assert hasattr(dphh, name)
    assert callable(files_of_named) and callable(named_corpus)
