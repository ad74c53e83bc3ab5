"""Find what a mutant replaces: tokens of one function, one assigned name or one CTE.

Neither the layout of the source nor any other function matters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

#: Where mutants are planted.
SOURCES = ("dphh", "udfs", "sql")

_OPERATOR = r"\*\*|//|<<|>>|->|:=|::|\|\||[-+*/%&|^<>=!]=|[^\w\s]"
_TOKENS = {
    ".py": re.compile(rf"(?P<comment>#[^\n]*)|\w+|{_OPERATOR}"),
    ".sql": re.compile(rf"(?P<comment>--[^\n]*)|\$?\w+|{_OPERATOR}"),
}
#: A named step of a query; a table or a macro of a script.
_NAMED = re.compile(r"^\s*(\w+) AS (?:MATERIALIZED )?\(\n|\b(?:MACRO|TABLE) (\w+)", re.MULTILINE)

Span = tuple[int, int]


class DoesNotApply(Exception):  # noqa: N818 - says what is so
    """What the mutant replaces stands nowhere, or more than once."""


def texts_of(tree: Path) -> dict[Path, str]:
    """Each file in which a mutant may stand, from `tree` on, and its text."""
    paths = (path for top in SOURCES for path in sorted((tree / top).rglob("*")))
    return {
        path.relative_to(tree): path.read_text(encoding="utf-8")
        for path in paths
        if path.suffix in _TOKENS and not path.is_symlink()
    }


def tokens(text: str, suffix: str) -> list[tuple[str, Span]]:
    """Without comments, and without commas that only the layout puts before a closing bracket."""
    found = [match for match in _TOKENS[suffix].finditer(text) if match["comment"] is None]
    following = [match.group() for match in found[1:]]
    return [
        (match.group(), match.span())
        for match, after in zip_longest(found, following)
        if not (match.group() == "," and after in (")", "]", "}"))
    ]


def _python_parts(body: list[ast.stmt], above: str = "") -> Iterator[tuple[str, int, int]]:
    """Each function, class, global and attribute, with its first line and its last."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield above + node.name, first, node.end_lineno or first
            yield from _python_parts(node.body, f"{above}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield above + ast.unparse(target), node.lineno, node.end_lineno or node.lineno
        else:
            for inner in ("body", "orelse"):
                yield from _python_parts(getattr(node, inner, []), above)


def _sql_parts(text: str) -> Iterator[tuple[str, Span]]:
    """Each CTE, table and macro; under "" what follows: the query that selects from them."""
    end = 0
    for match in _NAMED.finditer(text):
        end, depth = len(text), 0
        closing = ";" if match.group(2) else ")"
        for token, span in tokens(text[match.start() :], ".sql"):
            depth += (token == "(") - (token == ")")
            if token == closing and depth == 0:
                end = match.start() + span[1]
                break
        yield match.group(1) or match.group(2), (match.start(), end)
    yield "", (end, len(text))


@lru_cache(maxsize=4096)
def parts(text: str, suffix: str) -> list[tuple[str, Span]]:
    """The spans of characters that have a name in a file."""
    if suffix == ".sql":
        return list(_sql_parts(text))
    begins = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    found = _python_parts(ast.parse(text).body)
    return [(name, (begins[first - 1], begins[last])) for name, first, last in found]


def spans(text: str, suffix: str, name: str, old: str) -> list[Span]:
    """Where the tokens of `old` stand in what is named so."""
    wanted = [token for token, _ in tokens(old, suffix)]
    found = []
    for start, end in (span for named, span in parts(text, suffix) if named == name):
        there = tokens(text[start:end], suffix)
        for at in range(len(there) - len(wanted) + 1):
            these = there[at : at + len(wanted)]
            if [token for token, _ in these] == wanted:
                found.append((start + these[0][1][0], start + these[-1][1][1]))
    return found


def place_of(at: str, old: str, texts: Mapping[Path, str]) -> tuple[Path, Span]:
    """The one file, and in it the span, of `old` in what `at` names.

    `at` is the full name of a function, class or assignment, `Class.method`, alone or after the
    end of a path and a colon, `engine/file.py:Class.method`; or a query, `file.sql:cte`, or
    `file.sql` for what follows all of its CTEs.
    """
    where, _, name = (at + ":" if at.endswith(".sql") else at).rpartition(":")
    last = name.rpartition(".")[2]
    found = [
        (path, span)
        for path, text in texts.items()
        if path.match(where or "*.py") and last in text
        for span in spans(text, path.suffix, name, old)
    ]
    if len(found) != 1:
        places = ", ".join(sorted({str(path) for path, _ in found})) or "no file"
        raise DoesNotApply(f"{at}: what it replaces stands {len(found)} times, in {places}")
    return found[0]


def replaced(text: str, span: Span, new: str) -> str:
    """`new` in the place of a span; its further lines are indented as the line of the place is."""
    line = text[text.rfind("\n", 0, span[0]) + 1 : span[0]]
    indent = line[: len(line) - len(line.lstrip())]
    return text[: span[0]] + new.replace("\n", f"\n{indent}") + text[span[1] :]
