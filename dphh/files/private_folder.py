"""Private folders for spilled rows: readable by their user only, and removed with their process.

Each folder contains a lock file. The process takes the lock before the folder gets its final name
and keeps it until the folder is removed; the operating system releases it when the process ends,
however that happens. So whoever can take the lock of a folder knows that it is unused and removes
it: `sweep` does so each time a new folder is made. A process id would not do: ids are reused, and a
container does not see those of others.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import tempfile
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

# On Windows there are no locks: a killed process leaves its folders behind.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: Completely made folders have this prefix and contain a lock.
PREFIX = "dphh-run-"
_PREFIX_OF_NEW = "dphh-new-"
_LOCK = ".lock"
#: Seconds after which nobody makes a folder any more that has no final name yet.
_LONGEST_MAKING = 3600

_open_folders: dict[str, PrivateFolder] = {}
_folders_lock = threading.Lock()


class PrivateFolder:
    """A folder of mode 0700 in the temporary directory; files in it are 0600 where ACLs work.

    A forked process shares the folder's lock, but neither uses nor removes the folder.
    """

    def __init__(self) -> None:
        sweep()
        made = tempfile.mkdtemp(prefix=_PREFIX_OF_NEW)
        self._owner = os.getpid()
        self._lock = _lock_of(Path(made) / _LOCK)
        _restrict_to_owner(made)
        self.path = made.replace(_PREFIX_OF_NEW, PREFIX)
        Path(made).rename(self.path)  # from here on, other processes may try its lock
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
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        remove_if_left(folder)
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX_OF_NEW}*"):
        with suppress(OSError):  # as in `remove_if_left`; a folder without its name has no rows
            if _is_ours(folder) and folder.stat().st_mtime < time.time() - _LONGEST_MAKING:
                _remove_folder(str(folder))


def remove_if_left(folder: Path) -> None:
    """Remove a private folder if its process has ended; otherwise leave it alone."""
    if fcntl is None:
        return
    with suppress(OSError):  # the folder is another user's, or another process removed it first
        if _is_ours(folder) and (lock := _take_lock(folder / _LOCK)) is not None:
            try:
                _remove_folder(str(folder))
            finally:
                os.close(lock)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _lock_of(path: Path) -> int | None:
    if fcntl is None:
        return None
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks: the folder is never swept
        path.unlink()
        os.close(lock)
        return None
    return lock


def _take_lock(path: Path) -> int | None:
    """Take the lock of a folder, if it is free. A folder without a lock file is not swept."""
    lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _remove_folder(path: str) -> None:
    """Remove rows first and the lock last, so that a later sweep completes an interrupted one."""
    for entry in list(os.scandir(path)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name != _LOCK:
            with suppress(OSError):
                Path(entry).unlink()
    if all(entry.name == _LOCK for entry in os.scandir(path)):
        shutil.rmtree(path, ignore_errors=True)


def _restrict_to_owner(path: str) -> None:
    """Give group and others no access to files that an engine makes here, whatever mode it asks.

    Uses a default ACL (`setfacl -d -m u::rwx,g::-,o::-`), since a umask would apply to the whole
    process. Without ACLs, the folder's own mode keeps others out.
    """
    set_attribute = getattr(os, "setxattr", None)
    if set_attribute is None:
        return
    owner, group, others, nobody = 0x01, 0x04, 0x20, 0xFFFFFFFF
    acl = struct.pack("<I", 2)  # the version of the ACL format
    for who, may in ((owner, 0o7), (group, 0), (others, 0)):
        acl += struct.pack("<HHI", who, may, nobody)
    with suppress(OSError):
        set_attribute(path, "system.posix_acl_default", acl)
