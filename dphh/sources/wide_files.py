"""Refuses files of very many columns: an engine would read all their names to use two of them.

The number of columns is at the start of a Parquet file's footer, so a few bytes suffice.
"""

from __future__ import annotations

import os
from pathlib import Path

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.sources.finding import files_named

#: An engine needs about five seconds for this many columns; for a million it needs minutes.
WIDEST = 1 << 17
#: The last bytes of a file; the four bytes before them are the footer's length.
_PARQUET_MAGIC = b"PAR1"
#: The footer begins with its version, a number, and the list of schema elements (in Thrift's
#: compact protocol): the first element is the root; the others are columns and nested columns.
_VERSION, _LIST, _LONG_LIST = 0x15, 0x19, 0xFC


def refuse_wide_files(corpus: Corpus) -> None:
    """Check local files; reads only their footers."""
    for place in corpus.where:
        for file in files_named(place):
            refuse_many_columns(file, columns_of_file(file))


def refuse_many_columns(file: str, columns: int) -> None:
    if columns > WIDEST:
        raise CorpusError(
            f"corpus: {file}: it has {columns:,} columns, and engines need too long for more "
            f"than {WIDEST:,}; write the needed columns to another file, "
            "and give that"
        )


def columns_of_file(file: str) -> int:
    """The number of columns of a file, including nested ones; 0 if it cannot be read."""
    try:
        with Path(file).open("rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(end - 8, 0))
            length, magic = opened.read(4), opened.read(4)
            start = end - 8 - int.from_bytes(length, "little")
            if magic != _PARQUET_MAGIC or start < 0:
                return 0
            opened.seek(start)
            return _schema_elements(opened.read(20)) - 1
    except OSError:
        return 0  # the engine will report what is wrong with the file


def _schema_elements(footer: bytes) -> int:
    """The length of the list of schema elements."""
    try:
        if footer[0] != _VERSION:
            return 1
        _, place = _read_number(footer, 1)
        if footer[place] != _LIST:
            return 1
        header = footer[place + 1]
        return _read_number(footer, place + 2)[0] if header == _LONG_LIST else header >> 4
    except IndexError:
        return 1


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """A variable-length integer (seven bits per byte, lowest first) and the position after it."""
    value = shift = 0
    while True:
        value |= (data[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if data[place - 1] < 0x80:
            return value, place
