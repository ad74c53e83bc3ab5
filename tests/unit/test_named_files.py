"""Files that comments and pages name are there: a reader looks for them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import dphh

TOP = Path(dphh.__path__[0]).parent
NAMED = re.compile(
    r"(?<![\w/<{:.~$-])(?:\.\./)*(?:[\w.*-]+/)*[\w*.-]+\.(?:py|sql)\b(?![\w(/]|\.\w)"
)
#: Methods, and files that a page imagines.
NO_FILES = re.compile(r"Plan\.sql|con\.sql|(?:.*/)?x(?:/\w+)?\.py")
FILES = [
    path.relative_to(TOP)
    for folder in ("dphh", "docs", "examples", "sql", "tests", "udfs")
    for path in (TOP / folder).rglob("*")
]


def _said(path: Path) -> Iterator[str]:
    """The comments of a query, comments and docstrings of a module, what a page shows as code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        yield from re.findall(r"--(.*)", text)
    elif path.suffix == ".md":
        yield from re.findall(r"`([^`\n]+)`", text)
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield str(node.value.value)


def _is_there(name: str, beside: Path) -> bool:
    if name.startswith("../"):
        return any(beside.parent.glob(name))
    return any(path.match(name) for path in FILES)


@pytest.mark.parametrize("folder", ["dphh", "docs", "sql", "udfs"])
def test_files_that_are_named_are_there(folder: str) -> None:
    named = {
        (name, path)
        for path in (TOP / folder).rglob("*")
        if path.suffix in (".md", ".py", ".sql")
        for said in _said(path)
        for name in NAMED.findall(said)
        if not NO_FILES.fullmatch(name)
    }
    assert len(named) > 4
    absent = [
        f"{name} in {path.relative_to(TOP)}"
        for name, path in sorted(named)
        if not _is_there(name, path)
    ]
    assert not absent


def test_pages_that_are_named_are_there() -> None:
    for path in FILES:
        if path.suffix in (".py", ".sql"):
            text = (TOP / path).read_text(encoding="utf-8")
            for page in re.findall(r"(?:docs|tests/[\w/]+)/[\w-]+\.md", text):
                assert (TOP / page).is_file(), f"{page} in {path}"
