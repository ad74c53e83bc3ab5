"""The verbs as table macros: dphh's SQL interface, in `dphh.connect()` and behind the gateway.

The macros are built from the verbs' own signatures, so names, options and defaults are those of
Python. A macro packs its arguments as JSON and calls one function, which returns a table. What the
caller may see and what a call costs is decided by that function (`Answer`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from dphh.as_sql.query_text import literal
from dphh.columns import COLUMNS
from dphh.corpus import Corpus
from dphh.errors import DphhError, UsageError
from dphh.registry import VERBS, Verb

if TYPE_CHECKING:
    import duckdb

#: A macro's parameters and their defaults, in order; the first is positional.
Parameters = dict[str, Any]


class Answer(Protocol):
    """A function that answers a macro."""

    def __call__(self, what: str, arguments: dict[str, Any], statement: str, /) -> pa.Table:
        """The table that a macro returns; `what` is the macro's name without `dphh_`. `statement`
        is the same wherever one statement calls a macro, and another in the next statement."""
        ...


#: SQL names of the corpus's options where they differ from Python's: `user` is an SQL keyword.
SQL_NAMES = {
    "user": "user_column",
    "text": "text_column",
    "item": "item_column",
    # `keep` is an option of `ldp_trie` itself.
    "keep": "keep_tokens",
    "drop": "drop_tokens",
    "where": "where_rows",
}

_NOT_CONTENT_OPTIONS = ("self", "source", "unit", "connection")

#: Rows of SQL are in no order: `line` is theirs.
PLAN_SCHEMA = pa.schema(
    [
        ("section", pa.string()),
        ("fact", pa.string()),
        ("value", pa.string()),
        ("line", pa.int32()),
    ]
)
SQL_SCHEMA = pa.schema([("section", pa.string()), ("sql", pa.string()), ("line", pa.int32())])
LEDGER_SCHEMA = pa.schema(
    [
        ("corpus", pa.string()),
        ("cap_epsilon", pa.float64()),
        ("cap_delta", pa.float64()),
        ("spent_epsilon", pa.float64()),
        ("spent_delta", pa.float64()),
        ("left_epsilon", pa.float64()),
        ("left_delta", pa.float64()),
        ("runs", pa.int64()),
        ("used", pa.float64()),
        ("groups", pa.string()),
    ]
)
RELEASES_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("corpus", pa.string()),
        ("verb", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("made", pa.timestamp("us")),  # UTC
        ("parameters", pa.string()),
    ]
)


@dataclass(frozen=True)
class Macro:
    """A macro's parameters and result columns, and the verb that it prices or runs, if any."""

    parameters: Parameters
    columns: pa.Schema
    verb: Verb[...] | None = None
    spends: bool = False
    #: Whether it returns the queries of a plan instead of its price.
    shows_queries: bool = False


def signature_of(verb: Verb[...]) -> Parameters:
    """The options of a verb with their defaults; None, SQL's NULL, for one without a default."""
    return {name: _sql_default(each) for name, each in verb.options.items()}


def content_signature() -> Parameters:
    """The options of `Corpus` that say how the content is read and who pays, by their SQL names.
    NULL means not given, so Python's default applies. For a corpus in the ledger, its owner has
    declared all of these, and any other given value is refused, even a default."""
    names = inspect.signature(Corpus.__init__).parameters
    return {SQL_NAMES.get(name, name): None for name in names if name not in _NOT_CONTENT_OPTIONS}


def macros() -> dict[str, Macro]:
    """Every macro, by its name without `dphh_`."""
    found: dict[str, Macro] = {}
    content = content_signature()
    for name, verb in VERBS.items():
        asked = {"corpus": None, **signature_of(verb), **content}
        found[name] = Macro({**asked, "run_id": None}, verb.columns, verb, spends=True)
        found[f"plan_{name}"] = Macro(asked, PLAN_SCHEMA, verb)
        found[f"sql_{name}"] = Macro(asked, SQL_SCHEMA, verb, shows_queries=True)
    found["ledger"] = Macro({}, LEDGER_SCHEMA)
    found["releases"] = Macro({}, RELEASES_SCHEMA)
    # The columns of all verbs; NULL where the release has none.
    found["release"] = Macro({"run_id": None}, pa.schema(list(COLUMNS.items())))
    return found


def install(con: duckdb.DuckDBPyConnection, answer: Answer, *, temporary: bool = False) -> None:
    """Register the answering functions on a DuckDB instance, and define the macros."""
    from duckdb.func import PythonUDFType

    for name, macro in macros().items():
        con.create_function(
            f"dphh_answer_{name}",
            _vectorised(name, macro.parameters, macro.columns, answer),
            ["VARCHAR", "VARCHAR"],
            f"STRUCT(refused VARCHAR, rows {_rows_type(macro.columns)})",
            type=PythonUDFType.ARROW,
            # DuckDB must neither evaluate it while planning a query nor for EXPLAIN.
            side_effects=True,
        )
        for statement in (
            macro_sql(
                f"dphh_asked_{name}", "asked", _CALL_ANSWERING_FUNCTION.format(name=name), temporary
            ),
            macro_sql(
                f"dphh_{name}",
                parameters_sql(macro.parameters),
                f"FROM dphh_asked_{name}({packed_sql(macro.parameters)})",
                temporary,
            ),
        ):
            con.execute(statement)


#: Refusals are raised by `error`, so that the message has no Python traceback.
_CALL_ANSWERING_FUNCTION = """
    SELECT unnest(
        CASE WHEN answer.refused IS NULL THEN answer.rows ELSE error(answer.refused) END,
        recursive := true)
    FROM (
        SELECT dphh_answer_{name}(asked, concat_ws('.', current_query_id(), txid_current()))
            AS answer
    )
"""


def macro_sql(name: str, parameters: str, body: str, temporary: bool = False) -> str:
    kind = "TEMP MACRO" if temporary else "MACRO"
    return f"CREATE OR REPLACE {kind} {name}({parameters}) AS TABLE {body}"


def parameters_sql(parameters: Parameters) -> str:
    """The first parameter is positional; all others have their defaults."""
    return ", ".join(
        f'"{name}"' if index == 0 else f'"{name}" := {literal(default)}'
        for index, (name, default) in enumerate(parameters.items())
    )


def packed_sql(parameters: Parameters) -> str:
    if not parameters:
        return "'{}'"
    fields = ", ".join(f'"{name}": "{name}"' for name in parameters)
    return f"CAST(to_json({{{fields}}}) AS VARCHAR)"


def _arguments(name: str, parameters: Parameters, text: str) -> dict[str, Any]:
    """The arguments of `dphh_asked_...`, which a user may also call by hand."""
    try:
        asked = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not asked.keys() <= parameters.keys():
        raise UsageError(f"dphh_asked_{name}: give a JSON object of dphh_{name}'s options")
    for option, value in asked.items():
        if not _is_plain_value(value, depth=2):
            raise UsageError(f"{option}: give one value, or a list of values or of such lists")
    return {**parameters, **asked}


def _is_plain_value(value: Any, depth: int) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_plain_value(each, depth - 1) for each in value)
    return value is None or isinstance(value, (str, int, float))


def _vectorised(
    name: str, parameters: Parameters, schema: pa.Schema, answer: Answer
) -> Callable[[Any, Any], Any]:
    """Answers each row of a batch, though queries rarely have more than one."""

    def answers(asked: Any, statements: Any) -> Any:
        refused: list[str | None] = []
        tables = []
        for text, statement in zip(asked.to_pylist(), statements.to_pylist(), strict=True):
            try:
                arguments = _arguments(name, parameters, text)
                table = _with_columns(answer(name, arguments, statement), schema)
            except DphhError as problem:
                refused.append(str(problem))
                table = schema.empty_table()
            else:
                refused.append(None)
            tables.append(table)
        lengths = [0]
        for table in tables:
            lengths.append(lengths[-1] + table.num_rows)
        together = pa.concat_tables(tables)
        rows = pa.StructArray.from_arrays(
            [_one_chunk(column) for column in together.columns], fields=list(schema)
        )
        lists = pa.ListArray.from_arrays(pa.array(lengths, pa.int32()), rows)
        whole = pa.StructArray.from_arrays(
            [pa.array(refused, pa.string()), lists], ["refused", "rows"]
        )
        return pa.chunked_array([whole])

    return answers


def _with_columns(table: Any, schema: pa.Schema) -> Any:
    """The table with the schema's columns; NULL where the table has none."""
    return pa.table(
        [
            table[field.name].cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _one_chunk(column: Any) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


_TYPES = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.list_(pa.string()): "VARCHAR[]",
    pa.timestamp("us"): "TIMESTAMP",
}


def _rows_type(schema: pa.Schema) -> str:
    columns = ", ".join(f'"{field.name}" {_TYPES[field.type]}' for field in schema)
    return f"STRUCT({columns})[]"


def _sql_default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is inspect.Parameter.empty else parameter.default
