"""Texts of a release as a page or a picture may show them: harmless, whatever the texts say.

An item is whatever people wrote. On a page it must stay in its place: it is escaped, what steers
writing from right to left is shown and not obeyed, and what would not be seen is made visible.
"""

from __future__ import annotations

from html import escape
from unicodedata import east_asian_width

from dphh.characters.unseen import written_out

#: A text wider than so many columns is cut on pages; the table has it whole.
LONGEST = 300

_CONTROLS = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}


def shown(text: str, longest: int = LONGEST) -> str:
    """The text with what controls a screen written as symbols: `␛` for an escape, `⟨U+202E⟩`."""
    text = _cut(text, longest)
    if not text.strip():
        text = "".join("␣" if c == " " else c for c in text) or "∅"
    return written_out(text, _symbol)


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


def _symbol(character: str) -> str:
    return _CONTROLS.get(character) or f"⟨U+{ord(character):04X}⟩"
