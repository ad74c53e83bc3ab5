"""The files behind a real Spark's frames: which they are, and that they pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dphh import BudgetRefused, Corpus, Ledger, items
from dphh.ledger.corpora import unseen
from dphh.ledger.origins import origin_of
from dphh.lineage.origin import Origin

pytestmark = pytest.mark.usefixtures("spark")
READ = {"user": "who", "text": "what"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "one.parquet"
    path.parent.mkdir()
    pl.DataFrame({"who": [*range(300)], "what": ["a b"] * 300}).write_parquet(path)
    return path


def rows(spark: Any) -> Any:
    return spark.createDataFrame([(7, "x")], ["who", "what"])


def cached(spark: Any, path: Path) -> Any:
    return spark.read.parquet(str(path)).cache()


def by_sql(spark: Any, path: Path) -> Any:
    spark.read.parquet(str(path)).createOrReplaceTempView("of_file")
    both = "WITH some AS (SELECT * FROM of_file) SELECT a.* FROM some a JOIN some b USING (who)"
    return spark.sql(both)


def of_a_glob(spark: Any, path: Path) -> Any:
    return spark.read.parquet(f"{path.parent}/*.parquet").filter("who > 5")


def by_arrow(spark: Any, path: Path) -> Any:
    frame = spark.read.parquet(str(path))
    return frame.mapInArrow(lambda batches: batches, frame.schema)


def by_the_newer_reader(spark: Any, path: Path) -> Any:
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        return spark.read.parquet(str(path))
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


FRAMES = [cached, by_sql, of_a_glob, by_arrow, by_the_newer_reader]


@pytest.mark.parametrize("make", FRAMES)
def test_the_files_of_a_frame_are_told(spark: Any, path: Path, make: Any) -> None:
    frame = make(spark, path)
    assert origin_of(Corpus(frame, **READ)) == Origin((f"file://{path}",), True)
    assert unseen(Corpus(frame, **READ)) is None
    frame.unpersist()


def beside_rows(spark: Any, path: Path) -> Any:
    return spark.read.parquet(str(path)).union(rows(spark))


def among_rows(spark: Any, path: Path) -> Any:
    rows(spark).createOrReplaceTempView("of_rows")
    spark.read.parquet(str(path)).createOrReplaceTempView("of_file")
    return spark.sql("SELECT * FROM of_file WHERE who IN (SELECT who FROM of_rows)")


@pytest.mark.parametrize("make", [beside_rows, among_rows])
def test_rows_from_elsewhere_beside_them_are_told_too(spark: Any, path: Path, make: Any) -> None:
    corpus = Corpus(make(spark, path), **READ)
    assert origin_of(corpus) == Origin((f"file://{path}",), False)
    assert "not all files" in str(unseen(corpus))


@pytest.mark.parametrize(
    "make", [rows, lambda spark: spark.createDataFrame(rows(spark).rdd, "who long, what string")]
)
def test_of_rows_alone_it_is_said_that_nothing_is_known_and_they_are_refused_unnamed(
    spark: Any, make: Any, path: Path, ledger: Ledger
) -> None:
    corpus = Corpus(make(spark), **READ)
    assert origin_of(corpus) == Origin()
    assert unseen(corpus) is not None
    ledger.add("data", Corpus(path, **READ), epsilon=1.0, delta=1e-6)
    plan = items(corpus, epsilon=0.1, delta=1e-7)
    assert plan.privacy.row_wise == "assumed"
    with pytest.raises(BudgetRefused, match="cannot be told"):
        plan.run(ledger=ledger)


def test_a_frame_pays_for_its_files_and_is_refused_with_them(
    spark: Any, path: Path, ledger: Ledger
) -> None:
    ledger.add("data", Corpus(path, **READ), epsilon=1.0, delta=1e-6)
    items(Corpus(path, **READ), epsilon=0.8, delta=8e-7).run(ledger=ledger)
    frame = cached(spark, path)
    assert "data" in items(Corpus(frame, **READ), epsilon=0.8, delta=8e-7).describe(ledger)
    with pytest.raises(BudgetRefused, match="'data'"):
        items(Corpus(frame.filter("who > 5"), **READ), epsilon=0.9, delta=9e-7).run(ledger=ledger)
    assert ledger.status("data").runs == 1
    frame.unpersist()
