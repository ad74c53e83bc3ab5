"""Finds what is wrong in a text file: the line number and the fault, never the line's content."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.sources.finding import files_named

#: Patterns of DuckDB's own messages, before and after the line that it quotes.
_ERROR_LINE = re.compile(r"^[\w ]*Error: CSV Error on Line: (\d{1,18})\n")
_ERROR_FIELDS = re.compile(r"\nExpected Number of Columns: (\d{1,6}) Found: (\d{1,6})\nPossible ")
_ERROR_OPEN_QUOTE = re.compile(r"\nValue with unterminated quote found")
#: Byte order marks of other encodings.
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
#: Longer lines are not searched for faults.
_LONGEST_LINE = 1 << 25


@contextmanager
def reading_text(corpus: Corpus) -> Iterator[None]:
    """Replace an engine's error about a text file by the wrong line's number and its fault.
    (`corpus`: as the caller gave it, with file names.)"""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as problem:
        said = str(problem)
    else:
        return
    raise CorpusError(_fault_of_encoding(corpus) or _fault_of_rows(corpus, said))


def _fault_of_encoding(corpus: Corpus) -> str | None:
    """An error text if a line of a file is not UTF-8, with the encoding that it may have."""
    for file in _files_of_corpus(corpus):
        with pa.input_stream(file, compression="detect") as stream:
            mark = _BYTE_ORDER_MARKS.get(stream.read(2))
        if mark is not None:
            return _encoding_message(file, 1, f"and begins as {mark} does", mark)
        for number, line in enumerate(_lines_of_file(file), start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return _encoding_message(
                    file, number, "nor marked as another encoding", "WINDOWS-1252"
                )
    return None


def refuse_other_encodings(file: str, head: bytes) -> None:
    """By how a file begins: its first line would be taken for one column of odd characters."""
    mark = _BYTE_ORDER_MARKS.get(head[:2])
    if mark is None and head[:2].count(0) == 1:  # of a letter, one of two bytes is zero
        mark = "UTF-16LE" if head[1:2] == b"\0" else "UTF-16BE"
    if mark is not None:
        raise CorpusError(_encoding_message(file, 1, f"and begins as {mark} does", mark))


def _encoding_message(file: str, line: int, found: str, encoding: str) -> str:
    return (
        f"corpus: {file}: line {line:,} is not UTF-8 ({found}), which is how CSV and JSON lines "
        f"are read; write it anew, as by `iconv -f {encoding} -t UTF-8`, if that is what it is"
    )


def _fault_of_rows(corpus: Corpus, said: str) -> str:
    if any(
        re.search(r"\.(jsonl|ndjson)(\.|$)", file, re.IGNORECASE)
        for file in _files_of_corpus(corpus)
    ):
        return _fault_of_objects(corpus)
    where = ", ".join(corpus.where)
    at = f"line {int(line[1]):,}" if (line := _ERROR_LINE.search(said)) else "a line"
    if (fields := _ERROR_FIELDS.findall(said)) and line:
        wanted, found = fields[-1]
        fault = (
            f"has {found} fields where the first line has {wanted}: quote fields with delimiters"
        )
    elif _ERROR_OPEN_QUOTE.search(said):
        fault = "opens a quote that is never closed: double the quotes within fields"
    else:
        fault = "cannot be read as CSV, or is longer than 2 MB"
    return f"corpus: {where}: {at} {fault} (docs/sources.md)"


def _fault_of_objects(corpus: Corpus) -> str:
    for file in _files_of_corpus(corpus):
        for number, line in enumerate(_lines_of_file(file), start=1):
            try:
                row = json.loads(line) if line.strip() else {}
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                return f"corpus: {file}: line {number:,} is no JSON object (docs/sources.md)"
    return (
        f"corpus: {', '.join(corpus.where)}: it cannot be read as JSON lines, one object of at "
        "most 32 MB a line (docs/sources.md)"
    )


def _files_of_corpus(corpus: Corpus) -> list[str]:
    return [file for place in corpus.where for file in files_named(place)]


def _lines_of_file(file: str) -> Iterator[bytes]:
    with pa.input_stream(file, compression="detect") as stream:
        buffered = io.BufferedReader(stream)
        while line := buffered.readline(_LONGEST_LINE):
            yield line
