"""Texts of a release as a page or a picture may show them: harmless, whatever the texts say.

An item is whatever people wrote. On a page it must stay in its place: it is escaped, what steers
writing from right to left is shown and not obeyed, and what would not be seen is made visible.
"""

from __future__ import annotations

import re
from html import escape
from unicodedata import east_asian_width

#: What makes a spreadsheet read a text as a formula, or skip to what does.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

#: Where a comma is the decimal point, spreadsheets begin a cell at these signs too, quoted or not:
#: a place within a text at which one would be run, as an expression of Python's and of Polars'.
LATER_FORMULA = r"""([;|\t\r\n][\s"']*)([=+\-@＝＋－＠])"""

#: A text wider than so many columns is cut on pages; the table has it whole.
LONGEST = 300

#: What steers the direction of writing, breaks lines, or is not seen at all. Joiners stay: emoji,
#: Persian and Indic scripts are written with them. U+FFFE and U+FFFF may stand in no XML.
_UNSEEN = re.compile(
    "[\x80-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_CONTROLS = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}
#: Flags of England, Scotland and Wales are spelled in letters that are not seen otherwise.
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e007a]+\U000e007f")


def shown(text: str, longest: int = LONGEST) -> str:
    """The text with what controls a screen written as symbols: `␛` for an escape, `⟨U+202E⟩`."""
    text = _cut(text, longest)
    if not text.strip():
        text = "".join("␣" if c == " " else c for c in text) or "∅"
    flags = _FLAG.findall(text)
    plain = [_symbols(part) for part in _FLAG.split(text)]
    return "".join(a + b for a, b in zip(plain, [*flags, ""], strict=True))


def html(text: str, longest: int = LONGEST) -> str:
    """For HTML: its own direction of writing, and none of its neighbours' business."""
    return f"<bdi>{escape(shown(text, longest))}</bdi>"


def svg(text: str, longest: int = LONGEST) -> str:
    """For the inside of an SVG text, or of any XML."""
    return escape(shown(text, longest))


def _cut(text: str, longest: int) -> str:
    """So many columns of it: Chinese, Japanese and emoji take two a character."""
    if 2 * len(text) <= longest:
        return text
    width = 0
    for place, character in enumerate(text):
        width += 2 if east_asian_width(character) in "WF" else 1
        if width > longest:
            return text[: place - 1] + "…"
    return text


def _symbols(text: str) -> str:
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.translate(_CONTROLS))
