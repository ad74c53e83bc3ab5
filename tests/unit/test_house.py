"""Imports run one way: what each part of the house may know, and that nothing goes in a circle."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import dphh

HOUSE = Path(dphh.__file__).parent
ROOTS = {
    "dphh": HOUSE,
    "dphh.sql": Path(dphh.__path__[0]).parent / "sql",
    "dphh.udfs": Path(dphh.__path__[0]).parent / "udfs",
}


def _files() -> dict[str, Path]:
    found = {}
    for name, root in ROOTS.items():
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            module = ".".join((name, *parts)).removesuffix(".__init__")
            found[module] = path
    return found


def _imported(module: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the house that a file names, wherever in it, for types alone too."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            of = resolve_name("." * node.level + (node.module or ""), package)
            names |= {
                below if (below := f"{of}.{each.name}") in known else of for each in node.names
            }
    return (names & known.keys()) - {module}


FILES = _files()
Imports = dict[str, set[str]]


@pytest.fixture(scope="module")
def imports() -> Imports:
    """Reads and parses every file: at the first test here, and not wherever tests are collected."""
    return {module: _imported(module, path, FILES) for module, path in FILES.items()}


def test_the_house_is_read_whole(imports: Imports) -> None:
    assert {
        "dphh.run",
        "dphh.sql",
        "dphh.udfs.draws.noise",
        "dphh.engines.duckdb.host",
    } <= imports.keys()
    assert "dphh.registry" in imports["dphh.run"]


def test_no_imports_go_in_a_circle(imports: Imports) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as problem:
        pytest.fail(f"a circle of imports: {' -> '.join(problem.args[1])}")


def _folder(module: str) -> str:
    """A module's folder: an engine's is one. What names a folder's files stands above them."""
    if FILES[module].name == "__init__.py":
        return f"{module}.__init__"
    folder = module.rpartition(".")[0].removesuffix(".queries")
    return module if folder == "dphh" else folder


def test_no_imports_between_folders_go_in_a_circle(imports: Imports) -> None:
    folders: dict[str, set[str]] = {}
    for module, imported in imports.items():
        others = {_folder(one) for one in imported} - {_folder(module)}
        folders.setdefault(_folder(module), set()).update(others)
    try:
        TopologicalSorter(folders).prepare()
    except CycleError as problem:
        pytest.fail(f"a circle of folders: {' -> '.join(problem.args[1])}")


def _room(module: str) -> str:
    """What the drawing of the house shows as one room: a folder, or a file of the spine."""
    return ".".join(module.split(".")[:2])


def test_no_imports_between_rooms_go_in_a_circle_and_floors_are_few(imports: Imports) -> None:
    rooms: dict[str, set[str]] = {}
    for module, imported in imports.items():
        others = {_room(one) for one in imported} - {_room(module), "dphh"}
        rooms.setdefault(_room(module), set()).update(others)
    try:
        order = [*TopologicalSorter(rooms).static_order()]
    except CycleError as problem:
        pytest.fail(f"a circle of rooms: {' -> '.join(problem.args[1])}")
    floors: dict[str, int] = {}
    for room in order:
        floors[room] = 1 + max((floors[one] for one in rooms.get(room, ())), default=0)
    assert max(floors.values()) <= 13


#: All of the engines but what is asked of them, `dphh.engines.host`.
ENGINES = ("dphh.engines.duckdb", "dphh.engines.polars", "dphh.engines.spark")
KNOWS_NOTHING_OF = {
    "dphh.errors": ("dphh",),
    "dphh.files": ("dphh.corpus", "dphh.ledger", "dphh.engines", "dphh.price"),
    "dphh.wording": ("dphh.corpus", "dphh.ledger", "dphh.engines", "dphh.price"),
    "dphh.privacy": (
        "dphh.udfs",
        "dphh.ledger",
        "dphh.engines",
        "dphh.mechanisms",
        "dphh.plan",
        "dphh.corpus",
    ),
    "dphh.ledger": (
        "dphh.report",
        "dphh.engines",
        "dphh.mechanisms",
        "dphh.registry",
        "dphh.run",
        "dphh.plan",
    ),
    "dphh.engines": (
        "dphh.mechanisms",
        "dphh.price",
        "dphh.registry",
        "dphh.run",
        "dphh.plan",
        "dphh.ledger",
    ),
    "dphh.mechanisms": (*ENGINES, "dphh.ledger", "dphh.registry", "dphh.run", "dphh.plan"),
    "dphh.report": ("dphh.engines", "dphh.mechanisms", "dphh.release", "dphh.run", "dphh.plan"),
    "dphh.rows": ("dphh.corpus", "dphh.corpora", "dphh.privacy"),
    "dphh.corpus": ("dphh.ledger", "dphh.engines"),
    "dphh.price": ("dphh.corpus", "dphh.ledger", "dphh.engines"),
    "dphh.run": ("dphh.plan", "dphh.public", "dphh.asking", "dphh.cli", "dphh.gateway"),
    "dphh.registry": (*ENGINES, "dphh.run", "dphh.plan"),
    "dphh.asking": ("dphh.cli", "dphh.gateway"),
    "dphh.gateway": ("dphh.cli",),
}

#: All else has a folder that says its idea.
SPINE = {
    "__init__", "__main__", "_tree", "checking", "columns", "comparing", "corpus", "detection",
    "errors", "evaluation", "folders", "journal", "plan", "price", "prior", "registry", "release",
    "replay", "run", "testing",
}  # fmt: skip


def test_the_spine_alone_lies_flat() -> None:
    assert {path.stem for path in HOUSE.glob("*.py")} == SPINE


@pytest.mark.parametrize("part", KNOWS_NOTHING_OF)
def test_a_part_of_the_house_knows_nothing_of_what_is_above_it(part: str, imports: Imports) -> None:
    above = KNOWS_NOTHING_OF[part]
    for module, imported in imports.items():
        if module == part or module.startswith(f"{part}."):
            assert not [one for one in imported if one.startswith(above)], module


#: File names that several folders have: in each the same thing, as another floor knows it.
SAME_THING = {
    *("content", "counts", "failures", "forecast_rounds", "functions", "gathering", "host"),
    *("levels", "listed_words", "options", "price", "rows", "set_union"),
    *("two_rounds", "users", "verbs", "why"),
}


def test_rooms_of_one_name_are_the_same_thing() -> None:
    """A namesake that is something else gets a name of its own."""
    names = Counter(path.stem for path in FILES.values() if path.stem != "__init__")
    assert {name for name, times in names.items() if times > 1} == SAME_THING
