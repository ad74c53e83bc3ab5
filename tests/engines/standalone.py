"""A standalone Spark cluster of a master and two workers, on this machine."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
BIN = Path(pyspark.__file__).parent / "bin"


@contextmanager
def standalone(folder: Path, memory: str) -> Iterator[str]:
    """The master's URL. Each worker has one core and so much memory for an executor; what workers
    and executors write is below `folder`."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with ExitStack() as at_last, (folder / "cluster.log").open("wb") as log:

        def start(role: str, *arguments: str) -> None:
            command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments]
            command += ["--host", HOST, "--webui-port", "0"]
            java = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            at_last.enter_context(java)  # waits for its end
            at_last.callback(java.terminate)

        with socket.create_server((HOST, 0)) as free:
            port = free.getsockname()[1]
        start("master.Master", "--port", str(port))
        _wait_for(port)
        for _ in range(2):
            work = ("--work-dir", str(folder / "work"), "--cores", "1", "--memory", memory)
            start("worker.Worker", *work, f"spark://{HOST}:{port}")
        yield f"spark://{HOST}:{port}"


def _wait_for(port: int) -> None:
    for _ in range(600):
        with suppress(OSError), socket.create_connection((HOST, port)):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no master listens at {HOST}:{port}")
