"""Makes the tokens of content with DuckDB, a batch at a time, for all engines: one definition
(`sql/rows/text.sql`), one dialect of regular expressions and one version of Unicode."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from dphh.sql import query

#: Connections that no thread uses now. (What Python stores by thread is lost for the threads of an
#: engine.)
_FREE_CONNECTIONS: list[duckdb.DuckDBPyConnection] = []


def tokens_by_duckdb(content: pa.Array, column: str, expression: str) -> Any:
    """The tokens of each row of `content`, by an SQL expression (`reader/views.py`) that
    calls the content `column`."""
    try:
        con = _FREE_CONNECTIONS.pop()
    except IndexError:
        con = _new_connection()
    con.register("rows", pa.table({column: content}))
    try:
        lists = con.sql(f"SELECT {expression} AS tokens FROM rows").to_arrow_table()
    except duckdb.Error as problem:
        # DuckDB's message is replaced: it may quote the row, and engines log errors. Only the text
        # 'dphh: too long' is kept, with which the expression may call error().
        too_long = "dphh: too long" in str(problem)
        said = "dphh: too long" if too_long else f"dphh: no tokens ({type(problem).__name__})"
        raise type(problem)(said) from None
    finally:
        con.unregister("rows")
        _FREE_CONNECTIONS.append(con)
    return lists.column("tokens").cast(pa.list_(pa.string())).combine_chunks()


def _new_connection() -> duckdb.DuckDBPyConnection:
    """A new connection that has the macros that make tokens. Its one thread keeps rows in order."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("SET enable_progress_bar = false")
    con.execute(query("text"))
    return con
