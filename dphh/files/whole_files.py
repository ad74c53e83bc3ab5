"""Files that are written whole or not at all, whoever reads or kills meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """A reader sees the old file or the new one, never half of it."""
    with _written_beside(path, data, mode) as written:
        written.replace(path)


def write_once(path: Path, data: bytes, mode: int = 0o666) -> None:
    """A whole file or none, and never over another one: that is a FileExistsError."""
    with _written_beside(path, data, mode) as written:
        os.link(written, path)


@contextmanager
def _written_beside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(mode & ~umask)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
