"""Executors that cannot run dphh, or that see other folders: each is told before payment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import HERE
from tests.engines.standalone import Cluster

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.on_spark]
#: A cluster's machine, told apart from the driver's by what it has mounted.
_MOUNTS = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [(user, f"w{user % 3}") for user in range(600)]
    corpus = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(corpus)
    return corpus


def other_python() -> str | None:
    """Of another version, found beside this one or on the PATH."""
    for minor in (10, 12, 13, 14):
        name = f"python3.{minor}"
        beside = [
            *Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/{name}"),
            Path("/usr/bin", name),
        ]
        for found in beside:
            if minor != sys.version_info.minor and found.exists():
                return str(found)
    return None


def shadowing(folder: Path, module: str, text: str) -> str:
    """A Python that finds another module of this name."""
    shadows = folder / f"shadows-{module}"
    shadows.mkdir()
    (shadows / f"{module}.py").write_text(text)
    program = folder / f"python-{module}"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{shadows}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return str(program)


def test_workers_that_cannot_run_dphh_are_told_before_payment(path, tmp_path):
    gone = "raise ModuleNotFoundError(\"No module named 'duckdb'\", name='duckdb')"
    pythons = {
        "absent": str(tmp_path / "no-python"),
        "lacking": shadowing(tmp_path, "duckdb", gone),
        "without": shadowing(
            tmp_path, "dphh", "raise ModuleNotFoundError(\"No module named 'dphh'\", name='dphh')"
        ),
    }
    if other := other_python():
        pythons["other"] = other
    subprocess.run(
        [
            sys.executable, "-m", "tests.engines.bad_workers", str(path), str(tmp_path),
            *(f"{name}={python}" for name, python in pythons.items()),
        ],
        cwd=tmp_path, check=True, timeout=600, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(HERE)},  # Python looks in its folder before that
    )  # fmt: skip
    refused = json.loads((tmp_path / "refused.json").read_text())
    assert refused.pop("runs") == 0
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for told in refused.values():
        assert re.search(rf"UsageError: engine: .* to a Python {re.escape(here)} that has it", told)
    assert f'cannot run dphh (Cannot run program "{tmp_path}/no-python")' in refused["absent"]
    assert "(No module named 'duckdb')" in refused["lacking"]
    assert "(No module named 'dphh" in refused["without"]
    if other:
        assert "(different version: 3." in refused["other"]


@pytest.fixture
def apart(tmp_path: Path) -> Cluster:
    """A cluster whose one worker has a folder of its own where the driver's is."""
    if os.name != "posix" or subprocess.run([*_MOUNTS, "/mnt", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    (folder := tmp_path / "cluster").mkdir()
    return Cluster(folder, workers=0)


def test_a_folder_that_executors_do_not_see_is_told_before_payment(apart, path, tmp_path):
    try:
        apart.add_worker(*_MOUNTS, str(apart.folder / "shared"))
        with pytest.raises(AssertionError) as failed:
            apart.submit(
                str(HERE / "examples" / "spark_submit_job.py"), f"parquet:{path}", "who", "what",
                "--ledger", str(tmp_path / "ledger.sqlite"), "--out", str(tmp_path / "release"),
                cwd=tmp_path, conf={"spark.dphh.folder": (apart.folder / "shared").as_uri()},
            )  # fmt: skip
    finally:
        apart.close()
    told = r"spark.dphh.folder: executors wrote 64 rows below file:/\S+, and 0 of them were found"
    assert re.search(told, str(failed.value))
    assert not [*(apart.folder / "shared").iterdir()]
