"""Where the rows of a frame, a view or a relation come from, as far as its query tells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: So many files are listed by name.
FEW_FILES = 8
#: What folders' names spell (user=7/part-0.parquet), and the file in them.
_PARTITIONS = re.compile(r"[^/]*=[^/]*/.*", re.DOTALL)


@dataclass(frozen=True)
class Origin:
    """What a query tells, without a row of it."""

    #: Paths and globs that it reads.
    files: tuple[str, ...] = ()
    #: Whether these are all that it reads.
    whole: bool = False
    #: What in it may make one row of several users' rows, by the engine's name; '' where nothing
    #: that can be seen does.
    mixes: str = ""


def folded(files: Iterable[str]) -> set[str]:
    """Files as an engine lists them; of many, and of what folders' names spell, the folders: how
    many files there are may be how many users."""
    plain = {_PARTITIONS.sub("", file) for file in files}
    if len(plain) <= FEW_FILES:
        return plain
    return {file if file.endswith("/") else f"{file.rpartition('/')[0]}/" for file in plain}
