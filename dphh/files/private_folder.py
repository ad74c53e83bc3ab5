"""Private folders for spilled rows: readable by one login only, and removed with their process.

Each folder contains a lock file. The process takes the lock before the file gets its name and keeps
it until the folder is removed; the operating system releases it when the process ends, however that
happens. So a process that can take the lock of a folder knows that the folder is unused and
removes it: `sweep` does so each time a new folder is made. A process id would not do: ids are
reused, and a container does not see those of others.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

FOLDER_PREFIX = "dphh-run-"
_LOCK_FILE = ".lock"

_open_folders: dict[str, PrivateFolder] = {}
_folders_lock = threading.Lock()


class PrivateFolder:
    """A folder of mode 0700 in the temporary directory.

    A forked process shares the folder's lock, but neither uses nor removes the folder.
    """

    def __init__(self) -> None:
        sweep()
        self._owner = os.getpid()
        self.path = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
        unnamed = Path(self.path, f"{_LOCK_FILE}-new")
        self._lock = _take_lock(unnamed, os.O_CREAT)
        if self._lock is None:
            unnamed.unlink()  # a file system without locks: the folder is never swept
        else:
            unnamed.rename(Path(self.path, _LOCK_FILE))
        with _folders_lock:
            _open_folders[self.path] = self

    def close(self) -> None:
        """Remove the folder and its contents. Does nothing if called again."""
        with _folders_lock:
            if _open_folders.pop(self.path, None) is None or os.getpid() != self._owner:
                return
        with suppress(OSError):  # Spark's Java process may have removed it first
            _remove_folder(self.path)
        if self._lock is not None:
            os.close(self._lock)


def close_all() -> None:
    """Remove the folders of this process, just before it ends."""
    for folder in list(_open_folders.values()):
        folder.close()


def sweep() -> None:
    """Remove folders that killed processes left in the temporary directory."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):  # the folder is another login's, or another process removed it
            if _is_ours(folder) and (lock := _take_lock(folder / _LOCK_FILE)) is not None:
                try:
                    _remove_folder(str(folder))
                finally:
                    os.close(lock)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _take_lock(path: Path, flags: int = 0) -> int | None:
    """Take the lock of a folder, if it is free. A folder without a lock file is not swept."""
    lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the lock is taken, or the file system has no locks
        os.close(lock)
        return None
    return lock


def _remove_folder(path: str) -> None:
    """Remove rows first and the lock last, so that a later sweep completes a removal cut short."""
    for entry in list(os.scandir(path)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name != _LOCK_FILE:
            with suppress(OSError):
                Path(entry).unlink()
    if all(entry.name == _LOCK_FILE for entry in os.scandir(path)):
        shutil.rmtree(path, ignore_errors=True)
