"""Numbers and names as people read them, on one line."""

from __future__ import annotations

from math import floor, log10


def number(value: float) -> str:
    """Four digits or all before the point, written out: 0.3887, 33.87, 12,940."""
    digits = max(0, 3 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shorten(item: str, longest: int = 60) -> str:
    """One line of it, with what a terminal would not show written out."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in item)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
