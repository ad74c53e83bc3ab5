"""What `import dphh` offers."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dphh


def test_public_names_complete_and_no_others():
    assert dir(dphh) == sorted(dphh.__all__)
    assert all(hasattr(dphh, name) for name in dphh.__all__)


def test_a_wheel_has_every_folder():
    root = Path(__file__).parents[2]
    with (root / "pyproject.toml").open("rb") as file:
        packages = tomllib.load(file)["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(root) for path in (root / "dphh").rglob("*.py")}
    assert {".".join(folder.parts) for folder in folders} | {"dphh.sql", "dphh.udfs"} == {*packages}


def test_every_public_name_says_where_it_is_made_and_is_no_modules_name():
    named = {name for names in dphh._MADE_IN.values() for name in names}
    assert named | {"__version__"} == {*dphh.__all__}
    modules = {path.stem for path in Path(dphh.__file__).parent.iterdir()}
    assert not named & modules, "a module of that name would take the public name's place"


SLOW = {"cryptography", "duckdb", "matplotlib", "numpy", "polars", "pyarrow", "pyspark", "scipy"}


@pytest.mark.parametrize(
    "command",
    [
        "import dphh",
        "import dphh; dphh.Corpus('a.parquet', user='u', text='t')",
        "from dphh.cli import cli; cli(['--version'], standalone_mode=False)",
        "from dphh.cli import cli; cli(['sql'], standalone_mode=False)",
    ],
)
def test_nothing_slow_is_imported_before_it_is_needed(command):
    say = "import sys; print(*sys.modules)"
    run = [sys.executable, "-c", f"{command}; {say}"]
    out = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = {name.partition(".")[0] for name in out.split()}
    assert "dphh" in loaded
    assert not loaded & SLOW


def test_a_name_that_dphh_has_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'itmes'"):
        dphh.itmes  # noqa: B018
