"""What `import dphh` offers."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
