"""Texts as cells of a CSV file, so that no spreadsheet runs a text as a formula.

A spreadsheet recognises a formula by the first character of a cell, after characters that it skips
as white space or as invisible. A quote before them marks the cell as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dphh.wording.lines import UNSEEN

if TYPE_CHECKING:
    import polars as pl

#: The signs that begin a formula: ASCII, full-width, small, superscript and subscript ones, and the
#: typographic minus.
_FORMULA_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−"
_IGNORED_BY_SPREADSHEETS = f"""[\\s{UNSEEN}"']*"""
_FORMULA_START = re.compile(f"[\t\r\n]|{_IGNORED_BY_SPREADSHEETS}[{_FORMULA_SIGNS}]")
#: Matches a separator at which some spreadsheets split a cell, and the formula sign that follows.
_FORMULA_START_AFTER_SEPARATOR = re.compile(
    f"([;|\t\r\n\x0b\x0c\x85\u2028\u2029]{_IGNORED_BY_SPREADSHEETS})([{_FORMULA_SIGNS}])"
)


def safe_cell(text: str) -> str:
    return ("'" if _FORMULA_START.match(text) else "") + _FORMULA_START_AFTER_SEPARATOR.sub(
        r"\1'\2", text
    )


def safe_list_cell(texts: Sequence[str]) -> str:
    """A cell with the texts as a JSON list. A sign that would begin a formula is escaped in it."""
    text = json.dumps(texts, ensure_ascii=False)
    return _FORMULA_START_AFTER_SEPARATOR.sub(
        lambda match: f"{match[1]}\\u{ord(match[2]):04x}", text
    )


def csv_of(frame: pl.DataFrame, separator: str = ",") -> bytes:
    """The frame as a CSV file, with all texts in quotes, and none that is a formula. It begins with
    a byte order mark, without which Excel takes it for no UTF-8."""
    import polars as pl

    safe = frame.with_columns(pl.col(pl.String).map_elements(safe_cell, pl.String))
    text = safe.write_csv(separator=separator, quote_style="non_numeric", include_bom=True)
    return text.encode()
