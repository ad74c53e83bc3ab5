"""The script of TrieHH's experiments: it runs, on a made-up corpus, and what must hold does."""

from __future__ import annotations

import csv
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphh.testing import SeededRandomness

SCRIPT = Path(__file__).parents[2] / "examples" / "triehh_experiments.py"
FIGURES = ("05", "06", "07", "08", "09", "path", "sfp")


@pytest.mark.slow
def test_every_experiment_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    done = subprocess.run(
        [
            sys.executable,
            str(SCRIPT),
            "--quick",
            "--runs",
            "8",
            "--data",
            str(tmp_path),
            "--out",
            str(out),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in FIGURES:
        assert (out / f"figure-{name}.png").stat().st_size > 5000
        assert len((out / f"figure-{name}.csv").read_text().splitlines()) > 6
    # Sound whatever the corpus: the bound, what TrieHH reports, and path beside paper.
    assert "Figure 5, epsilon 2: 0 of" in done.stdout
    with (out / "figure-sfp.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["precision"] for row in rows if row["method"].startswith("TrieHH")} == {"1.0"}
    with (out / "figure-path.csv").open() as file:
        pairs = list(csv.DictReader(file))
    for path, paper in zip(pairs[::2], pairs[1::2], strict=True):
        assert (path["accounting"], paper["accounting"]) == ("path", "paper")
        assert 10 < float(paper["worst case"]) / float(path["worst case"]) < 25
        assert float(path["words"]) > 2 * float(paper["words"])


def beside_the_script(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)  # as Python does for a script that is run
        return importlib.import_module(name)


@pytest.mark.parametrize("kind", ["path", "paper"])
def test_words_that_share_nothing_are_found_as_the_worst_case_says(kind: str) -> None:
    module, randomness = beside_the_script("triehh_runs"), SeededRandomness(7)
    holders = np.array([70.0, 90.0, 110.0, 1730.0])
    trie = module.Trie(["abcdefghi", "bcdefghij", "cdefghijk", "zz"])
    word = np.repeat(np.arange(4), holders.astype(int))
    way = (
        module.ByPath(0.2, 12, randomness)
        if kind == "path"
        else module.ByPaper(2000, 400, 12, randomness)
    )
    hits, runs = np.zeros(4), 800
    for _ in range(runs):
        passed = way.passed(trie, word, trie.voters(holders))
        hits[trie.found(passed, np.arange(4))] += 1
    expected = way.sampling.tail(holders, 12) ** np.array([10, 10, 10, 3])
    assert 0.005 < expected[0] < 0.1
    assert 0.8 < expected[2] < 0.99
    error = np.sqrt(expected * (1 - expected) / runs)
    assert np.all(abs(hits / runs - expected) <= 4.5 * error)


def test_several_words_are_drawn_in_proportion() -> None:
    module = beside_the_script("triehh_population")
    person = np.repeat([0, 1], [30_000, 10_000])
    spoken = np.array([0, 0, 1, 2, 1])  # a a b c; b
    first, size = np.array([0, 4]), np.array([4, 1])
    people = module.Population(["a", "b", "c"], person, np.array([0, 1]), first, size, spoken)
    drawn = np.bincount(people.several(SeededRandomness(7)), minlength=3)
    assert people.expected_counts.tolist() == [15_000, 17_500, 7_500]
    assert np.all(abs(drawn - people.expected_counts) < 4.5 * np.sqrt(30_000 / 4))
