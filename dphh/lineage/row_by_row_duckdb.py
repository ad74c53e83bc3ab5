"""What in a DuckDB query may make one row from several: all that is not known to work row by row.

This is the counterpart of `row_by_row_polars`. It classifies each node of the tree that DuckDB
parses from the SQL. Which functions depend on one row only is decided where names are resolved
(`dphh.lineage.duckdb_views`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NOT_SHOWN = "a query that DuckDB does not show"
#: Table functions that make rows from the values of one row.
OF_ITS_ROW = {"unnest", "range", "generate_series"}
#: Expressions of one row's values; functions among them are checked separately.
_ROW_WISE_EXPRESSIONS = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT",
    "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR",
    "TYPE", "of a table",
}  # fmt: skip
#: Columns that give a row's position, which depends on other rows.
_ROW_NUMBER_COLUMNS = {"rowid", "file_row_number"}
#: Fields of SELECT that work row by row.
_FIELDS_OF_SELECT = {
    "type", "modifiers", "cte_map", "select_list", "from_table", "where_clause",
    "aggregate_handling",
}  # fmt: skip
_NAMES_OF_MODIFIERS = {
    "DISTINCT_MODIFIER": "DISTINCT", "LIMIT_MODIFIER": "LIMIT", "LIMIT_PERCENT_MODIFIER": "LIMIT",
    "group_expressions": "GROUP BY", "group_sets": "GROUP BY", "having": "HAVING",
    "qualify": "QUALIFY", "sample": "a sample",
}  # fmt: skip
#: Node types that no rows go through.
_HARMLESS_NODES = {"ORDER_MODIFIER", "ORDER_DEFAULT", "ASCENDING", "DESCENDING"}


def mixing(node: dict[str, Any]) -> str:
    """The operation of this node that may mix rows; '' if there is none."""
    kind = node.get("type")
    if "class" in node:
        return _mixing_expression(node)
    if not isinstance(kind, str) or kind in _HARMLESS_NODES or kind.endswith("_TYPE_INFO"):
        return ""
    known = _CHECKS_BY_NODE.get(kind)
    return _NAMES_OF_MODIFIERS.get(kind, kind) if known is None else known(node)


def _mixing_expression(node: dict[str, Any]) -> str:
    kind = str(node["class"])
    if kind not in _ROW_WISE_EXPRESSIONS:
        return kind
    if kind == "FUNCTION":  # only an aggregate has these fields, whatever its name
        ordered = (node.get("order_bys") or {}).get("orders")
        return "an aggregate" if node.get("filter") or node.get("distinct") or ordered else ""
    if kind == "COLUMN_REF":
        name = str(node["column_names"][-1]).lower()
        return name if name in _ROW_NUMBER_COLUMNS else ""
    return ""


def _mixing_select(node: dict[str, Any]) -> str:
    more = next((name for name in node if name not in _FIELDS_OF_SELECT and node[name]), "")
    if more:
        return _NAMES_OF_MODIFIERS.get(more, more)
    handling = node.get("aggregate_handling", "STANDARD_HANDLING")
    return "" if handling == "STANDARD_HANDLING" else "GROUP BY"


def _mixing_set_operation(node: dict[str, Any]) -> str:
    """Only `UNION ALL` keeps all rows of both sides unchanged."""
    kind = str(node["setop_type"])
    all_rows = kind in ("UNION", "UNION_BY_NAME") and node["setop_all"]
    return "" if all_rows else kind.partition("_")[0]


def _mixing_table(node: dict[str, Any]) -> str:
    if node.get("sample"):
        return "a sample"
    numbered = node.get("with_ordinality", "WITHOUT_ORDINALITY") != "WITHOUT_ORDINALITY"
    return "WITH ORDINALITY" if numbered and not _is_made_from_row(node) else ""


def _mixing_join(node: dict[str, Any]) -> str:
    """`FROM t, unnest(t.tags)` joins each row only with rows made from its own values."""
    plain = node["join_type"] in ("INNER", "LEFT") and node["ref_type"] in ("CROSS", "REGULAR")
    return "" if plain and _is_made_from_row(node["right"]) else "JOIN"


def _is_made_from_row(table: dict[str, Any]) -> bool:
    if table.get("type") != "TABLE_FUNCTION":
        return False
    return str(table["function"]["function_name"]).lower() in OF_ITS_ROW


#: The node types that rows go through, and the function that checks each.
_CHECKS_BY_NODE: dict[str, Callable[[dict[str, Any]], str]] = {
    "BASE_TABLE": _mixing_table,
    "CTE_NODE": lambda _: "",
    "EMPTY": _mixing_table,
    "EXPRESSION_LIST": _mixing_table,
    "JOIN": _mixing_join,
    "SELECT_NODE": _mixing_select,
    "SET_OPERATION_NODE": _mixing_set_operation,
    "SUBQUERY": _mixing_table,
    "TABLE_FUNCTION": _mixing_table,
}
