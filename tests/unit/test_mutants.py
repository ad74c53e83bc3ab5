"""The tool that plants mistakes: it tells a caught one from one that survives, or has no place."""

from __future__ import annotations

import subprocess

import pytest

from tests.mutants.places import DoesNotApply, place_of, replaced, spans, texts_of
from tests.mutants.plant import ROOT, plant_all, planted
from tests.mutants.planted import MUTANTS, Mutant, read


@pytest.fixture
def tree(tmp_path):
    """A small tree of the same form, in git, with one test."""
    root = tmp_path / "tree"
    for folder in ("dphh", "udfs", "sql", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "dphh" / "__init__.py").touch()
    (root / "dphh" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (root / "udfs" / "__init__.py").write_text("def add(a, b):\n    return a + b\n")
    (root / "sql" / "held.sql").write_text("SELECT 1\n")
    (root / "tests" / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--engines')\n"
    )
    (root / "tests" / "test_sums.py").write_text(
        "from dphh.sums import add\ndef test_add():\n    assert add(1, 2) == 3\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def mutant(old, new, at="dphh/sums.py:add", test="test_add"):
    return Mutant("planted", at, old, new, (f"tests/test_sums.py::{test}",))


def test_what_breaks_a_test_is_caught_and_what_does_not_survives(tree, capsys):
    verdicts = plant_all([mutant("a + b", "a - b"), mutant("a + b", "b + a")], 1, tree)
    assert [verdict.caught for verdict in verdicts] == [True, False]
    assert "dphh/sums.py" in verdicts[0].said
    assert "SURVIVED" in capsys.readouterr().out
    assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")


@pytest.mark.parametrize(
    "at, old, said",
    [
        ("add", "a * b", "0 times"),
        ("add", "a + b", "2 times"),
        ("other", "a + b", "0 times"),
        ("held.sql", "a + b", "0 times"),
    ],
)
def test_a_mutant_has_one_place_or_does_not_apply(tree, at, old, said):
    with pytest.raises(DoesNotApply, match=said):
        place_of(at, old, texts_of(tree))


PYTHON = """
LIMIT = 1
class Sums:
    limit: int = 1
    @cached
    def add(self, a):  # limit = 1
        return [
            a + 1,  # why
            a,
        ]
    def other(self, a):
        return [a + 1, a]
"""
QUERY = """
WITH
held AS (
    SELECT count(*) AS n  -- n
    FROM users
)
SELECT n
FROM held;
"""


@pytest.mark.parametrize(
    "suffix, text, name, old, there",
    [
        (".py", PYTHON, "LIMIT", "1", "1"),
        (".py", PYTHON, "Sums.limit", "int = 1", "int = 1"),
        (".py", PYTHON, "Sums.add", "@cached", "@cached"),
        (
            ".py",
            PYTHON,
            "Sums.add",
            "[a + 1, a]",
            PYTHON[PYTHON.index("[") : PYTHON.index("]") + 1],
        ),
        (".sql", QUERY, "held", "n FROM", "n  -- n\n    FROM"),
        (".sql", QUERY, "", "SELECT n", "SELECT n"),
    ],
)
def test_neither_layout_nor_comments_nor_other_functions_matter(suffix, text, name, old, there):
    ((start, end),) = spans(text, suffix, name, old)
    assert text[start:end] == there


def test_what_takes_a_place_is_indented_like_it():
    assert replaced("if a:\n    b\n", (10, 11), "if c:\n    d") == ("if a:\n    if c:\n        d\n")


def test_a_list_is_read_block_by_block():
    told = "# All\none\nin add\n- a\n-\n-     b\nby x\nby y\n\nin two\nin f\n- c\n+ d\nby-older z\n"
    assert list(read(told)) == [
        Mutant("one", "add", "a\n\n    b", "", ("x", "y")),
        Mutant("in two", "f", "c", "d", ("z",), older=True),
    ]
    with pytest.raises(ValueError, match="of"):
        list(read("one\nof add\n"))


def test_a_mutant_that_changes_nothing_or_does_not_compile_is_none(tree):
    for new, problem in (("a + b", DoesNotApply), ("a +", SyntaxError)):
        with pytest.raises(problem), planted(mutant("a + b", new), tree):
            pass
        assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")


def test_tests_that_fail_by_themselves_catch_nothing(tree):
    (tree / "dphh" / "sums.py").write_text("def add(a, b):\n    return 0\n")
    with pytest.raises(SystemExit, match="without a mutant tests fail"):
        plant_all([mutant("return 0", "return 1", "add")], 1, tree)


def test_a_test_that_is_not_there_catches_nothing(tree):
    with pytest.raises(SystemExit, match="without a mutant tests fail"):
        plant_all([mutant("SELECT 1", "SELECT 2", "held.sql", "test_gone")], 1, tree)


def test_mutants_have_names_of_their_own_and_tests_that_are_there():
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    for each in MUTANTS:
        for test in each.caught_by:
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(), test


def test_every_mutant_has_one_place():
    """Whoever rewrites or renames what a mutant changes sees it here, and mends the mutant."""
    texts = texts_of(ROOT)
    for each in MUTANTS:
        place_of(each.at, each.old, texts)
