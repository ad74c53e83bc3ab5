"""A child process: its seconds, those of the processors, and its memory.

dphh runs as it does where it is installed: compiled beforehand.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

HERE = Path(__file__).parents[2]


def measured(*command: str) -> tuple[float, float, float]:
    """Seconds, processor seconds of all threads, and peak megabytes."""
    environment = _compiled()
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=HERE, stdout=subprocess.DEVNULL, env=dict(environment)
    ) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


@cache
def _compiled() -> tuple[tuple[str, str], ...]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    compiling = (sys.executable, "-m", "compileall", "-q", "dphh", "udfs")
    subprocess.run(compiling, cwd=HERE, env=environment, check=True)
    return tuple(environment.items())
