"""Atomic writes: a file is written whole or not at all, even if the process is killed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from uuid import uuid4

from dphh.errors import UnreachableError, UsageError

_FULL_OR_FAILING = {errno.ENOSPC, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write the file; a concurrent reader sees the old file or the new one, never a part."""
    unfinished = path.parent / f".{path.name}.{uuid4().hex}"
    new_file = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(unfinished, new_file, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_unless_other_file(
    option: str, path: Path, data: bytes, own_start: bytes = b"", *, replace: bool = False
) -> None:
    """Write the file that an option names. Unless `replace`, an existing file is overwritten only
    if it is empty, or begins with `own_start`, the first bytes of every file of this kind; others,
    such as data or a ledger, are refused."""
    try:
        if not replace and path.is_file() and path.stat().st_size > 0:
            with path.open("rb") as file:
                if not own_start or file.read(len(own_start)) != own_start:
                    raise UsageError(
                        f"{option}: the file {path} exists, and would be lost; name another one, "
                        "or remove this one first"
                    )
        write_whole(path, data)
    except OSError as problem:
        raise unwritable_error(option, path, problem) from None


def unwritable_error(option: str, path: Path, problem: OSError) -> UsageError | UnreachableError:
    """The error that says why a path that an option names could not be written. A full disk is no
    mistake of the caller: once there is room, the same call succeeds."""
    said = f"{option}: {path} could not be written ({problem.strerror}); "
    if problem.errno in _FULL_OR_FAILING:
        return UnreachableError(f"{said}make room and ask again, or give another path")
    return UsageError(f"{said}give another path")
