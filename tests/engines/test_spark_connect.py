"""Spark Connect: a client without Java runs what a classic session runs."""

import json
import os
import subprocess
import sys

import pytest

from dphh import UsageError
from dphh.reader.rows import Limits
from tests.conftest import HERE

pytest.importorskip("pyspark", reason="needs dphh[spark]")
pytest.importorskip("grpc", reason="needs pyspark[connect]")
from dphh.engines.spark.cluster import _checked_running_session
from tests.engines.on_connect import released

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.on_spark]
#: One release a verb, and the method that brings most from step to step.
CASES = ("adaptive", "forecast with a prior", "counts", "trie", "ldp_trie")


def test_connect_releases_what_a_classic_session_does(spark, tmp_path):
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.engines.on_connect", str(tmp_path), *CASES],
        cwd=HERE, check=True, timeout=900, env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    found = json.loads((tmp_path / "released.json").read_text())
    assert all(found.values())
    assert found == {case: released(spark, tmp_path, case) for case in CASES}


def test_connect_without_a_session_for_a_run_is_refused():
    old = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(UsageError, match=r"install PySpark 4\.3 or later"):
        _checked_running_session(old(), Limits())  # type: ignore[arg-type]
