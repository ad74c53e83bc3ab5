"""Folders for rows that spill: for their user alone, and gone when their process is.

A folder's life is that of a lock. Its process holds the lock from before the folder has its name
until the folder is removed; the system drops it when the process ends, however that happens. So
whoever gets the lock of a folder knows that nobody uses it any more, and removes it: `sweep`, each
time that a new folder is made. A process id would not say as much: ids are used again, and a
container sees no other's.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import tempfile
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

# On Windows folders go with their runs, and what a killed process left stays.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: Folders that are whole have this name, and a lock in them.
PREFIX = "dphh-run-"
_NEW = "dphh-new-"
_LOCK = ".lock"

_living: dict[str, PrivateFolder] = {}
_changing = threading.Lock()


class PrivateFolder:
    """A folder of mode 0700 in the temporary directory; files in it are 0600 where ACLs are kept.

    A fork has the folder's lock too, and neither uses nor removes the folder.
    """

    def __init__(self) -> None:
        sweep()
        made = tempfile.mkdtemp(prefix=_NEW)
        self._owner = os.getpid()
        self._lock = _locked(Path(made) / _LOCK)
        _owner_alone(made)
        self.path = made.replace(_NEW, PREFIX)
        Path(made).rename(self.path)  # from here on others may look for its lock
        with _changing:
            _living[self.path] = self

    def close(self) -> None:
        """Remove the folder and what is in it. A second time does nothing."""
        with _changing:
            if _living.pop(self.path, None) is None or os.getpid() != self._owner:
                return
        with suppress(OSError):  # Spark's Java may have been first
            _remove(self.path)
        if self._lock is not None:
            os.close(self._lock)


def close_all() -> None:
    """Remove the folders of this process: its end is near, and nobody else will."""
    for folder in list(_living.values()):
        folder.close()


def sweep() -> None:
    """Remove what processes that were killed have left in the temporary directory."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        remove_if_left(folder)


def remove_if_left(folder: Path) -> None:
    """Remove a private folder whose process has ended; leave all others alone."""
    if fcntl is None:
        return
    with suppress(OSError):  # another user's, or another sweeper was first
        if _is_ours(folder) and (lock := _taken(folder / _LOCK)) is not None:
            try:
                _remove(str(folder))
            finally:
                os.close(lock)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _locked(path: Path) -> int | None:
    if fcntl is None:
        return None
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks: nobody can tell, so nobody sweeps it
        path.unlink()
        os.close(lock)
        return None
    return lock


def _taken(path: Path) -> int | None:
    """The lock, if nobody holds it; a folder without one is not swept."""
    lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _remove(path: str) -> None:
    """Rows first and the lock last, so that what is cut short is swept another time."""
    for entry in list(os.scandir(path)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name != _LOCK:
            with suppress(OSError):
                Path(entry).unlink()
    if all(entry.name == _LOCK for entry in os.scandir(path)):
        shutil.rmtree(path, ignore_errors=True)


def _owner_alone(path: str) -> None:
    """Whatever an engine asks for when it makes a file here, group and others get nothing.

    As a default ACL (`setfacl -d -m u::rwx,g::-,o::-`), since a umask would be the whole process's.
    Where there are none, the folder's own mode keeps others out.
    """
    set_attribute = getattr(os, "setxattr", None)
    if set_attribute is None:
        return
    owner, group, others, nobody = 0x01, 0x04, 0x20, 0xFFFFFFFF
    acl = struct.pack("<I", 2)  # the version of its form
    for who, may in ((owner, 0o7), (group, 0), (others, 0)):
        acl += struct.pack("<HHI", who, may, nobody)
    with suppress(OSError):
        set_attribute(path, "system.posix_acl_default", acl)
