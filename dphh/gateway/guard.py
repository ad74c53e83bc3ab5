"""Checks the parsed tree of a statement node by node, and lets in only what that tree writes.

The text is parsed in an empty DuckDB without data. Each node and each field of the tree must be in
the grammar, each function in its list, and each table a name that the statement itself defines.
What runs is not the text but what DuckDB writes from the checked tree, parsed and checked once
more. So nothing can hide in a difference between two parses of one text: no comment, no quoting,
no Unicode space.
"""

from __future__ import annotations

import json
from typing import Any

import duckdb

from dphh.errors import UsageError
from dphh.gateway.grammar import BARE_FUNCTIONS, FUNCTIONS, GRAMMAR, TABLE_FUNCTIONS, TYPES

LONGEST = 64_000
_HELP = "The gateway takes one SELECT over dphh's macros; see docs/gateway.md"

Scope = frozenset[str]
Node = dict[str, Any]


class Guard:
    """Checks statements against the grammar and a list of table macros."""

    def __init__(self, table_macros: frozenset[str]) -> None:
        self.tables = table_macros | TABLE_FUNCTIONS
        self._con = duckdb.connect(":memory:", config=EMPTY)
        self._con.execute("SET lock_configuration = true")

    def checked(self, statement: str) -> str:
        """The statement, rewritten from its checked tree. Raises a refusal that says why."""
        if len(statement) > LONGEST:
            raise _refused(f"it is longer than {LONGEST:,} characters")
        written = self._written(statement)
        # DuckDB writes some names without quotes, such as those before a star, so the written
        # text may mean more than the tree did. It is parsed and checked again.
        self._written(written)
        return written

    def _written(self, statement: str) -> str:
        parsed = json.loads(self._ask("json_serialize_sql", statement))
        if parsed["error"]:
            raise _refused(parsed.get("error_message", "it cannot be parsed"))
        if set(parsed) != {"error", "statements"} or len(parsed["statements"]) != 1:
            raise _refused("it is not one statement")
        try:
            self._check(parsed["statements"][0], "STATEMENT", frozenset())
            # Write from the tree that was checked, not from the original text.
            return self._ask("json_deserialize_sql", json.dumps(parsed))
        except RecursionError:
            raise _refused("it is nested too deeply") from None
        except (KeyError, TypeError, AttributeError):
            raise _refused("it contains an unknown construct") from None

    def _ask(self, function: str, text: str) -> str:
        try:
            row = self._con.execute(f"SELECT CAST({function}(?) AS VARCHAR)", [text]).fetchone()
        except duckdb.Error as problem:
            raise _refused(str(problem)) from None
        assert row is not None
        return str(row[0])

    def _check(self, node: Any, kind: str | None, scope: Scope) -> None:
        if not isinstance(node, dict):
            raise _refused("it contains an unknown construct")
        kind = kind or _kind(node)
        fields = GRAMMAR.get(kind)
        if fields is None:
            raise _refused(f"it contains {kind}, which is not allowed")
        if "cte_map" in fields:
            scope = self._common_tables(node["cte_map"], scope)
        for name, value in node.items():
            if name in fields:
                self._field(node, kind, name, fields[name], scope)
            elif name not in ("type", "class") and not _empty(value):
                raise _refused(f"it holds {kind} with {name}, which is not on the list")
        self._named(node, kind, scope)

    def _field(self, node: Node, kind: str, name: str, rule: str, scope: Scope) -> None:
        value = node[name]
        if name == "cte_map":
            return  # checked already, when its names were added to the scope
        if rule == "!":
            if not _empty(value):
                raise _refused(f"it holds {kind} with {name}, which is not on the list")
        elif rule.startswith("*"):
            if kind == "RECURSIVE_CTE_NODE" and name == "right":
                scope = scope | {node["cte_name"].lower()}
            if kind != "TABLE_FUNCTION":  # `_named` checks its function
                self._inside(value, rule[1:] or None, scope)
        elif not _plain(value):
            raise _refused(f"it contains {kind} with {name} of an unknown form")

    def _inside(self, value: Any, kind: str | None, scope: Scope) -> None:
        if isinstance(value, list):
            for each in value:
                self._inside(each, kind, scope)
        elif value is not None:
            self._check(value, kind, scope)

    def _named(self, node: Node, kind: str, scope: Scope) -> None:
        """Check that each function, table and type is on a list or defined by the statement."""
        if kind in ("FUNCTION", "WINDOW"):
            _check_function(node, FUNCTIONS, "function")
        elif kind == "TABLE_FUNCTION":
            function = node["function"]
            if not isinstance(function, dict) or _kind(function) != "FUNCTION":
                raise _refused("it contains a table function of an unknown form")
            _check_function(function, self.tables, "table function")
            for argument in function["children"]:
                self._check(argument, None, scope)
            rest = {**function, "children": [], "function_name": "abs"}
            self._check(rest, "FUNCTION", scope)
        elif kind == "COLUMN_REF" and len(node["column_names"]) == 1:
            # If there is no such column, DuckDB calls a function of this name.
            (name,) = node["column_names"]
            if name.lower() in BARE_FUNCTIONS - FUNCTIONS:
                raise _refused(f"{name!r} may also be a function; write table.{name} for a column")
        elif kind == "BASE_TABLE" and node["table_name"].lower() not in scope:
            raise _refused(f"there is no table {node['table_name']!r}")
        elif kind == "TYPE" and node["id"] not in TYPES:
            raise _refused(f"the type {node['id']} is not allowed")

    def _common_tables(self, cte_map: Node, scope: Scope) -> Scope:
        """The scope after a WITH clause: each table sees those before it."""
        for entry in cte_map["map"]:
            name, table = entry["key"].lower(), entry["value"]
            if set(entry) != {"key", "value"} or not set(table) <= _WITH:
                raise _refused("it contains a WITH of an unknown form")
            if not _plain(table["aliases"]) or table.get("key_targets"):
                raise _refused("it contains a kind of WITH that is not allowed")
            if name.startswith(_CATALOGUE) or not name.isidentifier():
                raise _refused(f"a WITH must not be named {entry['key']!r}")
            self._check(table["query"], "STATEMENT", scope)
            scope = scope | {name}
        return scope


#: A DuckDB instance without access to files, network, extensions or Python variables.
EMPTY: dict[str, Any] = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "python_scan_all_frames": False,
    "threads": 1,
}

_WITH = {"aliases", "query", "materialized", "key_targets"}
_CATALOGUE = ("duckdb_", "pragma_", "pg_", "sqlite_", "information_schema", "dphh_")


def _kind(node: Node) -> str:
    kind = node.get("class") or node.get("type")
    if not isinstance(kind, str):
        raise _refused("it contains an unnamed construct")
    return "TABLE_SUBQUERY" if kind == "SUBQUERY" and "class" not in node else kind


def _check_function(node: Node, allowed: frozenset[str], what: str) -> None:
    name = node["function_name"].lower()
    if name not in allowed or node["schema"] not in ("", "main") or node["catalog"]:
        raise _refused(f"the {what} {node['function_name']!r} is not allowed")


def _plain(value: Any) -> bool:
    """Names, numbers, and lists of them; also the two halves of a large integer."""
    if isinstance(value, list):
        return all(_plain(each) for each in value)
    if isinstance(value, dict):
        return set(value) <= {"upper", "lower", "catalog", "schema", "table", "column"} and all(
            isinstance(each, (str, int)) for each in value.values()
        )
    return value is None or isinstance(value, (str, int, float))


def _empty(value: Any) -> bool:
    return not value


def _refused(why: str) -> UsageError:
    return UsageError(f"Not authorised: {why}. {_HELP}")
