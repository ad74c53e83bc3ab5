"""Every verb killed at moments of chance: paid for once, shown once, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import full
from tests.engines.cut_short import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
def test_whenever_it_is_killed_a_run_is_paid_for_and_shown_once(
    engine: str, tmp_path: Path
) -> None:
    """Some kills in CI, a hundred an engine with DPHH_FULL=1 (tests/engines/faults.md)."""
    if engine == "spark" and not full():
        pytest.skip("each kill starts another Java: with DPHH_FULL=1")
    kills = {"spark": 10}.get(engine, 100) if full() else 6
    folder, temporary = tmp_path / "runs", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    subprocess.run(
        [sys.executable, "-m", "tests.engines.killed_often", engine, str(kills), str(folder)],
        cwd=ROOT, check=True, timeout=1800 if full() else 250,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    seen = json.loads((folder / "seen.json").read_text())
    assert seen["wrong"] == []
    assert seen["left"] == []
    assert sum(seen["killed"].values()) >= kills
