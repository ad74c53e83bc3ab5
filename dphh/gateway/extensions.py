"""The DuckDB extensions that the gateway needs, from the packages of `dphh[shell]`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb

from dphh.corpora.quoted import literal
from dphh.corpora.stores import extension_file
from dphh.errors import UsageError

#: In loading order: quack speaks HTTP through httpfs.
NAMES = ("httpfs", "quack")


def extension_files() -> list[Path]:
    """The extension files for this DuckDB version. Refuses, with what to install, if missing."""
    return [_extension_file(name) for name in NAMES]


def shell_program() -> str:
    """The stock DuckDB shell: the program inside its package. The package's `duckdb` command is a
    script, which Ctrl-C would end."""
    spec = importlib.util.find_spec("duckdb_cli")
    for folder in (spec and spec.submodule_search_locations) or ():
        for name in ("duckdb", "duckdb.exe"):
            if (file := Path(folder, name)).is_file():
                return str(file)
    raise UsageError("The DuckDB shell is not installed; pip install 'dphh[shell]'")


def load(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(load_sql())


def load_sql() -> str:
    return "\n".join(f"LOAD {literal(str(file))};" for file in extension_files())


def _extension_file(name: str) -> Path:
    if (file := extension_file(name)) is not None:
        return file
    raise UsageError(
        f"The extension {name} for DuckDB {duckdb.__version__} is not installed; pip install "
        "'dphh[shell]', which has DuckDB 1.5.5 and the extensions built for it"
    )
