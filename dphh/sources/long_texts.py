"""Lengths of the longest texts in Parquet files, found without decoding the texts of all rows.

A dictionary page may contain one text of 10 MB that a million rows refer to, and an engine decodes
2,048 rows at a time. For nearly all files, footers and dictionaries show that there is no such
text. For the others, the lengths of the rows are read, with dictionaries left encoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_TEXT_TYPES = {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
#: Bytes of a footer's signature: a nonce of 12 and a tag of 16.
SIGNATURE = 28
#: How many rows' lengths are read at a time if the dictionary is left encoded.
_ROWS_AT_ONCE = 1 << 16


def longest_texts(files: Iterable[str], column: str, rows: int, fits: int) -> Any:
    """The lengths in bytes of the `rows` longest texts of a column, in descending order. Row groups
    in which any `rows` texts take at most `fits` bytes together are skipped."""
    longest = np.zeros(0, dtype=np.int64)
    for file in files:
        try:
            for lengths in _lengths_in_file(file, column, rows, fits):
                both = np.concatenate([longest, lengths])
                longest = np.sort(both)[::-1][:rows]
        except (OSError, pa.ArrowException):
            continue  # the engine will report what is wrong with the file
    return longest


def _lengths_in_file(file: str, column: str, rows: int, fits: int) -> Any:
    opened = pq.ParquetFile(file)
    footer = opened.metadata
    places = [
        place for place in range(footer.num_columns) if footer.schema.column(place).path == column
    ]
    if not places or footer.schema.column(places[0]).physical_type not in _TEXT_TYPES:
        return
    if _has_signed_footer(file, footer):
        return  # some columns are encrypted; reading one would make Arrow abort the process
    dictionaries = pq.ParquetFile(file, read_dictionary=[column])
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(places[0])
        size = chunk.total_uncompressed_size
        if min(rows, chunk.num_values) * size <= fits:
            continue  # even if each row's text were as long as the whole chunk
        longest = _longest_of_dictionary(dictionaries, group, column)
        if longest * min(rows, chunk.num_values) + size <= fits:
            continue
        yield from _lengths_of_rows(
            dictionaries if longest * _ROWS_AT_ONCE > fits else opened, group, column
        )


def _has_signed_footer(file: str, footer: pq.FileMetaData) -> bool:
    """A plain footer of a file with encrypted columns is followed by a nonce and a tag."""
    with Path(file).open("rb") as opened:
        opened.seek(-8, os.SEEK_END)
        written = int.from_bytes(opened.read(4), "little")
    return written - int(footer.serialized_size) == SIGNATURE


def _longest_of_dictionary(opened: Any, group: int, column: str) -> int:
    """The longest text of a chunk's dictionary; reading one row loads the whole dictionary."""
    first = next(opened.iter_batches(1, row_groups=[group], columns=[column]), None)
    if first is None or not pa.types.is_dictionary(first.column(0).type):
        return 0
    return int(pc.max(pc.binary_length(first.column(0).dictionary)).as_py() or 0)


def _lengths_of_rows(opened: Any, group: int, column: str) -> Any:
    for batch in opened.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=[column]):
        texts = batch.column(0)
        if pa.types.is_dictionary(texts.type):
            of_each = pc.binary_length(texts.dictionary).fill_null(0)
            lengths = of_each.take(texts.indices)
        else:
            lengths = pc.binary_length(texts)
        yield lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
