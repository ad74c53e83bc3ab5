"""What `import dphh` offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dphh


def test_public_names_are_complete_and_no_modules_names():
    assert dir(dphh) == sorted(dphh.__all__)
    assert all(hasattr(dphh, name) for name in dphh.__all__)
    modules = {path.stem for path in Path(dphh.__file__).parent.iterdir()}
    assert not {*dphh.__all__} & modules, "a module of that name would take the public name's place"


SLOW = {
    *("cryptography", "duckdb", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "pyspark"),
    *("rich", "scipy"),
}
#: What the ledger and the registry of verbs are made of.
LEDGER = {"duckdb", "numpy", "pyarrow"}


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("import dphh", set()),
        ("import dphh; dphh.Corpus('a.parquet', user='u', text='t')", set()),
        ("import dphh; dphh.items", LEDGER),
        ("import dphh; dphh.items(epsilon=1, delta=1e-7)", {*LEDGER, "scipy"}),
        ("from dphh.cli import cli; cli(['--version'], standalone_mode=False)", set()),
        ("from dphh.cli import cli; cli([], standalone_mode=False)", set()),
        (
            "from dphh import Corpus, Ledger;"
            "Ledger().add('a', Corpus('/a', user='u', text='t'), 1.0, 0.0);"
            "from dphh.cli import cli; cli(['ledger', 'show'], standalone_mode=False)",
            LEDGER,
        ),
    ],
)
def test_nothing_slow_is_imported_before_it_is_needed(command, needed, tmp_path):
    say = "import sys; print(*sys.modules)"
    run = [sys.executable, "-c", f"import dphh; {command}; {say}"]
    kept = os.environ | {"DPHH_LEDGER": str(tmp_path / "ledger.sqlite")}
    out = subprocess.run(run, capture_output=True, text=True, check=True, timeout=250, env=kept)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    assert "dphh" in loaded
    assert loaded & SLOW <= needed
