"""Atomic writes: a file is written whole or not at all, even if the process is killed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dphh.errors import UsageError


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write the file; a concurrent reader sees the old file or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(mode & ~umask)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def write_named(option: str, path: Path, data: bytes, start: bytes) -> None:
    """Write a file that an option names, unless a file of another kind is there.

    start: the first bytes of every file of this kind.
    """
    refuse_other_file(option, path, start)
    try:
        write_whole(path, data)
    except OSError as problem:
        raise UsageError(
            f"{option}: {path} could not be written ({problem.strerror}); give another path"
        ) from None


def refuse_other_file(option: str, path: Path, start: bytes) -> None:
    """Refuse to write over a file that does not begin as what is written: data, say, or a ledger.

    start: the first bytes of every file of this kind.
    """
    if not path.is_file():
        return  # new; or not a file, and writing it will fail with the reason
    try:
        with path.open("rb") as file:
            found: bytes | None = file.read(len(start))
    except OSError:
        found = None  # it cannot be read, so its kind is unknown
    if found not in (b"", start):
        raise UsageError(
            f"{option}: {path} is a file of another kind, and would be lost; name another file, "
            "or remove this one first"
        )


def refuse_other_table(option: str, path: Path, names: Sequence[str]) -> None:
    """Refuse to write a Parquet file over one that has other columns, or over any other file."""
    refuse_other_file(option, path, b"PAR1")
    if not path.is_file() or not path.stat().st_size:
        return
    import pyarrow as pa  # slow to import
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException):
        if pq.read_schema(path).names == [*names]:
            return
    raise UsageError(
        f"{option}: {path} is another table, and would be lost; name another file, or remove this "
        "one first"
    )
