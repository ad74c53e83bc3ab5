"""The Parquet files whose rows a DuckDB relation returns unchanged, all of them and nothing else.

`SELECT * FROM 'x.parquet'`, `FROM read_parquet([...])` and views of exactly that do. DuckDB parses
such a plain query, and a query whose tree differs from it in anything but names is not one. So what
SQL has besides, now or in later versions, is never taken for a scan.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import duckdb

from dphh.lineage.duckdb_views import (
    Search,
    constant_texts,
    query_of_view,
    search_relation,
    without_data,
)

_READ_PARQUET = {"read_parquet", "parquet_scan"}
_PLAIN_QUERIES = {
    "BASE_TABLE": "SELECT * FROM t",
    "TABLE_FUNCTION": "SELECT * FROM read_parquet('x')",
}
#: Options that a relation's SQL spells out, and that say nothing if they are false.
_OPTIONS_OFF = (
    "binary_as_string", "file_row_number", "filename", "hive_partitioning", "union_by_name",
)  # fmt: skip
#: Where in the text a node is, which is no part of what it says.
_LOCATIONS = {"query_location", "query_location_length"}
_NAMES_OF_TABLE = {"alias", "table_name", "schema_name", "catalog_name", "qualified_name"}
_NAMES_OF_FUNCTION = {"function_name", "qualified_name", "arguments", "children"}
#: A view may be of a view; of more than so many is not looked into.
_DEEPEST = 20


def scanned_by_relation(relation: Any) -> tuple[str, ...]:
    """The files of this machine, as they are listed now; () if the relation is anything else."""
    search = search_relation(relation)
    if search is None or not (search.whole and search.same) or search.mixes:
        return ()
    if ["binary_as_string", "false"] not in search.settings:
        return ()
    with without_data().cursor() as con:
        search.con = con  # that of the search is closed
        return _listed(con, _places(search, relation.sql_query(), _DEEPEST))


def _places(search: Search, sql: str, deepest: int) -> tuple[str, ...]:
    """The paths and globs that a query scans; () if it does more."""
    tree = search.tree(sql)
    table = None if tree is None else _only_table(tree)
    if table is None or not deepest:
        return ()
    if table["type"] == "TABLE_FUNCTION":
        return _places_of_function(table["function"], search.own)
    name = str(table["table_name"])
    views = search.views.get(name.lower(), [])
    if name.lower() in search.tables or len(views) > 1:
        return ()
    for made in views:
        head, query = query_of_view(made)
        return () if "(" in head else _places(search, query, deepest - 1)  # it renames columns
    is_file = name.lower().endswith(".parquet") and not table["schema_name"]
    return (name,) if is_file else ()


def _only_table(tree: dict[str, Any]) -> dict[str, Any] | None:
    """The FROM of a query that does no more than `SELECT * FROM` a table or a table function."""
    statements = tree["statements"]
    found = statements[0]["node"].get("from_table") if len(statements) == 1 else None
    table: dict[str, Any] = found or {}
    kind = str(table.get("type"))
    if kind not in _PLAIN_QUERIES or _without_names(tree) != _without_names(_plain_tree(kind)):
        return None
    return table


def _without_names(tree: dict[str, Any]) -> Any:
    """A query's tree without the names of its table or function, and what the function is given."""
    bare = json.loads(json.dumps(tree), object_hook=_without_locations)
    table = bare["statements"][0]["node"]["from_table"]
    for name in _NAMES_OF_TABLE:
        table.pop(name, None)
    for name in _NAMES_OF_FUNCTION:
        table.get("function", {}).pop(name, None)
    return bare


def _without_locations(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _LOCATIONS}


@cache
def _plain_tree(kind: str) -> dict[str, Any]:
    return _parsed(_PLAIN_QUERIES[kind])


@cache
def _options_off() -> list[Any]:
    """The options that say nothing, in both spellings, as DuckDB parses them."""
    spelled = [f"{name} {sign} false" for name in _OPTIONS_OFF for sign in ("=", ":=")]
    tree = _parsed(f"FROM read_parquet({', '.join(spelled)})")
    return _given_to(tree["statements"][0]["node"]["from_table"]["function"])


def _parsed(sql: str) -> dict[str, Any]:
    with without_data().cursor() as con:
        ((text,),) = con.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchall()
    tree: dict[str, Any] = json.loads(text)
    return tree


def _given_to(function: dict[str, Any]) -> list[Any]:
    given = function.get("arguments") or function.get("children") or []
    return list(json.loads(json.dumps(given), object_hook=_without_locations))


def _places_of_function(function: dict[str, Any], own: set[str]) -> tuple[str, ...]:
    called = str(function["function_name"]).lower()
    if called not in _READ_PARQUET or own & {called, "list_value"}:
        return ()
    given = [each for each in _given_to(function) if each not in _options_off()]
    if len(given) != 1 or given[0].get("name") or given[0].get("alias"):
        return ()
    files = given[0].get("expression", given[0])
    is_list = files["class"] == "FUNCTION"
    texts = constant_texts(files) or ()
    return tuple(texts) if len(texts) == (len(_given_to(files)) if is_list else 1) else ()


def _listed(con: duckdb.DuckDBPyConnection, places: tuple[str, ...]) -> tuple[str, ...]:
    """The files that DuckDB finds for the places; () if one is of another machine, or is none."""
    if any(":" in place for place in places):
        return ()
    files: list[str] = []
    for place in places:
        found = con.execute("SELECT file FROM glob($1) ORDER BY file", [place]).fetchall()
        if not found:
            return ()
        files += [file for (file,) in found]
    return tuple(files)
