"""The tool that plants mistakes: it tells a caught one from one that survives, or has no place."""

from __future__ import annotations

import subprocess

import pytest

from tests.mutants import planted as tool
from tests.mutants.places import place_of, texts_of
from tests.mutants.planted import MUTANTS, ROOT, Mutant, plant_all


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


def test_every_mutant_has_a_name_of_its_own_one_place_and_tests_that_are_there():
    """A change that rewrites or renames what a mutant changes is seen here: mend the mutant."""
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    texts = texts_of(ROOT)
    for each in MUTANTS:
        place_of(each.at, each.old, texts)
        for test in each.caught_by:
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(), test
