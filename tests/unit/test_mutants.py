"""The tool that plants mistakes: it tells a caught one from one that survives, or has no place."""

from __future__ import annotations

import subprocess

import pytest

from tests.mutants import planted as tool
from tests.mutants.places import DoesNotApply, place_of, replaced, spans, texts_of
from tests.mutants.planted import MUTANTS, ROOT, Mutant, plant_all, planted, read


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small tree of the same form, in git, with one test."""
    root = tmp_path / "tree"
    for folder in ("dphh", "udfs", "sql", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "dphh" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (root / "udfs" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (root / "tests" / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--engines')\n"
    )
    (root / "tests" / "test_sums.py").write_text(
        "from dphh.sums import add\ndef test_add():\n    assert add(1, 2) == 3\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setattr(tool, "ROOT", root)
    return root


def mutant(new, test="test_add"):
    return Mutant("planted", "dphh/sums.py:add", "a + b", new, (f"tests/test_sums.py::{test}",))


def test_what_breaks_a_test_is_caught_and_what_does_not_survives(tree, capsys):
    verdicts = plant_all([mutant("a - b"), mutant("b + a")], 1)
    assert [verdict.caught for verdict in verdicts] == [True, False]
    assert "SURVIVED" in capsys.readouterr().out
    assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")
    with pytest.raises(SystemExit, match="without a mutant tests fail"):
        plant_all([mutant("a - b", "test_that_is_not_there")], 1)


def test_a_mutant_that_has_not_one_place_or_changes_nothing_is_none(tree):
    for at, old in (("add", "a * b"), ("add", "a + b"), ("other", "a + b")):
        with pytest.raises(DoesNotApply, match=r"[02] times"):
            place_of(at, old, texts_of(tree))
    for new, problem in (("a + b", DoesNotApply), ("a +", SyntaxError)):
        with pytest.raises(problem), planted(mutant(new), tree):
            pass
        assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")


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
        (".py", PYTHON, "Sums.add", "[a + 1, a]", PYTHON[PYTHON.index("[") :].partition("]")[0]),
        (".sql", QUERY, "held", "n FROM", "n  -- n\n    FROM"),
        (".sql", QUERY, "", "SELECT n", "SELECT n"),
    ],
)
def test_neither_layout_nor_comments_nor_other_functions_matter(suffix, text, name, old, there):
    ((start, end),) = spans(text, suffix, name, old)
    assert text[start:end].removesuffix("]") == there


def test_what_takes_a_place_is_indented_like_it():
    assert replaced("if a:\n    b\n", (10, 11), "if c:\n    d") == ("if a:\n    if c:\n        d\n")


def test_a_list_is_read_block_by_block():
    told = "# All\none\nin add\n- a\n-\n-     b\nby x\nby y\n\nin two\nin f\n- c\n+ d\n"
    assert list(read(told)) == [
        Mutant("one", "add", "a\n\n    b", "", ("x", "y")),
        Mutant("in two", "f", "c", "d", ("x", "y")),
    ]
    with pytest.raises(ValueError, match="of"):
        list(read("one\nof add\n"))


def test_every_mutant_has_a_name_of_its_own_one_place_and_tests_that_are_there():
    """A change that rewrites or renames what a mutant changes is seen here: mend the mutant."""
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    texts = texts_of(ROOT)
    for each in MUTANTS:
        place_of(each.at, each.old, texts)
        for test in each.caught_by:
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(), test
