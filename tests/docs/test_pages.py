"""Pages for users do what they say, from the first line to the last."""

from __future__ import annotations

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
    asked = {"id": range(900), "query": [("soup", "cold soup")[who % 2] for who in range(900)]}
    pl.DataFrame(asked).write_parquet(tmp_path / "queries.parquet")


@pytest.mark.usefixtures("reviews")
def test_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    running = Running()
    with same_noise():
        for what in shown(text):
            running.run(what)
    assert {"counted", "plan", "con"} <= running.names.keys()
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
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = list(shown(text.partition("\n## Spark\n")[0]))
    running = Running(**given)
    with same_noise():
        for what in blocks:
            running.run(what)
    assert blocks


PAGES = (
    "index", "tutorial", "budget", "why-not-found", "weekly", "choose", "prior",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    running = Running()
    said = 0
    with same_noise():
        for what in shown((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
            printed = running.run(what)
            if what.printed is not None:
                said += 1
                assert alike(printed, what.printed), f"line {what.line}:\n{printed}"
    assert said


@pytest.mark.usefixtures("reviews")
@pytest.mark.filterwarnings("ignore")
def test_the_spark_page_runs(spark, tmp_path, monkeypatch, ledger):
    monkeypatch.chdir(tmp_path)
    spark.read.parquet(str(tmp_path / "reviews")).createOrReplaceTempView("reviews")
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8").partition("\n## Spark\n")[2]
    blocks = list(shown(text.replace("s3a://bucket", str(tmp_path))))
    running = Running(spark=spark)
    for what in blocks:
        running.run(what)
        assert running.names["release"].manifest["engine"]["name"] == "spark"
    assert len(blocks) == 2
