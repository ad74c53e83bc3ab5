"""Texts as cells of a CSV file: no spreadsheet runs one as a formula.

A spreadsheet takes a text for a formula by its first sign, and reads over what it takes for white
space or does not see at all. A quote before it says that it is a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dphh.characters.unseen import UNSEEN

#: ASCII's, those of full and small width, raised, lowered, and the typographer's minus.
_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−"
_OVER = f"""[\\s{UNSEEN}"']*"""
_FIRST = re.compile(f"[\t\r\n]|{_OVER}[{_SIGNS}]")
#: Where a comma is the decimal point, spreadsheets begin a cell at these signs too, quoted or not.
_LATER = re.compile(f"([;|\t\r\n\x0b\x0c\x85\u2028\u2029]{_OVER})([{_SIGNS}])")


def cell(text: str) -> str:
    return ("'" if _FIRST.match(text) else "") + _LATER.sub(r"\1'\2", text)


def cell_of_list(texts: Sequence[str]) -> str:
    """As JSON, which begins with a bracket; the same texts when it is read."""
    said = json.dumps(texts, ensure_ascii=False)
    return _LATER.sub(lambda found: f"{found[1]}\\u{ord(found[2]):04x}", said)
