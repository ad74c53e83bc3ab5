"""Private rows on the disk: for their user alone; they go with the run, with a signal, or by the
next run's sweep. The exit is what a shell expects of a signal."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pytest

import dphh
from dphh.files.private_folder import (
    FOLDER_PREFIX,
    PrivateFolder,
    close_all,
    remove_abandoned_folders,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals, and locks of processes")

#: Makes a folder and waits. It starts quickly: without what `dphh` itself imports.
WAITS = f"""
import sys, types
sys.modules["dphh"] = types.ModuleType("dphh")
sys.modules["dphh"].__path__ = [{str(Path(dphh.__file__).parent)!r}]
import os, select, signal, time
# Whoever runs the tests may ignore it, and children inherit that.
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
from dphh.files.private_folder import PrivateFolder
from dphh.files import stopping
stopping.PATIENCE_SECONDS = 0.3

def listens():
    print("ready", flush=True)
    time.sleep(600)

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

def full():  # as deaf, and nobody reads what it says
    while True:
        try:
            print("ready", flush=True)
            while True:
                while select.select([], [1], [], 0)[1]:
                    os.write(1, b"x" * 4096)
                time.sleep(0.01)
        except KeyboardInterrupt:
            pass

try:
    with stopping.stopping(lambda number: f"last words {{number}}\\n"):
        folder = PrivateFolder()
        open(folder.path + "/rows", "w").close()
        {{"swallows": swallows, "deaf": deaf, "full": full}}.get(sys.argv[1], listens)()
except BaseException as problem:
    folder.close()
    print(type(problem).__name__, stopping.received_signal(), flush=True)
    stopping.end_by_signal(stopping.received_signal())
"""


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


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_it_is_for_its_user_alone_and_goes(temporary):
    umask = os.umask(0)
    try:
        folder = PrivateFolder()
        (Path(folder.path) / "rows").write_text("private")
        (Path(folder.path) / "more").mkdir()
    finally:
        os.umask(umask)
    assert Path(folder.path).stat().st_mode & 0o777 == 0o700
    folder.close()
    folder.close()
    assert names(temporary) == []


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_has_is_not(temporary):
    process = started(temporary, "listens")
    (folder,) = temporary.iterdir()
    remove_abandoned_folders()
    assert names(folder) == [".lock", "rows"]
    process.kill()
    process.communicate()
    assert names(folder) == [".lock", "rows"]
    mine = PrivateFolder()  # making one sweeps
    assert names(temporary) == [Path(mine.path).name]
    mine.close()


def test_a_fork_does_not_remove_its_parents_folder(temporary):
    folder = PrivateFolder()
    child = os.fork()
    if not child:
        close_all()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(folder.path).is_dir()
    folder.close()


def test_nothing_else_is_swept(temporary):
    """No folder without a lock, no link to another place, nothing of another name."""
    (temporary / f"{FOLDER_PREFIX}nolock").mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (temporary / f"{FOLDER_PREFIX}link").symlink_to(elsewhere)
    linked = temporary / f"{FOLDER_PREFIX}linked-lock"
    linked.mkdir()
    (linked / ".lock").symlink_to(elsewhere / ".lock")
    before = names(temporary)
    remove_abandoned_folders()
    assert names(temporary) == before
    assert names(elsewhere) == [".lock"]


@pytest.mark.parametrize(
    "number, how, said",
    [
        (signal.SIGTERM, "listens", "Stopped"),
        (signal.SIGHUP, "listens", "Stopped"),
        (signal.SIGINT, "swallows", "RuntimeError"),
    ],
)
def test_a_signal_cleans_up_and_ends_as_the_signal_does(tmp_path, number, how, said):
    process = started(tmp_path, how)
    process.send_signal(number)
    out, _ = process.communicate(timeout=250)
    assert out == f"{said} {int(number)}\n"
    assert process.returncode == -number
    assert list(tmp_path.iterdir()) == []


def test_where_the_main_thread_does_not_come_back_the_rows_go_all_the_same(tmp_path):
    process = started(tmp_path, "deaf")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=250)
    assert process.returncode == 128 + signal.SIGTERM
    assert out.endswith("ready\nlast words 15\n")
    assert list(tmp_path.iterdir()) == []


def test_last_words_that_nobody_reads_keep_no_process(tmp_path):
    process = started(tmp_path, "full")
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_somebody_ignores_stays_ignored(tmp_path):
    process = started(tmp_path, "nohup")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=250)
    assert out == "Stopped 15\n"


# The command line, in the middle of a run that has spilled private rows.


def test_a_run_that_is_stopped_leaves_no_row_and_says_what_is_spent(tmp_path):
    large = tmp_path / "corpus.parquet"  # more than the memory that the run is given
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT i // 4 AS who, 'word' || (i * 7919 % 2000000) AS what "
            f"FROM range(4000000) AS r(i)) TO '{large}' (FORMAT parquet)"
        )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    asked = [
        *("items", str(large), "--user", "who", "--item", "what", "--epsilon", "1"),
        *("--delta", "1e-8", "--max-items", "4", "--memory-limit", "200MB", "--threads", "1"),
        *("--run-id", "mine", "--quiet", "--json"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "dphh", *asked],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    until, spilled = time.monotonic() + 250, []
    while not spilled:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
        spilled = [path for path in temporary.glob("dphh-run-*/*") if path.stat().st_size > 0]
    assert {path.parent.stat().st_mode & 0o777 for path in spilled} == {0o700}
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=250)
    assert process.returncode == -signal.SIGTERM
    assert list(temporary.iterdir()) == []
    told = json.loads(out)["error"]
    assert (told["kind"], told["exit_code"]) == ("Stopped", 128 + signal.SIGTERM)
    assert (told["spent"], told["run_id"]) == (True, "mine")
    said = [line for line in err.splitlines() if line]
    assert said[0] == "dphh: interrupted; `dphh ledger show` says what is spent"
    assert "the price is spent once (epsilon 1, delta 1e-08)" in said[1]
    assert "run id mine goes on" in said[1]
    assert len(said) == 2 and said[1] == f"dphh: {told['notes'][0]}"
