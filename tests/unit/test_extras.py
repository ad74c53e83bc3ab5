"""What a plain install lacks is told in one line: which extra to install."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dphh
from dphh.wording.extras import EXTRAS, missing_extra

ROOT = Path(dphh.__file__).parent
#: What a plain install brings.
CORE = {"click", "duckdb", "jinja2", "numpy", "polars", "pyarrow", "rich", "scipy"}
#: What is asked for by its own name, where it is installed.
CORE |= {"dp_accounting", "pandas"}


#: What comes with a package that an extra names.
WITH = {"py4j": "pyspark"}


def imported():
    folders = (ROOT, ROOT.parent / "udfs")
    return imported_by(file for folder in folders for file in folder.rglob("*.py"))


def imported_by(files):
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            yield from (name.split(".")[0] for name in names)


def test_every_package_that_is_imported_is_of_the_core_or_of_an_extra():
    known = CORE | EXTRAS.keys() | sys.stdlib_module_names | {"dphh", "_duckdb"}
    assert {*imported()} - known == set()


@pytest.mark.parametrize("package", EXTRAS)
def test_an_extra_that_is_named_brings_the_package(package):
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    wanted = WITH.get(package, package).replace("_", "-")
    brought = project["optional-dependencies"][EXTRAS[package]]
    assert wanted in {re.split(r"[\[<>=!;~ ]", each)[0] for each in brought}


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_names_its_extra(package):
    problem = ModuleNotFoundError(name=f"{package}.inner")
    assert f"pip install 'dphh[{EXTRAS[package]}]'" in str(missing_extra(problem))


@pytest.mark.parametrize("command", ["serve", "shell"])
def test_a_command_without_its_packages_ends_in_one_line(command, tmp_path):
    blocked = (
        f"import sys; sys.modules |= dict.fromkeys({sorted(EXTRAS)}); "
        f"sys.argv = ['dphh', '{command}', '--ledger', r'{tmp_path / 'ledger'}']; "
        "from dphh.__main__ import command; command()"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 2, done.stderr
    assert f"pip install 'dphh[{command}]'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_kernel_without_ipywidgets_runs(tmp_path):
    """DuckDB asks for them in kernels, even to be told that no bar is wanted."""
    nbformat, nbclient = map(pytest.importorskip, ("nbformat", "nbclient"))
    code = f"""
import sys
sys.modules["ipywidgets"] = None
import dphh, polars as pl
pl.DataFrame({{"u": range(1000), "t": ["a b"] * 1000}}).write_csv(r"{tmp_path}/a.csv")
corpus = dphh.Corpus(r"{tmp_path}/a.csv", user="u", text="t")
print(len(dphh.items(corpus, epsilon=1.0, delta=1e-6).run(ledger=r"{tmp_path}/ledger")))
"""
    cell = nbformat.v4.new_code_cell(code)
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=250).execute()
    assert cell.outputs[-1]["text"].endswith("2\n")
