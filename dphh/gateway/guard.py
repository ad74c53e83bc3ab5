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

LONGEST_STATEMENT = 64_000
_ADVICE = "The gateway takes one SELECT over dphh's macros; see docs/gateway.md"

_NOT_UNDERSTOOD = (
    "DuckDB parsed it into a form that the gateway cannot check; write it in another way"
)

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
        if len(statement) > LONGEST_STATEMENT:
            raise _refusal(f"it is longer than {LONGEST_STATEMENT:,} characters")
        written = self._canonical_statement(statement)
        # DuckDB writes some names without quotes, such as those before a star, so the written
        # text may mean more than the tree did. It is parsed and checked again.
        self._canonical_statement(written)
        return written

    def _canonical_statement(self, statement: str) -> str:
        parsed = json.loads(self._call_duckdb("json_serialize_sql", statement))
        if parsed["error"]:
            raise _refusal(parsed.get("error_message", "it cannot be parsed"))
        if set(parsed) != {"error", "statements"} or len(parsed["statements"]) != 1:
            raise _refusal("it is not one statement")
        try:
            self._check_node(parsed["statements"][0], "STATEMENT", frozenset())
            # Write from the tree that was checked, not from the original text.
            return self._call_duckdb("json_deserialize_sql", json.dumps(parsed))
        except RecursionError:
            raise _refusal("it is nested too deeply") from None
        except (KeyError, TypeError, AttributeError):
            raise _refusal(_NOT_UNDERSTOOD) from None

    def _call_duckdb(self, function: str, text: str) -> str:
        try:
            row = self._con.execute(f"SELECT CAST({function}(?) AS VARCHAR)", [text]).fetchone()
        except duckdb.Error as problem:
            raise _refusal(str(problem)) from None
        assert row is not None
        return str(row[0])

    def _check_node(self, node: Any, kind: str | None, scope: Scope) -> None:
        if not isinstance(node, dict):
            raise _refusal(_NOT_UNDERSTOOD)
        kind = kind or _kind_of_node(node)
        fields = GRAMMAR.get(kind)
        if fields is None:
            raise _refusal(f"it contains {kind}, which is not allowed")
        if "cte_map" in fields:
            scope = self._scope_of_with(node["cte_map"], scope)
        for name, value in node.items():
            if name in fields:
                self._check_field(node, kind, name, fields[name], scope)
            elif name not in ("type", "class") and not _is_empty(value):
                raise _refusal(f"it holds {kind} with {name}, which is not on the list")
        self._check_names(node, kind, scope)

    def _check_field(self, node: Node, kind: str, name: str, rule: str, scope: Scope) -> None:
        value = node[name]
        if name == "cte_map":
            return  # checked already, when its names were added to the scope
        if rule == "!":
            if not _is_empty(value):
                raise _refusal(f"it holds {kind} with {name}, which is not on the list")
        elif rule.startswith("*"):
            if kind == "RECURSIVE_CTE_NODE" and name == "right":
                scope = scope | {node["cte_name"].lower()}
            if kind != "TABLE_FUNCTION":  # `_check_names` checks its function
                self._check_value(value, rule[1:] or None, scope)
        elif not _is_plain(value):
            raise _refusal(f"it contains {kind} with {name} of an unknown form")

    def _check_value(self, value: Any, kind: str | None, scope: Scope) -> None:
        if isinstance(value, list):
            for each in value:
                self._check_value(each, kind, scope)
        elif value is not None:
            self._check_node(value, kind, scope)

    def _check_names(self, node: Node, kind: str, scope: Scope) -> None:
        """Check that each function, table and type is on a list or defined by the statement."""
        if kind in ("FUNCTION", "WINDOW"):
            _check_function(node, FUNCTIONS, "function")
        elif kind == "TABLE_FUNCTION":
            function = node["function"]
            if not isinstance(function, dict) or _kind_of_node(function) != "FUNCTION":
                raise _refusal("it contains a table function of an unknown form")
            _check_function(function, self.tables, "table function")
            for argument in function["children"]:
                self._check_node(argument, None, scope)
            rest = {**function, "children": [], "function_name": "abs"}
            self._check_node(rest, "FUNCTION", scope)
        elif kind == "COLUMN_REF" and len(node["column_names"]) == 1:
            # If there is no such column, DuckDB calls a function of this name.
            (name,) = node["column_names"]
            if name.lower() in BARE_FUNCTIONS - FUNCTIONS:
                raise _refusal(f"{name!r} may also be a function; write table.{name} for a column")
        elif kind == "BASE_TABLE" and node["table_name"].lower() not in scope:
            raise _refusal(f"there is no table {node['table_name']!r}")
        elif kind == "TYPE" and node["id"] not in TYPES:
            raise _refusal(f"the type {node['id']} is not allowed")

    def _scope_of_with(self, cte_map: Node, scope: Scope) -> Scope:
        """The scope after a WITH clause: each table sees those before it."""
        for entry in cte_map["map"]:
            name, table = entry["key"].lower(), entry["value"]
            if set(entry) != {"key", "value"} or not set(table) <= _FIELDS_OF_WITH:
                raise _refusal("it contains a WITH of an unknown form")
            if not _is_plain(table["aliases"]) or table.get("key_targets"):
                raise _refusal("it contains a kind of WITH that is not allowed")
            if name.startswith(_CATALOGUE_PREFIXES) or not name.isidentifier():
                raise _refusal(f"a WITH must not be named {entry['key']!r}")
            self._check_node(table["query"], "STATEMENT", scope)
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

_FIELDS_OF_WITH = {"aliases", "query", "materialized", "key_targets"}
_CATALOGUE_PREFIXES = ("duckdb_", "pragma_", "pg_", "sqlite_", "information_schema", "dphh_")


def _kind_of_node(node: Node) -> str:
    kind = node.get("class") or node.get("type")
    if not isinstance(kind, str):
        raise _refusal(_NOT_UNDERSTOOD)
    return "TABLE_SUBQUERY" if kind == "SUBQUERY" and "class" not in node else kind


def _check_function(node: Node, allowed: frozenset[str], what: str) -> None:
    name = node["function_name"].lower()
    if name not in allowed or node["schema"] not in ("", "main") or node["catalog"]:
        raise _refusal(f"the {what} {node['function_name']!r} is not allowed")


def _is_plain(value: Any) -> bool:
    """Names, numbers, and lists of them; also the two halves of a large integer."""
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    if isinstance(value, dict):
        return set(value) <= {"upper", "lower", "catalog", "schema", "table", "column"} and all(
            isinstance(each, (str, int)) for each in value.values()
        )
    return value is None or isinstance(value, (str, int, float))


def _is_empty(value: Any) -> bool:
    return not value


def _refusal(why: str) -> UsageError:
    return UsageError(f"Not authorised: {why}. {_ADVICE}")
