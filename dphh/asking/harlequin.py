"""An adapter of Harlequin, an SQL editor in a terminal: `harlequin -a dphh` is DuckDB with dphh's
macros."""

from __future__ import annotations

from harlequin_duckdb.adapter import DuckDbAdapter, DuckDbConnection

from dphh.asking.connect import register


class Adapter(DuckDbAdapter):  # type: ignore[misc]
    """Gives each connection of Harlequin the macros of `dphh.register`."""

    def connect(self) -> DuckDbConnection:
        connection = super().connect()
        register(connection.conn)
        return connection
