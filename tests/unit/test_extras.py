"""What a plain install lacks is told in one line: which extra to install."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dphh
from dphh.wording.extras import EXTRAS

ROOT = Path(dphh.__file__).parent
#: What a plain install brings.
CORE = {"click", "duckdb", "jinja2", "numpy", "polars", "pyarrow", "rich", "scipy"}
#: What is asked for by its own name, where it is installed.
CORE |= {"dp_accounting", "pandas"}


def imported():
    for file in (*ROOT.rglob("*.py"), *(ROOT.parent / "udfs").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            yield from (name.split(".")[0] for name in names)


def test_every_package_that_is_imported_is_of_the_core_or_of_an_extra():
    known = CORE | EXTRAS.keys() | sys.stdlib_module_names | {"dphh", "_duckdb"}
    assert {*imported()} - known == set()


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
