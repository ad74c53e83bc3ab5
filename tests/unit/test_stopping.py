"""Signals: a run's rows go first, and the exit is what a shell expects of the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.test_private_folder import QUICK

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

WAITS = (
    QUICK
    + """
import signal, time
if sys.argv[1] == "nohup":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
from dphh.private_folder import PrivateFolder
from dphh import stopping
stopping.PATIENCE = 0.3

def listens():
    print("ready", flush=True)
    time.sleep(60)

def swallows():  # as DuckDB does, which raises an error of its own
    try:
        listens()
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None

def deaf():  # deep in an engine's own code, which does not come back
    while True:
        try:
            listens()
        except KeyboardInterrupt:
            pass

try:
    with stopping.stopping():
        folder = PrivateFolder()
        open(folder.path + "/rows", "w").close()
        {"swallows": swallows, "deaf": deaf}.get(sys.argv[1], listens)()
except BaseException as problem:
    folder.close()
    print(type(problem).__name__, stopping.received(), flush=True)
    stopping.end_by(stopping.received())
"""
)


def started(tmp_path: Path, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, how],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    return process


@pytest.mark.parametrize(
    "number, how, said",
    [
        (signal.SIGTERM, "listens", "Stopped"),
        (signal.SIGHUP, "listens", "Stopped"),
        (signal.SIGINT, "swallows", "RuntimeError"),
    ],
)
def test_a_signal_cleans_up_and_ends_as_the_signal_does(tmp_path, number, how, said) -> None:
    process = started(tmp_path, how)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert out == f"{said} {int(number)}\n"
    assert process.returncode == -number
    assert list(tmp_path.iterdir()) == []


def test_where_the_main_thread_does_not_come_back_the_rows_go_all_the_same(tmp_path) -> None:
    process = started(tmp_path, "deaf")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_further_signals_do_not_cut_the_cleaning_short(tmp_path) -> None:
    process = started(tmp_path, "listens")
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
        time.sleep(0.01)
    out, _ = process.communicate(timeout=30)
    assert out == "Stopped 15\n"
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_somebody_ignores_stays_ignored(tmp_path) -> None:
    process = started(tmp_path, "nohup")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert out == "Stopped 15\n"
