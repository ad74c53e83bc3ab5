"""Regular expressions: the owner writes RE2, as for every engine; Polars reads Rust's dialect.

The two differ in a few points. In RE2 the classes \\d, \\s, \\w and the border \\b are ASCII's.
Between brackets, `[`, `&&`, `--` and `~~` have a meaning of their own in Rust. And Rust turns
`X*b|X*c?` into `X*(?:b|c?)`, which prefers the longest X, where RE2 prefers the first branch: an
empty group keeps branches apart that may begin alike. A pattern that Rust cannot express is refused
before any row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import duckdb
import polars as pl

from dphh.engines.re2 import check_re2
from dphh.errors import UsageError

_ESCAPES = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\s": r"[\t\n\f\r ]",
    r"\S": r"[^\t\n\f\r ]",
    r"\w": "[0-9A-Za-z_]",
    r"\W": "[^0-9A-Za-z_]",
    r"\b": r"(?-u:\b)",
    r"\B": r"(?-u:\B)",
    r"\<": "<",
    r"\>": ">",
}
_PART_OF_PATTERN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|(?P<escape>\\(?:[pP]\{[^}]*\}|x\{[^}]*\}|x..|.))"
    r"|(?P<repeat>\{\d+(?:,\d*)?\})"
    r"|(?P<brace>[{}])"
    r"|(?P<brackets>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])"
    r"|(?P<group>\((?:\?(?:P?<\w+>|[A-Za-z-]*[:)]))?)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_PART_IN_BRACKETS = re.compile(
    r"(?P<escape>\\(?:[pP]\{[^}]*\}|x\{[^}]*\}|x..|.))|(?P<named>\[:\^?\w+:\])|(?P<plain>.)",
    re.DOTALL,
)


def in_rust(pattern: str) -> str:
    """The same pattern in Rust's dialect."""
    return "".join(_parts_in_rust(pattern))


def check_pattern(option: str, pattern: str) -> None:
    """Refuse a pattern that is not RE2, or that Polars cannot express."""
    with duckdb.connect() as con:
        check_re2(con, option, pattern)
    try:
        pl.Series([""]).str.contains(rf"\A(?:{in_rust(pattern)})\z")
    except pl.exceptions.PolarsError as problem:
        raise UsageError(
            f"{option}: {pattern!r} is a valid RE2 pattern, but Polars (Rust) does not support it; "
            f"write it in another way, or use engine='duckdb': {problem}"
        ) from None


def _parts_in_rust(pattern: str) -> Iterator[str]:
    parts = [*_PART_OF_PATTERN.finditer(pattern)]
    apart = _branches_may_start_alike(parts)
    for part in parts:
        text = part.group()
        if part["quoted"] is not None:
            yield re.escape(part["quoted"])
        elif part["escape"] is not None:
            yield _ESCAPES.get(text, text)
        elif part["brace"] is not None:
            yield "\\" + text  # not a repetition, so RE2 takes the brace literally
        elif part["brackets"] is not None:
            yield _brackets_in_rust(text)
        else:
            yield "|()" if apart and text == "|" else text


def _branches_may_start_alike(parts: Sequence[re.Match[str]]) -> bool:
    """Whether two branches may begin with the same expression. Letters are alike if equal; `.` and
    repeated characters are alike, but unlike letters; anything else may be like all others."""
    texts: list[str] = []
    wide, begins = 0, True
    for part, after in pairwise([*parts, None]):
        assert part is not None
        text = part.group()
        if part["group"] is not None or (part["plain"] and text == "|"):
            begins = True
        elif begins:
            begins = False
            if part["plain"] is None:
                return "|" in (each.group() for each in parts)
            repeated = after is not None and (after["repeat"] or after.group() in ("*", "+", "?"))
            wide += text == "." or bool(repeated)
            texts.append(text.casefold())
    return wide > 1 or len(set(texts)) < len(texts)


def _brackets_in_rust(text: str) -> str:
    """A class between brackets, with characters escaped that Rust would take for operators."""
    opening = re.match(r"\[\^?", text)
    assert opening is not None
    inner = text[opening.end() : -1]
    parts = [opening.group()]
    for index, part in enumerate(_PART_IN_BRACKETS.finditer(inner)):
        found = part.group()
        if part["escape"] is not None:
            parts.append(found[1] if found in (r"\<", r"\>") else _ESCAPES.get(found, found))
        elif found in ("[", "]", "&", "~") or (found == "-" and (index == 0 or parts[-1] == "-")):
            parts.append("\\" + found)
        else:
            parts.append(found)
    return "".join([*parts, "]"])
