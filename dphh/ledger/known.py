"""Whether a ledger knows data as private. Such data cannot be declared public.

Files are recognised by path, by identity on the disk, by their marks if they were moved, and by
their bytes if they were copied. The result of a query over them, or a rewritten part of a file, is
not recognised.
"""

from __future__ import annotations

import filecmp
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dphh.ledger import records
from dphh.ledger.book import Ledger
from dphh.ledger.marks import marks
from dphh.ledger.schema import reading
from dphh.ledger.sources import Places, Source, places


def places_read_by(source: Source) -> Places:
    """The files that a source reads, by a path or by a query; labels of frames do not identify
    data."""
    return replace(places(source.absolute()), labels=frozenset())


def share_data(one: Places, other: Places) -> bool:
    return one.overlap(other) or _have_equal_files(one.paths, other.paths)


def is_known(ledger: Ledger, source: Source) -> bool:
    """Whether any corpus of the ledger, named or not, shares data with a source."""
    here = places_read_by(source)
    with reading(ledger.path) as con:
        if con is None:
            return False
        accounts, of_files = records.accounts(con), marks(con)
    found = of_files.of_files(here.paths)
    if any(of_files.known_to(account.id, found) for account in accounts):
        return True
    known = [account.source for account in accounts] + [run.source for run in ledger.runs()]
    return any(
        share_data(places_read_by(each), here) for each in {repr(s): s for s in known}.values()
    )


def _have_equal_files(some: Iterable[str], others: Iterable[str]) -> bool:
    sizes = _files_by_size(others)
    for size, files in _files_by_size(some).items():
        for file in files:
            for other in sizes.get(size, ()):
                with suppress(OSError):
                    if filecmp.cmp(file, other, shallow=False):
                        return True
    return False


def _files_by_size(files: Iterable[str]) -> dict[int, list[str]]:
    """The files that are not empty, grouped by size in bytes."""
    found: dict[int, list[str]] = defaultdict(list)
    for file in files:
        with suppress(OSError):
            if Path(file).is_file() and (size := Path(file).stat().st_size):
                found[size].append(file)
    return found
