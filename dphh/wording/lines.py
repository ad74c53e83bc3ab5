"""Numbers and names as people read them, in a line of a terminal or on a page.

An item is whatever users wrote, and must not affect its surroundings: characters that control a
display or are invisible are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from shutil import get_terminal_size
from textwrap import wrap

from dphh.errors import escaped
from dphh.wording.unseen import replace_invisible

#: `str.isprintable` is false for these, but `replace_invisible` leaves them only where scripts need
#: them.
_ZERO_WIDTH_JOINERS = "\u200c\u200d"


def number(value: float) -> str:
    """At least four significant digits, in plain notation: 0.3887, 33.87, 12,940."""
    digits = max(0, 3 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def terminal_columns() -> int:
    """The line width: the terminal's columns, between 60 and 100; 100 without a terminal."""
    return max(60, min(100, get_terminal_size((100, 24)).columns))


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes: two for a character of Chinese or Japanese and
    for most emoji."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))


def shorten(item: str, longest: int = 60) -> str:
    """The text on one line, cut to `longest` columns, with invisible characters escaped."""
    plain = replace_invisible(item, escaped)
    plain = "".join(c if c.isprintable() or c in _ZERO_WIDTH_JOINERS else escaped(c) for c in plain)
    return _cut(plain, longest)


def visible_text(text: str, longest: int = 300) -> str:
    """The text for a page, cut to `longest` columns, with a symbol in place of each invisible
    character: `␛`, `⟨U+202E⟩`. The page's template escapes it for HTML."""
    if not text.strip():
        text = "".join("␣" if c == " " else c for c in text) or "∅"
    return _cut(replace_invisible(text, _symbol_of), longest)


def _symbol_of(character: str) -> str:
    if character == "\x7f":
        return "\u2421"
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def _cut(text: str, columns: int) -> str:
    # No character has more than two columns, so a short text is measured without importing `rich`.
    if 2 * len(text) <= columns or width_of(text) <= columns:
        return text
    text = text[:columns]
    while width_of(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def wrapped(text: str, first: str = "", below: str = "   ") -> list[str]:
    """The text as lines that fit the terminal. `first` and `below` indent the first line and the
    lines below it."""
    return wrap(
        text, terminal_columns() - 2, initial_indent=first, subsequent_indent=below,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def in_two_columns(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Labels and their texts as lines that fit the terminal: labels in one column, texts in the
    other."""
    width = max((len(label) for label, _ in lines), default=0)
    below = " " * (width + 4)
    return [
        line
        for label, said in lines
        for line in wrapped(said, f"  {label:<{width}}  ", below) or [f"  {label}"]
    ]
