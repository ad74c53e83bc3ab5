"""Randomness of a seed that kills a worker of Spark, once. Executors import it by its name."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from dphh.testing import SeededRandomness

SEED = 25
LOST_IN = "ngrams/forecast, level 2/round 2"


class LosesAWorker:
    """Kills a worker and its executor, from a task of it that has drawn the noise of round 2, the
    first time anywhere. The words are those of the seed."""

    is_test = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.seeded = folder, SeededRandomness(SEED)

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        drawn = self.seeded.words(count, purpose, keys)
        if purpose == LOST_IN and keys is not None and TaskContext.get() is not None:
            try:
                (self.folder / "lost").touch(exist_ok=False)
            except FileExistsError:
                return drawn
            executor = _parent(os.getppid())  # above Spark's Python is its daemon
            worker = _parent(executor)
            for process in (worker, executor):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(60)
        return drawn


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
