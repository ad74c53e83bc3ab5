"""Numbers and names as people read them, on one line."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from shutil import get_terminal_size
from textwrap import wrap

from dphh.errors import escaped
from dphh.wording.unseen import written_out

#: Joiners are kept where they are legitimate (`wording.unseen`), though Python calls them
#: unprintable.
_JOINERS = "\u200c\u200d"


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
    """Columns on a terminal: two per character of Chinese, Japanese and most emoji."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))


def shorten(item: str, longest: int = 60) -> str:
    """The text on one line, cut to `longest` columns, with invisible characters escaped."""
    plain = "".join(
        c if c.isprintable() or c in _JOINERS else escaped(c) for c in written_out(item, escaped)
    )
    if width_of(plain) <= longest:
        return plain
    plain = plain[:longest]
    while width_of(plain) > longest - 1:
        plain = plain[:-1]
    return plain + "…"


def wrapped(text: str, first: str = "", below: str = "   ") -> list[str]:
    """The text as lines that fit the terminal."""
    return wrap(
        text, terminal_columns() - 2, initial_indent=first, subsequent_indent=below,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def in_two_columns(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Labels, and beside them what is said of each, in lines that fit the terminal."""
    width = max((len(label) for label, _ in lines), default=0)
    below = " " * (width + 4)
    return [
        line
        for label, said in lines
        for line in wrapped(said, f"  {label:<{width}}  ", below) or [f"  {label}"]
    ]
