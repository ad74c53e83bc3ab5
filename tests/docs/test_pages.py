"""Pages do what they say, from the first line to the last, and jobs as their schedulers do."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest

import dphh
from tests.docs.pages import ROOT, Running, alike, same_noise, shown


@pytest.fixture
def reviews(tmp_path):
    """The corpora that README names, small."""
    said = ["see you later", "thank you very much", "the soup is cold and late"]
    rows = {
        "author": range(900),
        "body": [said[who % 3] for who in range(900)],
        "country": [("DE", "FR")[who % 2] for who in range(900)],
    }
    for folder in ("reviews", "messages"):
        (tmp_path / folder).mkdir()
        pl.DataFrame(rows).write_parquet(tmp_path / folder / "1.parquet")
    chinese = ["我没有收到订单。很慢", "你好！没有收到订单", "没有收到订单，谢谢"]
    pl.DataFrame(
        {"user": range(900), "body": [chinese[who % 3] for who in range(900)]}
    ).write_parquet(tmp_path / "chinese.parquet")
    sheet = "Kunden Nr.;Datum;Freitext\r\n" + "".join(
        f'{who or ""};{who % 28 + 1:02}.11.2026;"Die Lieferung; war\r\nzu spät"\r\n'
        for who in range(1_800)
    )
    (tmp_path / "export.csv").write_text(sheet, encoding="utf-8-sig", newline="")
    asked = {"id": range(900), "query": [("soup", "cold soup")[who % 2] for who in range(900)]}
    pl.DataFrame(asked).write_parquet(tmp_path / "queries.parquet")


def page_of(name):
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def ran(text, compare=False, **given):
    """All that a page shows is run; what it prints is compared with what the page says."""
    running = Running(**given)
    with same_noise():
        for what in shown(text):
            printed = running.run(what)
            if compare and what.printed is not None:
                assert alike(printed, what.printed), f"line {what.line}:\n{printed}"
    return running


@pytest.mark.usefixtures("reviews")
def test_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"counted", "plan", "con"} <= ran(text).names.keys()
    assert (tmp_path / "out" / "release.json").exists()
    assert len(text.splitlines()) < 150


@pytest.mark.usefixtures("reviews")
@pytest.mark.parametrize("page", ["corpus", "engines", "plain-sql", "report"])
def test_snippets_of_a_page_run(page, tmp_path, monkeypatch, ledger):
    """Of pages whose blocks say what they mean of things that the reader has: all run."""
    monkeypatch.chdir(tmp_path)
    con = duckdb.connect()
    con.sql("CREATE VIEW visits AS SELECT 1 AS u, 'home' AS pages")
    messages = pl.read_parquet("messages/1.parquet")
    messages.with_columns(lang=pl.lit("en")).write_parquet("messages/1.parquet")
    corpus = dphh.Corpus(messages, user="author", text="body")
    release = dphh.ngrams(corpus, max_n=3, epsilon=4.0, delta=1e-4).run()
    given = {
        "con": con,
        "corpus": corpus,
        "counted": dphh.counts(corpus, of=release, epsilon=1.0, delta=1e-6).run(),
        "dphh": dphh,
        "frame": pl.DataFrame({"id": [1], "tags": [["a"]]}),
        "ledger": ledger,
        "pl": pl,
        "public_menu": pl.DataFrame({"dish": ["soup"]}),
        "release": release,
    }
    ran(page_of(page).partition("\n## Spark\n")[0], **given)
    if page == "corpus":
        (row,) = pl.read_csv("found.csv", separator=";").drop_nulls("phrase").to_dicts()
        assert row["phrase"] == "die lieferung war zu spät"
        assert row["low"] <= sum(who % 28 >= 7 for who in range(1, 1_800)) <= row["high"]


@pytest.mark.parametrize(
    "page",
    [
        *("index", "budget", "why-not-found", "weekly", "choose", "prior"),
        pytest.param("tutorial", marks=pytest.mark.slow),
    ],
)
def test_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    ran(page_of(page), compare=True)


@pytest.mark.usefixtures("reviews")
@pytest.mark.filterwarnings("ignore")
def test_the_spark_page_runs(spark, tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    spark.read.parquet(str(tmp_path / "reviews")).createOrReplaceTempView("reviews")
    text = page_of("engines").partition("\n## Spark\n")[2]
    blocks = list(shown(text.replace("s3a://bucket", str(tmp_path))))
    running = Running(spark=spark)
    for what in blocks:
        running.run(what)
        assert running.names["release"].manifest["engine"]["name"] == "spark"
    assert len(blocks) == 2


JOBS = page_of("weekly").partition("\n## From cron, Airflow, Dagster or dbt\n")[2]


@pytest.fixture
def nightly(tmp_path):
    """Two weeks under one cap, which is enough for one of them; and the page's words for here."""
    # So many users that chance loses no phrase.
    rows = {"who": range(4_000), "what": ["see you later"] * 4_000}
    for week in ("47", "48"):
        pl.DataFrame(rows).write_parquet(tmp_path / f"week-{week}.parquet")
    corpus = dphh.Corpus(tmp_path / "week-*.parquet", user="who", text="what")
    book = dphh.Ledger(tmp_path / "ledger.db")
    book.add("remarks", corpus, 0.5, 1e-7)
    return book, lambda text: text.replace("/srv/notes", str(tmp_path))


#: A scheduler is not installed: its names are given, and its task is called as a function.
SCHEDULERS = {
    "airflow": SimpleNamespace(
        task=lambda **_: lambda task: task, AirflowFailException=RuntimeError
    ),
    "dagster": SimpleNamespace(
        asset=lambda **_: (
            lambda task: lambda week: task(SimpleNamespace(partition_key=week)).metadata["folder"]
        ),
        WeeklyPartitionsDefinition=lambda start, day_offset: start,
        RetryPolicy=dict,
        MaterializeResult=SimpleNamespace,
        Failure=lambda said, allow_retries: RuntimeError(f"{said} {allow_retries}"),
    ),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_scheduler_publishes_a_week_once(scheduler, nightly, monkeypatch, caplog):
    book, here = nightly
    for name in ("airflow", "airflow.sdk", "airflow.sdk.exceptions", "dagster"):
        monkeypatch.setitem(sys.modules, name, SCHEDULERS[scheduler])
    publish, *tasks = re.findall("```text\n(.*?)```", JOBS, re.DOTALL)
    names: dict = {}
    exec(here(publish), names)
    exec(next(task for task in tasks if scheduler in task), names)
    caplog.set_level("INFO", "dphh")
    for _ in range(2):
        assert "see" in {row["item"] for row in dphh.Release.load(names["phrases"]("47"))}
    (run,) = book.runs("remarks")
    assert run.run_id == "week-47"
    assert "level 1: 3 released" in caplog.messages
    with pytest.raises(RuntimeError, match="Refused"):
        names["phrases"]("48")


@pytest.mark.slow  # it starts processes
def test_cron_publishes_a_week_once(nightly, tmp_path, monkeypatch):
    book, here = nightly
    (script,) = re.findall("```sh\n(.*?)```", JOBS, re.DOTALL)
    for name, text in {
        "publish": here(script),
        "dphh": f'#!/bin/sh\nexec {sys.executable} -m dphh "$@"\n',
        "date": "#!/bin/sh\necho $WEEK\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "log").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for week, code in (("47", 0), ("47", 0), ("48", 3)):
        monkeypatch.setenv("WEEK", week)
        done = subprocess.run([tmp_path / "publish"], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert "The budget of remarks is used up" in done.stderr
    assert [run.run_id for run in book.runs("remarks")] == ["week-47"]
    assert json.loads((tmp_path / "log" / "47.json").read_text())["spent"] is False
    assert dphh.Release.load(tmp_path / "out" / "47").run_id == "week-47"
