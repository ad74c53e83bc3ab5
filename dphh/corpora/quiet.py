"""DuckDB's own bar of progress is off: it would tell how much of the data each step reads."""

from __future__ import annotations

import duckdb


def without_bar(con: duckdb.DuckDBPyConnection) -> None:
    """In a kernel without ipywidgets it is off, and DuckDB refuses even to be told so."""
    ((on,),) = con.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if on:
        con.execute("SET enable_progress_bar = false")
