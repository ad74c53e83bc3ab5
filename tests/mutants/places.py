"""Find what a mutant replaces: a text of one function, one assigned name or one CTE.

Neither the layout of the source nor any other function matters.
"""

import ast
import builtins
import re
import symtable
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

#: Where mutants are planted.
SOURCES = ("dphh", "udfs", "sql")
#: Of each kind of file: what may stand between two tokens.
_BETWEEN = {".py": r"(?:\s|#[^\n]*)*", ".sql": r"(?:\s|--[^\n]*)*"}
#: A named step of a query; a table or a macro of a script.
_NAMED = re.compile(r"^( *)(\w+) AS (?:MATERIALIZED )?\(\n|\b(?:MACRO|TABLE) (\w+)", re.MULTILINE)
#: Characters of one token, which a place neither begins nor ends within: of words, of operators.
_KINDS = (r"[\w$]", r"[-+*/%&|^<>=!:]")
_NONE = r"[^\s\S]"

Span = tuple[int, int]


class DoesNotApply(Exception):  # noqa: N818 - says what is so
    """What the mutant replaces stands nowhere, or more than once."""


def texts_of(tree: Path) -> dict[Path, str]:
    """Each file in which a mutant may stand, from `tree` on, and its text."""
    paths = (path for top in SOURCES for path in sorted((tree / top).rglob("*")))
    return {
        path.relative_to(tree): path.read_text(encoding="utf-8")
        for path in paths
        if path.suffix in _BETWEEN and not path.is_symlink()
    }


def pattern_of(old: str, suffix: str) -> str:
    """Matches `old` however it is laid out, also with a comma before a closing bracket."""
    between = _BETWEEN[suffix]
    tokens = re.findall(r"\$?\w+|[^\w\s]", re.sub(r",\s*(?=[])}])", "", old))
    each = [rf",?{between}\{one}" if one in ")]}" else re.escape(one) for one in tokens]
    first, last = (
        next((kind for kind in _KINDS if re.match(kind, one)), _NONE)
        for one in (tokens[0], tokens[-1][-1])
    )
    return f"(?<!{first}){between.join(each)}(?!{last})"


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
        closing = ";" if match[3] else f"\n{match[1]})"
        end = text.index(closing, match.end() - 1) + len(closing)
        yield match[2] or match[3], (match.start(), end)
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
    """Where `old` stands in what is named so."""
    pattern = re.compile(pattern_of(old, suffix))
    return [
        found.span()
        for named, (start, end) in parts(text, suffix)
        if named == name
        for found in pattern.finditer(text, start, end)
    ]


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
        if last in text and path.match(where or "*.py")
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


@lru_cache
def unknown_names(text: str) -> frozenset[str]:
    """Global names that the module does not define: a mutant with one is caught by anything, as one
    that does not compile is."""
    module = symtable.symtable(text, "", "exec")
    tables = [module]
    for table in tables:
        tables += table.get_children()
    of_globals = [
        symbol
        for table in tables
        for symbol in table.get_symbols()
        if table is module or symbol.is_global()
    ]
    bound = {each.get_name() for each in of_globals if each.is_assigned() or each.is_imported()}
    return frozenset(
        {each.get_name() for each in of_globals} - bound - {*dir(builtins), "__file__"}
    )
