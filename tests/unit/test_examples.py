"""The examples run from end to end, at the smallest size."""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from dphh import Corpus
from dphh.testing import SeededRandomness
from tests.conftest import full

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["--users", "400", "--phrases", "500", "--words", "100"]
LONG = pytest.mark.skipif(not full(), reason="half a minute and more; with DPHH_FULL=1")
LADDER = "made-up=CORPUS --user author --text body --max-n 3"


def run(script, *arguments):
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return done.stdout


def test_the_reddit_like_corpus_is_the_same_every_time(tmp_path):
    texts = []
    for name in ("one.parquet", "two.parquet"):
        run("reddit_like.py", str(tmp_path / name), *SMALL)
        texts.append(duckdb.read_parquet(str(tmp_path / name)).fetchall())
    assert texts[0] == texts[1]
    assert 0 < len({author for author, _ in texts[0]}) <= 400
    assert all(body and body == " ".join(body.split()) for _, body in texts[0])


#: Of a script: its options, what it says, and the files that it makes.
QUICK = [
    ("conversations.py", "--people 3000", ["refund", "rose"], "by-week.csv by-language.csv"),
    ("federated/votes.py", "--devices 600", ["a.\n", "an.\n", "at.\n", "to.\n"], ""),
    ("polars_pipeline.py", "--people 4000", ["lentil soup", "in all, of 4,000 people\n"], ""),
]
IN_SECONDS = [
    ("federated/reports.py", "--devices-per-round 1200", ["eat: ", "oat: ", "tea: "], ""),
    ("misleading_text.py", "CORPUS --runs 1 --epsilons 4", ["| none |", "| backwards |"], ""),
    ("dpne_figures.py", "--quick --users 150", [], "figure-4.png table-3.csv"),
    ("public_text.py", "--users 2000 --runs 1 --epsilons 2,4", [], "found.png found.csv"),
    (
        "triehh_experiments.py",
        "--quick --runs 8 --data FOLDER",
        ["Figure 5, epsilon 2: 0 of"],
        "figure-05.png figure-09.png figure-path.png figure-sfp.png",
    ),
    (
        "reproduce.py",
        "--data FOLDER",
        [
            "needs ",
            "| 9.9e-07, 0.105, 1.05 ",
            "| 0.31474 ",
            "| 2, 3, 4, 10, 11, 12, 13, 14, 15, 16 ",
        ],
        "",
    ),
    (
        "triehh_figures.py",
        "",
        # The numbers that the text states beside Figure 10, and Table 1.
        ["epsilon = 10.536 (the text says above 10)", "9.88e-07  0.105  1.05"],
        "figure-02.png figure-04.png figure-10.png figure-16.png",
    ),
]
IN_MINUTES = [
    ("forecast_figures.py", LADDER, [], "figure-3.png"),
    ("gboard_experiments.py", "--quick --users-per-level 4000", [], "figure-1.png table-1.csv"),
]


@pytest.mark.parametrize(
    ("script", "asked", "says", "makes"),
    [
        *QUICK,
        *(pytest.param(*each, marks=pytest.mark.slow) for each in IN_SECONDS),
        *(pytest.param(*each, marks=LONG) for each in IN_MINUTES),
    ],
    ids=lambda value: value if str(value).endswith(".py") else "",
)
def test_an_example_says_and_makes_what_it_is_for(tmp_path, script, asked, says, makes):
    if ".png" in makes:
        pytest.importorskip("matplotlib")
    corpus = tmp_path / "corpus.parquet"
    if "CORPUS" in asked:
        run("reddit_like.py", str(corpus), *SMALL)
        read = pl.read_parquet(corpus)
        read.with_columns(user_id="author", text="body").write_parquet(corpus)
    asked = asked.replace("CORPUS", str(corpus)).replace("FOLDER", str(tmp_path)).split()
    out = ["--out", str(tmp_path)] if makes else []
    said = run(script, *asked, *out)
    assert all(each in said for each in says), said
    assert all((tmp_path / name).stat().st_size > 30 for name in makes.split())


@pytest.mark.slow
def test_the_papers_table_pays_in_no_ledger_of_the_reader(tmp_path):
    reproduce = pytest.importorskip("reproduce")
    own = tmp_path / "own-data"  # as XDG_DATA_HOME of every test
    texts = [" ".join(["1 2"] * (1 + user % 3)) for user in range(300)]
    pl.DataFrame({"user_id": range(300), "text": texts}).write_parquet(tmp_path / "msnbc.parquet")
    found = reproduce.table_5_of_verb("dpne", reproduce.msnbc(tmp_path), 2)
    assert found.shape == (2, 6) and found[0, 0] == 2
    assert not own.exists()


def test_equal_seeds_of_a_papers_baseline_find_the_same():
    dpsu = pytest.importorskip("baselines.dpsu")
    texts = [" ".join(map(str, range(user % 7, user % 7 + 12))) for user in range(300)]
    rows = pl.DataFrame({"who": range(300), "text": texts})
    corpus = Corpus(rows, user="who", text="text", split="white space")
    baseline = dpsu.priced("all", max_n=3, epsilon=4.0, delta=1e-4, max_items=3)
    one, two = (dpsu.found_by(baseline, corpus, randomness=SeededRandomness(1)) for _ in range(2))
    assert len(one) > 20 and one.equals(two)


@pytest.mark.parametrize(("most", "alpha"), [(4, None), (6, None), (16, None), (4, 4.0), (6, 6.0)])
def test_rerouting_moves_sums_by_no_more_than_one(most, alpha):
    """A newcomer among a crowd, of whose items some are far above tau; and at random. A smaller
    divisor than the proof's is seen to be wrong."""
    rerouting = pytest.importorskip("baselines.rerouting")
    rng, worst = np.random.default_rng(most), 0.0

    def sums(rows):
        user = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        found = rerouting.rerouted_sums(user, np.concatenate(rows), 1.0, most, alpha)
        return np.pad(found, (0, 40 - len(found)))

    for trial in range(400):
        items = int(rng.integers(most, 2 * most + 1))
        rows = [rng.permutation(items)[: rng.integers(1, most + 1)] for _ in range(8)]
        if trial % 2:  # all of the newcomer's excess comes back to the newcomer
            rows = [*([np.arange(most // 2)[place : place + 1]] * 60 for place in range(most // 2))]
            rows = [row for same in rows for row in same]
        new = np.arange(most) if trial % 2 else rng.permutation(items)[: rng.integers(1, most + 1)]
        worst = max(worst, float(np.linalg.norm(sums([*rows, new]) - sums(rows))))
    assert (worst > 1.001) == (alpha is not None)
    assert worst <= 1 + 1e-9 or alpha is not None
