"""Where the rows of a frame, a view or a relation come from, as far as its query shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: At most this many files are listed by name.
FEW_FILES = 8
#: Hive-style partition folders (user=7/part-0.parquet) and the file in them.
_PARTITION_PATH = re.compile(r"[^/]*=[^/]*/.*", re.DOTALL)


@dataclass(frozen=True)
class Origin:
    """What a query shows without reading a row."""

    #: The paths and globs that it reads.
    files: tuple[str, ...] = ()
    #: Whether it reads nothing else.
    whole: bool = False
    #: The operation that may combine several users' rows into one, by the engine's name; '' if
    #: no visible operation does.
    mixes: str = ""


def folded(files: Iterable[str]) -> set[str]:
    """The files that an engine lists. Partition folders, and many files, are replaced by their
    parent folder: the number of files may be the number of users."""
    plain = {_PARTITION_PATH.sub("", file) for file in files}
    if len(plain) <= FEW_FILES:
        return plain
    return {file if file.endswith("/") else f"{file.rpartition('/')[0]}/" for file in plain}
