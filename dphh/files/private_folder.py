"""Private folders for spilled rows: readable by one login only, and removed with their process.

Each folder contains a lock file. The process takes the lock before the file gets its name and keeps
it until the folder is removed; the operating system releases it when the process ends, however that
happens. So a process that can take the lock of a folder knows that the folder is unused and
removes it, each time that it makes a folder of its own. A process id would not do: ids are reused,
and a container does not see those of others.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows, where a file that a process has open cannot be removed
    _HAS_LOCKS = False

FOLDER_PREFIX = "dphh-run-"
_LOCK_FILE = ".lock"

_open_folders: dict[str, PrivateFolder] = {}


class PrivateFolder:
    """A folder of mode 0700 in the temporary directory.

    A forked process shares the folder's lock, but neither uses nor removes the folder.
    """

    def __init__(self) -> None:
        remove_abandoned_folders()
        self._owner = os.getpid()
        self.path = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
        named = Path(self.path, _LOCK_FILE)
        unnamed = Path(self.path, f"{_LOCK_FILE}-new") if _HAS_LOCKS else named
        self._lock = _take_lock(unnamed, os.O_CREAT)
        if self._lock is None:
            unnamed.unlink()  # a file system without locks: only this process removes the folder
        elif unnamed != named:
            unnamed.rename(named)
        _open_folders[self.path] = self

    def close(self) -> None:
        """Remove the folder and its contents. Does nothing if called again."""
        if _open_folders.pop(self.path, None) is None or os.getpid() != self._owner:
            return
        with suppress(OSError):  # Spark's Java process may have removed it first
            _remove_folder(self.path, self._lock)


def close_all() -> None:
    """Remove the folders of this process, just before it ends."""
    for folder in list(_open_folders.values()):
        folder.close()


def remove_abandoned_folders() -> None:
    """Remove folders that killed processes left in the temporary directory."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):  # the folder is another login's, or another process removed it
            status = folder.lstat()
            is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if not stat.S_ISDIR(status.st_mode) or not is_own:
                continue
            if (lock := _take_lock(folder / _LOCK_FILE)) is not None:
                _remove_folder(str(folder), lock)


def _take_lock(lock_file: Path, open_flags: int = 0) -> int | None:
    """The descriptor of a lock file that this process has locked; None if it cannot be locked."""
    flags = os.O_RDWR | open_flags
    if not _HAS_LOCKS:
        lock_file.unlink(missing_ok=bool(open_flags))  # fails while another process has it
        return os.open(lock_file, flags | os.O_CREAT, 0o600)
    lock = os.open(lock_file, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the lock is taken, or the file system has no locks
        os.close(lock)
        return None
    return lock


def _remove_folder(path: str, lock: int | None) -> None:
    """Remove rows first and the lock last, so that another process can complete the removal; and
    close the lock, before its file goes where an open file cannot."""
    try:
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _LOCK_FILE:
                with suppress(OSError):
                    Path(entry).unlink()
        if all(entry.name == _LOCK_FILE for entry in os.scandir(path)):
            if not _HAS_LOCKS and lock is not None:
                os.close(lock)
                lock = None
            shutil.rmtree(path, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)
