"""Two runs whose Java is killed while they draw, and the next run of the same process.

`python -m tests.engines.spark_ended FOLDER` writes to FOLDER/said the two runs' errors, and of what
type the third's result is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServerConnection
from py4j.protocol import ERROR_ON_RECEIVE, Py4JNetworkError
from pyspark import SparkContext

from dphh import Corpus, EngineError, items
from dphh.engines.spark.host import SparkHost

_write, _send = SparkHost.write, ClientServerConnection.send_command


def write_without_java(self: Any, table: str, rows: Any) -> None:
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    _write(self, table, rows)


def write_as_java_ends(self: Any, table: str, rows: Any) -> None:
    """The answer to one call is lost, which Py4J does not raise: it logs that, with a traceback."""

    def lose(*_: Any) -> None:
        ClientServerConnection.send_command = _send
        raise Py4JNetworkError("lost", when=ERROR_ON_RECEIVE)

    ClientServerConnection.send_command = lose
    write_without_java(self, table, rows)


def main(folder: Path) -> None:
    corpus = Corpus(folder / "c.parquet", user="who", text="what")
    plan, ledger = items(corpus, epsilon=1.0, delta=1e-6), folder / "ledger.sqlite"
    said = []
    for write in (write_as_java_ends, write_without_java):
        SparkHost.write = write  # type: ignore[method-assign]
        try:
            plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
        except EngineError as problem:
            said.append(" ".join(str(problem).split()))
    SparkHost.write = _write  # type: ignore[method-assign]
    release = plan.run(engine="spark", ledger=ledger, run_id="ended", threads=1)
    (folder / "said").write_text("\n".join([*said, type(release).__name__]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
