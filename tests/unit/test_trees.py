"""A process runs one tree: its driver never meets another tree's sql/ and udfs/."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]
WHERE = (
    "import dphh, dphh.sql, dphh.udfs.kernel.contributions as kernel; "
    "print(dphh.__file__, dphh.sql.__file__, kernel.__file__, sep='\\n'); "
    "print(dphh.sql.query('released'))"
)


def test_a_checkout_that_is_not_the_installed_one_is_run_whole(tmp_path: Path) -> None:
    for folder in ("dphh", "sql", "udfs"):
        shutil.copytree(HERE / folder, tmp_path / folder)
    shutil.copy(HERE / "pyproject.toml", tmp_path)
    (tmp_path / "sql" / "set_union" / "released.sql").write_text("-- this tree's own\n")
    found = subprocess.run(
        [sys.executable, "-c", WHERE], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    assert all(Path(path).is_relative_to(tmp_path) for path in found[:3]), found
    assert found[3] == "-- this tree's own"
