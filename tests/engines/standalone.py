"""Spark's own cluster on this machine: a master and workers, each a process, on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

from tests.conftest import HERE, SPARK_JAVA

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_PATIENCE = 120


class Cluster:
    """Everything that it writes is below its folder; `close` ends all that it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("shared", "local", "work", "logs", "conf"):
            (folder / name).mkdir()
        (folder / "shared").chmod(0o700)
        lines = {
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.io.encryption.enabled": "true",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.cores.max": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.driver.extraJavaOptions": SPARK_JAVA,
            "spark.executor.extraJavaOptions": SPARK_JAVA,
        }
        (folder / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{setting} {value}\n" for setting, value in lines.items())
        )
        try:
            self._start("master", "master.Master", "--port", "0")
            self.url = self._said("master", _MASTER)[1]
            for _ in range(2):
                self.add_worker()
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """What every process of it is started with, drivers too: they import these tests."""
        return {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SPARK_JAVA,
            "PYSPARK_PYTHON": sys.executable,
        }

    def add_worker(self) -> None:
        name = f"worker-{len(self._started)}"
        work = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        self._start(name, "worker.Worker", *work, self.url)
        self._said(name, re.compile(_REGISTERED))

    def living_workers(self) -> int:
        return sum(
            process.poll() is None
            for name, process in self._started.items()
            if name.startswith("worker")
        )

    def submit(self, program: str, *arguments: str, cwd: Path, conf: dict[str, str]) -> None:
        """By `spark-submit`; what it printed is told where it fails."""
        asked = ["--master", self.url]
        for setting, value in conf.items():
            asked += ["--conf", f"{setting}={value}"]
        done = subprocess.run(
            [SPARK_HOME / "bin" / "spark-submit", *asked, program, *arguments],
            cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]

    def close(self) -> None:
        """Each was started as a group of its own, with the executors that it starts."""
        for process in reversed(self._started.values()):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, what: str, *arguments: str) -> None:
        listen = ("--host", "127.0.0.1", "--webui-port", "0")
        java = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{what}"]
        with (self.folder / "logs" / name).open("wb") as log:
            self._started[name] = subprocess.Popen(
                [*java, *listen, *arguments],
                cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _said(self, name: str, wanted: re.Pattern[str]) -> re.Match[str]:
        log, late = self.folder / "logs" / name, time.monotonic() + _PATIENCE
        while (found := wanted.search(log.read_text())) is None:
            alive = self._started[name].poll() is None
            assert alive and time.monotonic() < late, log.read_text()[-4000:]
            time.sleep(0.1)
        return found
