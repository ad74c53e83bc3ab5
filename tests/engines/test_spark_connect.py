"""Spark Connect: a session that has no Java beside it, on a server of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dphh import Corpus
from tests.conftest import HERE, full
from tests.engines.test_engines_agree import VERBS, frame, released, rows

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.on_spark]
#: The most kinds of queries and functions; all verbs with DPHH_FULL=1.
ASKED = [*VERBS] if full() else ["ngrams", "ldp_trie"]
__all__ = ["rows"]


@pytest.fixture(scope="module")
def folder(rows: Any, spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    made = tmp_path_factory.mktemp("connect")
    frame(rows).write_parquet(made / "corpus.parquet")
    subprocess.run(
        [sys.executable, "-m", "tests.engines.connect_client", str(made), *ASKED],
        cwd=HERE, check=True, timeout=900,
        env={**os.environ, "DPHH_LEDGER": str(made / "ledger.sqlite")},
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def seen(folder: Path) -> Any:
    return json.loads((folder / "seen.json").read_text())


@pytest.mark.parametrize("verb", ASKED)
def test_a_frame_of_spark_connect_gives_duckdbs_release(folder, seen, verb):
    assert seen["session"] == "pyspark.sql.connect.session"
    corpus = Corpus(folder / "corpus.parquet", user="who", text="what", as_="list")
    table, manifest = json.loads(json.dumps(released(VERBS[verb](corpus), "duckdb"), default=str))
    assert len(table) > 5
    there, told = seen["released"][verb]
    assert there == table
    assert told["levels"] == manifest["levels"]


def test_executors_of_spark_connect_have_dphh_from_the_client(seen):
    assert "dphh_of_the_driver.zip" in seen["within"]["home"]


def test_a_runs_tables_on_spark_connect_are_its_users_alone_and_go_with_it(seen):
    assert seen["within"]["mode"] == 0o700
    assert seen["within"]["files"] > 0
    assert seen["left"] == []
    assert seen["databases"] == ["default"]


def test_what_spark_connect_lacks_is_said_before_payment(seen):
    assert seen["no folder"].startswith("UsageError: spark.dphh.folder: not set")
    refused = r"nothing can be written below file:///proc/nothing \(\w+\); set it to the URL of a"
    assert re.match(f"UsageError: spark.dphh.folder: {refused} folder", seen["no such folder"])
    assert seen["no table"].startswith("CorpusError: source: the connection has no table")
    assert seen["runs"] == 0


def test_a_lost_server_is_told_at_once(seen):
    """Spark's own client would ask it again for ten minutes."""
    killed = seen["killed"]
    refused = "server no longer answers (SparkConnectGrpcException): connect again"
    assert refused in killed["refused"]
    (left,) = killed["left"]
    assert re.search(r"server is gone \(\w+\); it left private rows in file:/\S+/dphh-", left)
