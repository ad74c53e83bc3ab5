"""The tool that plants mistakes: it tells a caught one from one that survives, or has no place."""

from __future__ import annotations

import subprocess

import pytest

from tests.mutants.plant import (
    ROOT,
    DoesNotApply,
    Mutant,
    place_of,
    plant_all,
    planted,
    sources,
)
from tests.mutants.planted import MUTANTS


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


def mutant(old, new, within="*", test="test_add"):
    return Mutant("planted", old, new, (f"tests/test_sums.py::{test}",), within)


def test_what_breaks_a_test_is_caught_and_what_does_not_survives(tree, capsys):
    breaking = mutant("a + b", "a - b", within="dphh/sums.py")
    harmless = mutant("a + b", "b + a", within="dphh/sums.py")
    verdicts = plant_all([breaking, harmless], 1, tree)
    assert [verdict.caught for verdict in verdicts] == [True, False]
    assert "dphh/sums.py" in verdicts[0].said
    assert "SURVIVED" in capsys.readouterr().out
    assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")


@pytest.mark.parametrize(
    "old, within, said",
    [("a * b", "*", "0 times"), ("a + b", "*", "2 times"), ("a + b", "sql/*", "0 times")],
)
def test_a_mutant_has_one_place_or_does_not_apply(tree, old, within, said):
    with pytest.raises(DoesNotApply, match=said):
        place_of(mutant(old, "a - b", within), tree)


def test_a_mutant_that_changes_nothing_or_does_not_compile_is_none(tree):
    for new, problem in (("a + b", DoesNotApply), ("a +", SyntaxError)):
        with pytest.raises(problem), planted(mutant("a + b", new, "dphh/*"), tree):
            pass
        assert (tree / "dphh" / "sums.py").read_text().endswith("a + b\n")


def test_tests_that_fail_by_themselves_catch_nothing(tree):
    (tree / "dphh" / "sums.py").write_text("def add(a, b):\n    return 0\n")
    with pytest.raises(SystemExit, match="without a mutant tests fail"):
        plant_all([mutant("return 0", "return 1")], 1, tree)


def test_a_test_that_is_not_there_catches_nothing(tree):
    with pytest.raises(SystemExit, match="without a mutant tests fail"):
        plant_all([mutant("SELECT 1", "SELECT 2", test="test_gone")], 1, tree)


def test_mutants_have_names_of_their_own_and_tests_that_are_there():
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    for each in MUTANTS:
        for test in each.caught_by:
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(), test


def test_every_mutant_has_one_place():
    """Whoever moves or rewrites what a mutant changes sees it here, and mends the mutant."""
    texts = [(path.relative_to(ROOT), text) for path, text in sources(ROOT)]
    for each in MUTANTS:
        stands = sum(text.count(each.old) for path, text in texts if path.match(each.within))
        assert stands == 1, f"{each.name}: its text stands {stands} times"
