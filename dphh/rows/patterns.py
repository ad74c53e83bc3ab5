"""Regular expressions: what RE2 (DuckDB) and Rust (Polars) read alike. Others are refused.

The two differ in some points. In RE2 the classes \\d, \\s, \\w and the border \\b are ASCII's, in
Rust Unicode's. Between brackets `[`, `&&`, `--` and `~~` have a meaning of their own in Rust. RE2
takes a brace that is no repetition literally, and knows \\Q...\\E.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dphh.errors import UsageError

if TYPE_CHECKING:
    import duckdb

_CHARACTER = r"\\(?:[pP](?:\{\^?\w+\}|\w)|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}|[nrtf]|[^\w\s<>])"
_PART = re.compile(
    rf"{_CHARACTER}|\\[Az]"
    rf"|\[\^?(?:{_CHARACTER}|\[:\^?\w+:\]|(?!&&|--|~~)[^\[\]\\])+\]"
    r"|\((?:\?[is]*(?:-[is]+)?:)?|\)"
    r"|(?:[*+?]|\{\d+(?:,\d*)?\})\??"
    r"|[.^$|]"
    r"|[^\\\[\](){}.^$|*+?]",
    re.DOTALL,
)
#: What to write for parts that are not read alike.
_INSTEAD = {
    r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": r"[\p{L}\p{N}_] or [0-9A-Za-z_]",
    r"\W": r"[^\p{L}\p{N}_]", r"\s": r"[ \t\n\f\r]", r"\S": r"[^ \t\n\f\r]",
    "{": r"\{", "}": r"\}", "]": r"\]",
}  # fmt: skip


def parts_of(option: str, pattern: str) -> list[str]:
    """The parts of a pattern. Refuses one that engines would not read alike."""
    found, place = [], 0
    while place < len(pattern):
        if (part := _PART.match(pattern, place)) is None:
            bad = pattern[place : place + 2] if pattern[place] == "\\" else pattern[place]
            if (inner := re.match(r"\[[^\]]*?(\\[dDsSwW])", pattern[place:])) is not None:
                bad = inner[1]
            instead = f"; write {_INSTEAD[bad]}" if bad in _INSTEAD else "; write it in another way"
            raise UsageError(
                f"{option}: in {pattern!r}, engines read {bad!r} (from character "
                f"{place + 1}) in different ways, or not at all{instead}"
            )
        found.append(part[0])
        place = part.end()
    return found


def branches_apart(pattern: str) -> str:
    """The same pattern for Rust: it turns `X*b|X*c?` into `X*(?:b|c?)`, which prefers the longest
    X, where RE2 prefers the first branch. An empty group keeps branches apart."""
    return "".join("|()" if part == "|" else part for part in parts_of("split", pattern))


def check_patterns(con: duckdb.DuckDBPyConnection, patterns: Mapping[str, str]) -> None:
    """Refuse regular expressions that are not RE2's, or that engines do not read alike."""
    import duckdb

    for option, pattern in patterns.items():
        try:
            con.execute("SELECT regexp_matches('', $pattern)", {"pattern": pattern})
        except duckdb.Error as problem:
            raise UsageError(
                f"{option}: {pattern!r} is not a valid regular expression in RE2's syntax, which "
                f"all engines use: {problem}"
            ) from None
        parts_of(option, pattern)
