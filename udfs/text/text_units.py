"""What a character is, for engines that cannot tell, and how bytes are written and read.

Grapheme clusters are DuckDB's, on every engine: there is one definition,
`sql/rows/text_units.sql`, and engines without one of their own call it here, a batch
at a time. Bytes are spelled as two hexadecimal digits each, since a column of text can hold no
single byte of "é".
"""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import pyarrow as pa

from dphh.sql import query

#: Before the digits of bytes that are no text.
NO_TEXT = "\\x"
_OF_THREAD = threading.local()


def graphemes(texts: pa.Array) -> pa.Array:
    """The extended grapheme clusters (UAX #29) of each text, which must be UTF-8: a list each."""
    con = _connection()
    con.register("texts", pa.table({"text": texts}))
    try:
        lists = con.sql("SELECT graphemes(text) AS clusters FROM texts").to_arrow_table()
    finally:
        con.unregister("texts")
    whole: Any = lists.column("clusters").cast(pa.list_(pa.string())).combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def read_bytes(digits: str) -> str:
    """The text that these bytes are, or, where they are none, `\\x` and their digits."""
    try:
        return bytes.fromhex(digits).decode()
    except UnicodeDecodeError:
        return NO_TEXT + digits


def _connection() -> duckdb.DuckDBPyConnection:
    """One for each thread; it holds the macros and nothing else. One thread keeps the order."""
    con = getattr(_OF_THREAD, "con", None)
    if con is None:
        con = duckdb.connect(":memory:", config={"threads": 1})
        con.execute("SET enable_progress_bar = false")
        con.execute(query("text_units"))
        _OF_THREAD.con = con
    return con
