"""Which files of a corpus may hold rows of the periods that a run reads.

A file of another week is not data of this week's run, so a new file does not change a request for
this week. A Parquet footer states the first and last date of its file, and a folder's name may
state its date. Any other file may hold rows of any period.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.files.paths import files_of, is_remote, keeps_waiting
from dphh.ledger.sources import Source
from dphh.rows.period import PeriodColumn, Spans


def with_files_of_periods(source: Source) -> Source:
    """The same source, restricted to the files that may hold rows of its periods."""
    period, periods = source.period, source.periods
    if source.kind != "path" or period is None or periods is None:
        return source
    if any(map(is_remote, source.where)):
        return source
    files = list(dict.fromkeys(chain.from_iterable(map(files_of, source.where))))
    some = tuple(file for file in files if _may_hold(file, period, periods))
    return replace(source, where=some) if some else source


def _may_hold(file: str, period: PeriodColumn, read: Spans) -> bool:
    found = _first_and_last_period(file, period)
    return found is None or any(found[0] <= last and first <= found[1] for first, last in read)


def _first_and_last_period(file: str, period: PeriodColumn) -> tuple[int, int] | None:
    """The first and last period of a file's rows; None if neither footer nor folder states them."""
    if keeps_waiting(file):
        return None
    try:
        footer = pq.read_metadata(file)
    except (OSError, pa.ArrowException):
        return _period_of_folder(file, period)
    names = [footer.schema.column(place).path for place in range(footer.num_columns)]
    if period.column not in names:
        return _period_of_folder(file, period)
    place = names.index(period.column)
    groups = [footer.row_group(group).column(place) for group in range(footer.num_row_groups)]
    ends: list[Any] = []
    for column in groups:
        told = column.statistics
        if told is None or not told.has_min_max or told.null_count != 0:
            return None
        try:
            ends += [period.at(told.min), period.at(told.max)]
        except (OverflowError, ValueError):  # an infinite date is none of Python's
            return None
    return None if not ends or None in ends else (min(ends), max(ends))


def _period_of_folder(file: str, period: PeriodColumn) -> tuple[int, int] | None:
    spelled = re.search(rf"(?:^|/){re.escape(period.column)}=([^/]*)/", file)
    if spelled is None:
        return None
    try:
        text = spelled[1]
        number = int(text) if period.by == "number" else period.at(dt.date.fromisoformat(text))
    except ValueError:
        return None
    return None if number is None else (number, number)
