"""The files that a DuckDB relation reads, found from its SQL and the views and macros in it.

DuckDB cannot serialise a plan with a file in it, and a printed plan omits file names. So the
relation's SQL is parsed as a tree. A table name in it is a view, whose SQL is parsed in turn; or a
table of a database file; or a file. Table functions name their files in constants. For anything
else (a table in memory, a Python frame, a computed name), the files are unknown. Only a catalog
query is run, on the relation's own connection.

The same SQL over the same files gives the same data if it reads nothing but files and nothing in it
changes by itself: no randomness, clock, variable, parameter or user-defined function. Settings that
affect rows, and the search path of names, are part of the query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import duckdb

from dphh.lineage.origin import Origin
from dphh.lineage.row_by_row_duckdb import NOT_SHOWN, mixing

#: Table functions that read no data.
READ_NOTHING = {"range", "generate_series", "unnest", "repeat", "repeat_row"}
#: Functions whose value comes from the connection or the environment.
TOLD_ELSEWHERE = {"getvariable", "getenv", "current_setting"}
#: Table functions that read only the files in their arguments.
READ_FILES = {
    "read_parquet", "parquet_scan", "read_csv", "read_csv_auto", "read_json", "read_json_auto",
    "read_ndjson", "read_ndjson_auto", "read_json_objects", "read_ndjson_objects",
}  # fmt: skip
#: DuckDB's two functions that read a text as a query or as a table name.
READ_QUERIES = {"query", "query_table"}
#: Settings that change which rows a query reads from the same files.
SETTINGS = (
    "binary_as_string", "Calendar", "default_collation", "default_null_order", "default_order",
    "ieee_floating_point_ops", "integer_division", "old_implicit_casting",
    "schema", "search_path", "TimeZone",
)  # fmt: skip
#: What is read from the relation's connection: the file search path, settings, views, functions,
#: and the files of its tables.
_CATALOG_QUERY = f"""
    count(*) AS none,
    concat(current_setting('file_search_path'), current_setting('home_directory')) AS searched,
    (SELECT list([name, value] ORDER BY name) FROM duckdb_settings()
        WHERE name IN {SETTINGS}) AS settings,
    (SELECT list([view_name, sql]) FROM duckdb_views() WHERE NOT internal) AS views,
    (SELECT list([function_name, function_type, macro_definition]) FROM duckdb_functions()
        WHERE NOT internal) AS functions,
    (SELECT list([table_name, path]) FROM duckdb_tables()
        JOIN duckdb_databases() USING (database_name)) AS tables
"""
#: DuckDB's own functions: deterministic ones, and all others.
_CONSISTENT_FUNCTIONS_QUERY = """
    SELECT stability = 'CONSISTENT', list(DISTINCT function_name) FROM duckdb_functions()
    WHERE internal AND function_type <> 'table' GROUP BY ALL
"""
#: Functions of a single row that are constant within a query, and DuckDB's own macros.
_SCALAR_FUNCTIONS_QUERY = """
    SELECT list(DISTINCT function_name) FILTER (function_type = 'scalar' AND stability LIKE
            'CONSISTENT%' AND function_name NOT IN (SELECT function_name FROM duckdb_functions()
                WHERE function_type IN ('aggregate', 'window'))),
        list([function_name, macro_definition]) FILTER (function_type = 'macro')
    FROM duckdb_functions() WHERE internal
"""
#: What a view's SQL has before its query: up to the first AS that is not in a quoted name.
_HEAD_OF_VIEW = re.compile(r"""(?:"[^"]*"|[^"])*?\sAS\s""", re.IGNORECASE)
_LOOKS_LIKE_FILE = re.compile(r"[./\\*]")
#: The name that DuckDB gives an unnamed relation; it differs each time.
_UNNAMED_RELATION = re.compile(r"unnamed_relation_[0-9a-f]+")
#: How DuckDB 1.5 writes Python tables, which it cannot parse itself.
_MEMORY_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass
class Search:
    """What was found while walking through a query and everything that it names."""

    #: A connection without data, used to parse queries.
    con: duckdb.DuckDBPyConnection
    #: By name: the SQL of views and macros, and the files of tables. Names may be ambiguous.
    views: dict[str, list[str]]
    macros: dict[str, list[str]]
    tables: dict[str, list[str | None]]
    #: By name: the SQL of scalar macros, both the user's and DuckDB's; and all of the user's names.
    shorthands: dict[str, list[str]]
    own: set[str]
    #: Functions known to be deterministic, and those that may not be.
    steady: frozenset[str] = frozenset()
    unsteady: frozenset[str] = frozenset()
    #: Whether the same files always give the same rows, by all that was found.
    same: bool = True
    #: Whether the rows may differ each time, whatever is read: by chance, the clock, a parameter.
    changes_by_itself: bool = False
    files: set[str] = field(default_factory=set)
    #: Whether the files of everything found are known.
    whole: bool = True
    #: What may make one row from several; '' if nothing was found that does.
    mixes: str = ""
    seen: set[str] = field(default_factory=set)
    settings: list[list[str]] = field(default_factory=list)

    def query(self, sql: str) -> None:
        if sql in self.seen:
            return
        self.seen.add(sql)
        tree = self.tree(sql)
        if tree is None:
            self._mark_unknown()
            return
        for node, within in _nodes_with_scope(tree):
            if node.get("type") == "BASE_TABLE":
                self._search_table(node, within)
            elif node.get("type") == "TABLE_FUNCTION":
                self._search_table_function(node["function"])
                _mark_table_function(node["function"])
            elif node.get("class") == "FUNCTION":
                self._search_expression_function(str(node["function_name"]))
            if self._may_change_by_itself(node):
                self.same, self.changes_by_itself = False, True
            self.mixes = self.mixes or mixing(node)

    def _mark_unknown(self) -> None:
        self.whole, self.changes_by_itself = False, True
        self.mixes = self.mixes or NOT_SHOWN

    def _search_expression_function(self, called: str) -> None:
        """Handle a function in an expression. A macro's SQL is parsed in turn, files included."""
        name = called.lower()
        for body in (bodies := self.shorthands.get(name, [])):
            self.query(f"SELECT {body}")
        if bodies:
            return
        theirs = _builtin_functions()
        if name in self.own or not (name in theirs.steady or name in theirs.unsteady):
            self.whole = False  # a user-defined function may read anything
        if name in self.own or not (name in theirs.of_one_row or name == "unnest"):
            self.mixes = self.mixes or called

    def _may_change_by_itself(self, node: dict[str, Any]) -> bool:
        """Whether a node may change by itself: by randomness, a clock or the connection's state."""
        match node.get("class"):
            case "PARAMETER":
                return True
            case "COLUMN_REF":  # `current_date` parses as a column, and a column may have that name
                names = node["column_names"]
                return len(names) == 1 and str(names[0]).lower() in self.unsteady
            case "FUNCTION" | "WINDOW":
                return str(node["function_name"]).lower() not in self.steady
        return node.get("sample") is not None

    def _search_view(self, made: str) -> None:
        """Handle `CREATE VIEW ... AS query`; a registered Arrow table has no SQL in DuckDB 1.5."""
        if not made:
            self.whole = False  # rows in memory
            return
        if query := query_of_view(made)[1]:
            self.query(query)
        else:
            self._mark_unknown()

    def tree(self, sql: str) -> dict[str, Any] | None:
        asked = self.con.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql])
        tree = json.loads(asked.fetchall()[0][0])
        return None if tree.get("error") else tree

    def _search_table(self, node: dict[str, Any], within: frozenset[str]) -> None:
        name = str(node["table_name"])
        plain = name.lower()
        if plain in within and not node.get("schema_name"):
            return
        for made in (views := self.views.get(plain, [])):
            self._search_view(made)
            self.same = self.same and len(views) == 1  # the search path decides between several
        for path in (tables := self.tables.get(plain, [])):
            self.same = False  # the process that has the file open may have written to it
            if path is None:
                self.whole = False  # rows in memory, of unknown origin
            else:
                self.files.add(f"{path}/{name}")
        if views or tables:
            return
        if _LOOKS_LIKE_FILE.search(name):
            self.files.add(name)
        else:
            self.whole = False  # a Python frame, named by its variable

    def _search_table_function(self, function: dict[str, Any]) -> None:
        name = str(function["function_name"]).lower()
        if name in READ_NOTHING:
            return
        for body in (macros := self.macros.get(name, [])):
            self.query(body.rstrip().rstrip(";"))
        self.same = self.same and (len(macros) == 1 or name in READ_FILES)
        found = [constant_texts(argument) for argument in _arguments(function, name in READ_FILES)]
        self._record_constants(name, {text for texts in found for text in texts or ()})
        # A macro passes its arguments on, so the files named in a call are its arguments here.
        known = name in READ_FILES or name in READ_QUERIES
        if not macros and (not known or None in found or not any(found)):
            self.whole = False

    def _record_constants(self, function: str, texts: set[str]) -> None:
        """Record what a table function's constants name: files, or a query or table name."""
        for text in texts:
            if function == "query":
                self.query(text)
            elif function == "query_table":
                self._search_table({"table_name": text}, frozenset())
            else:
                self.files.add(text)


def origin_of_relation(relation: Any) -> Origin:
    search = search_relation(relation)
    if search is None:
        return Origin()
    return Origin(tuple(sorted(search.files)), search.whole, search.mixes)


def query_of_relation(relation: Any) -> str:
    """All SQL that makes the rows from the files; '' if anything else may affect them."""
    search = search_relation(relation)
    if search is None or not (search.whole and search.same and search.files):
        return ""
    queries = [_UNNAMED_RELATION.sub("unnamed_relation", sql) for sql in sorted(search.seen)]
    return json.dumps([queries, search.settings])


def changes_by_itself(relation: Any) -> bool:
    """Whether the rows may differ each time though nothing that is read has changed."""
    search = search_relation(relation)
    return search is None or search.changes_by_itself


def search_relation(relation: Any) -> Search | None:
    try:
        sql = relation.sql_query()
        ((_, searched, settings, views, functions, tables),) = (
            relation.limit(0).aggregate(_CATALOG_QUERY).fetchall()
        )
    except duckdb.Error:
        return None  # a file or table is missing: the run will report it
    own = {str(name).lower() for name, *_ in functions or []}
    macros = [(name, made) for name, kind, made in functions or [] if kind == "table_macro"]
    shorthands = _grouped_by_name(
        [(name, made) for name, kind, made in functions or [] if kind == "macro"]
    )
    theirs = _builtin_functions()
    with without_data().cursor() as con:
        search = Search(
            con, _grouped_by_name(views), _grouped_by_name(macros), _grouped_by_name(tables),
            {name: made for name, made in theirs.shorthands.items() if name not in own}
            | shorthands,
            own, theirs.steady - own, theirs.unsteady | own,
            same=not searched, whole=not searched, settings=settings,
        )  # fmt: skip
        search.query(sql if search.tree(sql) else _MEMORY_ADDRESS.sub("0", sql))
    return search


@cache
def without_data() -> duckdb.DuckDBPyConnection:
    """An instance that parses queries and nothing else: opening one takes far longer than that."""
    return duckdb.connect(config={"threads": 1})


class Functions(NamedTuple):
    """DuckDB's own functions."""

    steady: frozenset[str]
    unsteady: frozenset[str]
    of_one_row: frozenset[str]
    shorthands: dict[str, list[str]]


@cache
def _builtin_functions() -> Functions:
    with without_data().cursor() as con:
        listed = con.execute(_CONSISTENT_FUNCTIONS_QUERY).fetchall()
        ((of_one_row, made),) = con.execute(_SCALAR_FUNCTIONS_QUERY).fetchall()
    steady = {name for same, names in listed if same for name in names}
    unsteady = {name for same, names in listed if not same for name in names} | TOLD_ELSEWHERE
    return Functions(
        frozenset(steady | READ_NOTHING) - unsteady,
        frozenset(unsteady),
        frozenset(of_one_row),
        _grouped_by_name(made),
    )


def query_of_view(made: str) -> tuple[str, str]:
    """The SQL of a view, as what comes before its query, and the query; '' for both if it is not
    understood."""
    if (head := _HEAD_OF_VIEW.match(made)) is None:
        return "", ""
    return head[0], made[head.end() :].rstrip().rstrip(";")


def _grouped_by_name(listed: list[tuple[str, Any]] | None) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, what in listed or []:
        found.setdefault(name.lower(), []).append(what)
    return found


def _nodes_with_scope(
    tree: Any, within: frozenset[str] = frozenset()
) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Each node, with the WITH names in its scope. A WITH part sees those before it, and itself
    only if it is recursive: `WITH v AS (FROM v) FROM v` reads a view v."""
    if isinstance(tree, dict):
        yield tree, within
        for part in tree.get("cte_map", {}).get("map", ()):
            yield from _nodes_with_scope(part["value"], within)
            within |= {str(part["key"]).lower()}
        before = ("left", "query") if "cte_name" in tree else ()
        for key in before:
            yield from _nodes_with_scope(tree.get(key), within)
        if before:
            within |= {str(tree["cte_name"]).lower()}
        for key, value in tree.items():
            if key != "cte_map" and key not in before:
                yield from _nodes_with_scope(value, within)
    elif isinstance(tree, list):
        for each in tree:
            yield from _nodes_with_scope(each, within)


def _arguments(function: dict[str, Any], of_files: bool = False) -> list[dict[str, Any]]:
    """Positional arguments. Files are positional and options are named; a macro's may be either."""
    found = function.get("arguments") or function.get("children") or []
    if of_files:  # `delim := ';'`, which DuckDB 1.5 calls by an alias
        found = [each for each in found if not each.get("name") and not each.get("alias")]
    plain = [each.get("expression", each) for each in found]
    return [each for each in plain if each["class"] != "COMPARISON"]


def _mark_table_function(function: dict[str, Any]) -> None:
    """Mark the nodes of a table function and its option names: they are not row expressions."""
    function["class"] = "of a table"
    for each in function.get("arguments") or function.get("children") or []:
        if (option := each.get("expression", each))["class"] == "COMPARISON":
            option["left"]["class"] = "of a table"


def constant_texts(expression: dict[str, Any]) -> list[str] | None:
    """The texts of an argument; None if a part of it is not a constant."""
    if expression["class"] == "CONSTANT":
        literal = expression.get("literal")
        if literal is not None:
            return [literal["text"]] if literal["kind"] == "STRING" else []
        value = expression["value"].get("value")
        return [value] if isinstance(value, str) else []
    if expression["class"] == "FUNCTION" and expression["function_name"] == "list_value":
        parts = [constant_texts(each) for each in _arguments(expression)]
        if None in parts:
            return None
        return [text for part in parts for text in part or ()]
    return None
