"""Texts of a release made safe for a page or a chart.

An item is whatever users wrote. On a page it must not affect its surroundings: it is escaped for
HTML, and characters that reverse text or are invisible are replaced by visible symbols.
"""

from __future__ import annotations

from unicodedata import east_asian_width

from dphh.wording.unseen import written_out

#: A wider text is cut on pages; the release's table has it whole.
LONGEST = 300

_SYMBOLS_OF_CONTROLS = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}


def shown(text: str, longest: int = LONGEST) -> str:
    """The text with control characters as symbols: `␛` for an escape, `⟨U+202E⟩`."""
    text = _cut_to_columns(text, longest)
    if not text.strip():
        text = "".join("␣" if c == " " else c for c in text) or "∅"
    return written_out(text, _symbol_of)


def _cut_to_columns(text: str, longest: int) -> str:
    """The text cut to `longest` columns; Chinese, Japanese and emoji take two per character."""
    if 2 * len(text) <= longest:
        return text
    width = 0
    for place, character in enumerate(text):
        width += 2 if east_asian_width(character) in "WF" else 1
        if width > longest:
            return text[: place - 1] + "…"
    return text


def _symbol_of(character: str) -> str:
    return _SYMBOLS_OF_CONTROLS.get(character) or f"⟨U+{ord(character):04X}⟩"
