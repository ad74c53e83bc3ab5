"""Files of very many columns are refused: an engine reads all their names for the sake of two.

Of Parquet, how many there are stands at the start of a file's footer: a few bytes tell it.
"""

from __future__ import annotations

import os
from pathlib import Path

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.sources.reading import files_named

#: As many take an engine some five seconds; a million take minutes.
WIDEST = 1 << 17
#: At the end of a file: how long its footer is, and this.
_MAGIC = b"PAR1"
#: The footer begins with its version, a number, and the list of the schema's elements (Thrift's
#: compact protocol): the first is the row, the others are columns, and what columns hold.
_VERSION, _LIST, _LONG_LIST = 0x15, 0x19, 0xFC


def refuse_wide_files(corpus: Corpus) -> None:
    """Of files of this machine; looks at their footers alone."""
    for place in corpus.where:
        for file in files_named(place):
            refuse_many_columns(file, columns_of_file(file))


def refuse_many_columns(file: str, columns: int) -> None:
    if columns > WIDEST:
        raise CorpusError(
            f"corpus: {file}: it has {columns:,} columns, and no engine reads the names of more "
            f"than {WIDEST:,} in good time; write the columns that matter to a file of their own, "
            "and name that"
        )


def columns_of_file(file: str) -> int:
    """How many columns a file has, those within others too; 0 where that is not told."""
    try:
        with Path(file).open("rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(end - 8, 0))
            length, magic = opened.read(4), opened.read(4)
            start = end - 8 - int.from_bytes(length, "little")
            if magic != _MAGIC or start < 0:
                return 0
            opened.seek(start)
            return _elements(opened.read(20)) - 1
    except OSError:
        return 0  # the engine will say what is wrong with it


def _elements(footer: bytes) -> int:
    """How long the list of the schema's elements is."""
    try:
        if footer[0] != _VERSION:
            return 1
        _, place = _number(footer, 1)
        if footer[place] != _LIST:
            return 1
        header = footer[place + 1]
        return _number(footer, place + 2)[0] if header == _LONG_LIST else header >> 4
    except IndexError:
        return 1


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; and the place behind it."""
    value = shift = 0
    while True:
        value |= (data[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if data[place - 1] < 0x80:
            return value, place
