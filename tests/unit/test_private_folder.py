"""Folders of private rows: for their user alone, and swept when nobody lives in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import dphh
from dphh.files.private_folder import PREFIX, PrivateFolder, close_all, sweep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks that end with a process")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


#: Starts quickly: these modules alone, without what `dphh` itself imports.
QUICK = f"""
import sys, types
sys.modules["dphh"] = types.ModuleType("dphh")
sys.modules["dphh"].__path__ = [{str(Path(dphh.__file__).parent)!r}]
"""
LIVING = (
    QUICK
    + """
import os, sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from dphh.files.private_folder import PrivateFolder
folder = PrivateFolder()
with open(folder.path + "/rows", "w") as file:
    file.write("private")
os.mkdir(folder.path + "/more")
open(folder.path + "/more/rows", "w").close()
print(folder.path, flush=True)
time.sleep(600)
"""
)


def living(temporary):
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(temporary)], stdout=subprocess.PIPE, text=True
    )
    return process, Path(process.stdout.readline().strip())


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


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
    process, folder = living(temporary)
    sweep()
    assert names(folder) == [".lock", "more", "rows"]
    killed(process)
    assert names(folder) == [".lock", "more", "rows"]
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
    (temporary / f"{PREFIX}nolock").mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    linked = temporary / f"{PREFIX}linked-lock"
    linked.mkdir()
    (linked / ".lock").symlink_to(elsewhere / ".lock")
    before = names(temporary)
    sweep()
    assert names(temporary) == before
    assert names(elsewhere) == [".lock"]
