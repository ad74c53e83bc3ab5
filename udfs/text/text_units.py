"""Grapheme clusters for engines without them, and how bytes are spelled and read.

All engines use DuckDB's grapheme clusters, by the one definition in `sql/rows/text_units.sql`;
engines without one of their own call it here, a batch at a time. A byte is spelled as two
hexadecimal digits, since a text column cannot contain a single byte of "é".
"""

from __future__ import annotations

import pyarrow as pa

from dphh.udfs.text.tokens import tokens_of

#: Precedes the digits of bytes that are not UTF-8.
NO_TEXT = "\\x"


def graphemes(texts: pa.Array) -> pa.Array:
    """The list of extended grapheme clusters (UAX #29) of each text, which must be UTF-8."""
    return tokens_of(texts, "text", "graphemes(text)")


def read_bytes(digits: str) -> str:
    """These bytes as text, or, if they are not UTF-8, `\\x` and their digits."""
    try:
        return bytes.fromhex(digits).decode()
    except UnicodeDecodeError:
        return NO_TEXT + digits
