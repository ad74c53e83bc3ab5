"""Numbers and names as people read them, in a line of a terminal or on a page.

An item is whatever users wrote, and must not affect its surroundings: characters that control a
display or are invisible are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10
from shutil import get_terminal_size
from textwrap import wrap

from dphh.errors import escaped
from dphh.wording.unseen import replace_invisible


def number(value: float) -> str:
    """At least four significant digits, in plain notation: 0.3887, 33.87, 12,940."""
    digits = max(0, 3 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def numbers_in(value: object) -> Iterator[int | float]:
    """The numbers in a value of JSON: itself, or those of a list."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each)


def with_noun(count: int, noun: str) -> str:
    """The count and its noun: 1 user, 1,200 users."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def terminal_columns() -> int:
    """How many columns a line may take: those of the terminal, between 60 and 100; 100 without a
    terminal."""
    return max(60, min(100, get_terminal_size((100, 24)).columns))


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes: a character of Chinese or Japanese takes two,
    as do most emoji."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))


def one_line(text: str, columns: int = 60) -> str:
    """The text on one line, with invisible characters escaped: `\\x1b`. Cut to so many columns."""
    plain = replace_invisible(text, escaped)
    # Zero-width joiners are not printable; `replace_invisible` leaves those that a script needs.
    plain = "".join(c if c.isprintable() or c in "\u200c\u200d" else escaped(c) for c in plain)
    return _cut(plain, columns)


def visible_text(text: str, columns: int = 300) -> str:
    """The text with a symbol in place of each invisible character: `␛`, `⟨U+202E⟩`. Cut to so many
    columns. It is not escaped for HTML."""
    if not text.strip():
        text = text.replace(" ", "␣") or "∅"
    return _cut(replace_invisible(text, _symbol_of), columns)


def _symbol_of(character: str) -> str:
    if character == "\x7f":
        return "␡"
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def _cut(text: str, columns: int) -> str:
    # No character takes more than two columns. `width_of` imports `rich`, so it is called last.
    if 2 * len(text) <= columns or width_of(text) <= columns:
        return text
    text = text[:columns]
    while width_of(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def wrapped(text: str, indent: str = "", indent_below: str = "   ") -> list[str]:
    """The text as lines that fit the terminal: the first line with one indent, all others with
    another."""
    return wrap(
        text, terminal_columns() - 2, initial_indent=indent, subsequent_indent=indent_below,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def in_two_columns(labelled_texts: Sequence[tuple[str, str]]) -> list[str]:
    """Lines that fit the terminal, with the labels in one column and their texts in another."""
    width = max((len(label) for label, _ in labelled_texts), default=0)
    return [
        line
        for label, text in labelled_texts
        for line in wrapped(text, f"  {label:<{width}}  ", " " * (width + 4)) or [f"  {label}"]
    ]
