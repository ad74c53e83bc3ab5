"""The scripts of TrieHH's figures and experiments: they run, on a made-up corpus."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURES = ("05", "06", "07", "08", "09", "path", "sfp")


def run(script: str, *arguments: str) -> str:
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.slow
def test_every_experiment_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("--quick", "--runs", "8", "--data", str(tmp_path), "--out", str(out))
    said = run("triehh_experiments.py", *asked)
    for name in FIGURES:
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
def test_every_figure_is_drawn(tmp_path: Path) -> None:
    said = run("triehh_figures.py", "--out", str(tmp_path))
    drawn = sorted(path.name for path in tmp_path.glob("*.png"))
    assert drawn == [f"figure-{number:02d}.png" for number in (2, 3, 4, *range(10, 17))]
    # The numbers that the text states beside Figure 10, and Table 1.
    assert "epsilon = 10.536 (the text says above 10)" in said
    assert "epsilon = 0.412 (the text says below 0.5)" in said
    assert "9.88e-07  0.105  1.05" in said
