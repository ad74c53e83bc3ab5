"""The corpus's condition in Polars: it is SQL, and DuckDB evaluates it for each row."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa

from dphh.corpora.tables import without_string_views
from dphh.rows.conditions import check_types, condition


def kept(where: str, schema: pl.Schema) -> pl.Expr:
    """The condition as a Polars expression. Refuses a condition that does not fit the columns."""
    con = duckdb.connect(config={"threads": 1})  # of one thread, so that rows stay in their order
    asked = condition(where)
    columns = list(asked.columns)
    empty = pl.DataFrame(schema={column: schema[column] for column in columns}).to_arrow()
    con.register("rows", without_string_views(empty))
    check_types(where, {row[0]: row[1] for row in con.execute("DESCRIBE rows").fetchall()})

    def told(rows: pl.Series) -> pl.Series:
        table = without_string_views(pa.table(rows.struct.unnest().to_arrow()))
        with con.cursor() as cursor:
            cursor.register("rows", table)
            found = cursor.execute(f"SELECT {asked.sql} AS kept FROM rows").fetchnumpy()["kept"]
        return pl.Series(rows.name, found, dtype=pl.Boolean)

    each = pl.struct(columns).map_batches(told, return_dtype=pl.Boolean, is_elementwise=True)
    return each.fill_null(value=False)
