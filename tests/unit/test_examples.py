"""The examples run from end to end, at the smallest size."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import full

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["--users", "60", "--phrases", "500", "--words", "100"]


def run(script: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
    ).stdout


def test_the_reddit_like_corpus_is_the_same_every_time(tmp_path):
    texts = []
    for name in ("one.parquet", "two.parquet"):
        run("reddit_like.py", str(tmp_path / name), *SMALL)
        texts.append(duckdb.read_parquet(str(tmp_path / name)).fetchall())
    assert texts[0] == texts[1]
    assert 0 < len({author for author, _ in texts[0]}) <= 60
    assert all(body and body == " ".join(body.split()) for _, body in texts[0])


def test_conversations_are_told_by_what_many_people_share(tmp_path):
    """Every interval is around the truth, of those that are made up here, and no one's own label
    comes out. Of 24 intervals of 95% six or more miss once in 3,000 runs."""
    said = run("conversations.py", "--out", str(tmp_path), "--people", "3000")
    assert "refund not received" in said
    rows = pl.read_parquet(tmp_path / "conversations.parquet").explode("labels").unique()
    truth = rows.group_by("labels", "week").agg(pl.col("person").n_unique())
    shown = pl.read_csv(tmp_path / "by-week.csv").unpivot(index="item", variable_name="week")
    assert shown["item"].n_unique() == 6 and not shown["item"].str.contains("red house").any()
    found = shown.join(truth, left_on=["item", "week"], right_on=["labels", "week"], how="left")
    ends = found["value"].str.extract_groups(r"\((\d+) to (\d+)\)").struct
    held = (
        found["person"]
        .fill_null(0)
        .is_between(ends.field("1").cast(pl.Int64), ends.field("2").cast(pl.Int64))
    )
    assert held.not_().sum() < 6


def test_devices_that_vote_find_what_many_hold():
    said = run("federated/votes.py", "--devices", "600").splitlines()
    assert said[0].startswith("epsilon 4, delta 1e-06, a device")
    assert {"a.", "an.", "at.", "to."} <= set(said)


def test_devices_that_report_once_find_what_many_hold():
    said = run("federated/reports.py", "--devices-per-round", "1200").splitlines()
    assert said[0].startswith("a report: epsilon 6; published: ")
    found = dict(line.split(": ") for line in said[1:])
    for word in ("eat", "oat", "tea"):
        assert abs(int(found[word].split()[0]) - 400) < 6 * 30


def test_the_polars_pipeline_joins_its_release_to_public_data():
    said = run("polars_pipeline.py", "--people", "4000")
    assert "lentil soup" in said
    assert said.endswith("phrases in all, of 4,000 people\n")


@pytest.mark.slow
def test_texts_that_mislead_are_compared_with_none(tmp_path):
    texts = tmp_path / "texts.parquet"
    rows = [(user, "see you later" if user % 3 else "thank you") for user in range(800)]
    pl.DataFrame(rows, schema=["user_id", "text"], orient="row").write_parquet(texts)
    said = run("misleading_text.py", str(texts), "--runs", "1", "--epsilons", "4")
    rows_of_table = [line.split(" | ") for line in said.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows_of_table[1:]] == [
        "| none", "| as it is", "| backwards", "| its words shuffled", "| in another language",
        "| no word in common",
    ]  # fmt: skip


LONG = pytest.mark.skipif(not full(), reason="half a minute and more; with DPHH_FULL=1")
LADDER = "CORPUS --user author --text body --max-n 3"


@pytest.mark.slow
@pytest.mark.parametrize(
    "script, asked, made",
    [
        ("dpne_figures.py", "--quick --users 150", "figure-4.png table-3.csv ledger.sqlite"),
        ("public_text.py", "--users 2000 --runs 1 --epsilons 2,4", "found.png found.csv"),
        pytest.param("forecast_figures.py", LADDER, "figure-3.png", marks=LONG),
        pytest.param(
            "gboard_experiments.py",
            "--quick --users-per-level 4000",
            "figure-1.png table-1.csv",
            marks=LONG,
        ),
    ],
)
def test_published_figures_are_drawn(tmp_path, script, asked, made):
    pytest.importorskip("matplotlib")
    corpus = tmp_path / "corpus.parquet"
    run("reddit_like.py", str(corpus), "--users", "400", *SMALL[2:])
    run(script, *asked.replace("CORPUS", f"made-up={corpus}").split(), "--out", str(tmp_path))
    assert all((tmp_path / name).stat().st_size > 30 for name in made.split())


@pytest.mark.slow
def test_triehhs_experiments_run(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    asked = ("--quick", "--runs", "8", "--data", str(tmp_path), "--out", str(out))
    said = run("triehh_experiments.py", *asked)
    for name in ("05", "06", "07", "08", "09", "path", "sfp"):
        assert (out / f"figure-{name}.png").stat().st_size > 5000
        assert len((out / f"figure-{name}.csv").read_text().splitlines()) > 6
    # Sound whatever the corpus: the bound, and path beside paper.
    assert "Figure 5, epsilon 2: 0 of" in said
    with (out / "figure-path.csv").open() as file:
        pairs = list(csv.DictReader(file))
    for path, paper in zip(pairs[::2], pairs[1::2], strict=True):
        assert (path["accounting"], paper["accounting"]) == ("path", "paper")
        assert 10 < float(paper["worst case"]) / float(path["worst case"]) < 25


@pytest.mark.slow
def test_triehhs_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    said = run("triehh_figures.py", "--out", str(tmp_path))
    drawn = sorted(path.name for path in tmp_path.glob("*.png"))
    assert drawn == [f"figure-{number:02d}.png" for number in (2, 3, 4, *range(10, 17))]
    # The numbers that the text states beside Figure 10, and Table 1.
    assert "epsilon = 10.536 (the text says above 10)" in said
    assert "epsilon = 0.412 (the text says below 0.5)" in said
    assert "9.88e-07  0.105  1.05" in said
