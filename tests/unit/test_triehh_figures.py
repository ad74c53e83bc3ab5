"""The script that draws TrieHH's figures: it runs, and draws every one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "triehh_figures.py"


@pytest.mark.slow
def test_every_figure_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    drawn = sorted(path.name for path in tmp_path.glob("*.png"))
    assert drawn == [f"figure-{number:02d}.png" for number in (2, 3, 4, *range(10, 17))]
    assert all(path.stat().st_size > 5000 for path in tmp_path.glob("*.png"))
    # The numbers that the text states beside Figure 10, and Table 1.
    assert "epsilon = 10.536 (the text says above 10)" in done.stdout
    assert "epsilon = 0.412 (the text says below 0.5)" in done.stdout
    assert "9.88e-07  0.105  1.05" in done.stdout
