"""The verbs as table macros: what SQL sees of dphh, in `dphh.connect()` and behind the gateway.

Built from the verbs' own signatures, so that names, options and defaults are those of Python. A
macro packs its arguments as JSON and asks one function, which answers with a table; who asks and
what it costs is the answering side's business (`Answer`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from dphh.as_sql.text import literal
from dphh.columns import COLUMNS
from dphh.corpus import Corpus
from dphh.errors import DphhError, UsageError
from dphh.registry import VERBS, Verb
from dphh.sql import help_on_looking

if TYPE_CHECKING:
    import duckdb

#: A macro's parameters and their defaults, in order; the first may go without its name.
Parameters = dict[str, Any]


class Answer(Protocol):
    def __call__(self, what: str, arguments: dict[str, Any]) -> pa.Table:
        """The table that a macro was asked for: `what` is its name without `dphh_`."""
        ...


#: SQL's names of the corpus's options, where Python's differ: `user` is a word of SQL's own.
SQL_NAMES = {
    "user": "user_column",
    "text": "text_column",
    "item": "item_column",
    "name": "account",
    # `keep` is an option of `ldp_trie` itself.
    "keep": "keep_tokens",
    "drop": "drop_tokens",
    "where": "where_rows",
}

_NOT_CONTENT = ("self", "source", "unit", "connection")

#: Rows of SQL are in no order: `line` is theirs.
PLAN_SCHEMA = pa.schema(
    [
        ("section", pa.string()),
        ("what", pa.string()),
        ("said", pa.string()),
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
    """What a macro takes and the columns it gives; what it prices or runs, if it does."""

    parameters: Parameters
    columns: pa.Schema
    verb: Verb[...] | None = None
    spends: bool = False
    #: Whether it gives the queries of a plan, in the place of its price.
    shows_queries: bool = False


def signature_of(verb: Verb[...]) -> Parameters:
    """The options of a verb. One without a default has None, as SQL's NULL."""
    return {name: _default(each) for name, each in verb.options.items()}


def content_signature() -> Parameters:
    """How the content is read and who pays: the keywords of `Corpus`, by SQL's names. What is NULL
    was not said, and is as Python's default is: of a corpus that the ledger names, its owner has
    said all of this, and what somebody says besides is refused, be it a default."""
    names = inspect.signature(Corpus.__init__).parameters
    return {SQL_NAMES.get(name, name): None for name in names if name not in _NOT_CONTENT}


def macros() -> dict[str, Macro]:
    """Every macro without its `dphh_`."""
    found: dict[str, Macro] = {}
    content = content_signature()
    for name, verb in VERBS.items():
        asked = {"corpus": None, **signature_of(verb), **content}
        found[name] = Macro({**asked, "run_id": None}, verb.columns, verb, spends=True)
        found[f"plan_{name}"] = Macro(asked, PLAN_SCHEMA, verb)
        found[f"sql_{name}"] = Macro(
            {**asked, "plain": False}, SQL_SCHEMA, verb, shows_queries=True
        )
    found["ledger"] = Macro({}, LEDGER_SCHEMA)
    found["releases"] = Macro({}, RELEASES_SCHEMA)
    # Any verb's: NULL where the verb has no such column.
    found["release"] = Macro({"run_id": None}, pa.schema(list(COLUMNS.items())))
    return found


def help_sql(temporary: bool = False) -> str:
    """`dphh_help()`: every macro of a connection, how it is called, and what it is for."""
    told = []
    for name, macro in macros().items():
        first = next(iter(macro.parameters), "")
        options = ", ".join([first, *(["..."] if len(macro.parameters) > 1 else [])])
        told.append(
            (
                "spends" if macro.spends else "free",
                f"FROM dphh_{name}({options})",
                _what(name, macro),
            )
        )
    rows = ", ".join(f"({', '.join(map(literal, row))})" for row in told)
    body = (
        f"SELECT kind, call, what FROM (VALUES {rows}) AS told (kind, call, what) "
        f"UNION ALL SELECT 'free', call, what FROM ({help_on_looking()})"
    )
    return macro_sql("dphh_help", "", body, temporary)


def _what(name: str, macro: Macro) -> str:
    if macro.verb is None:
        return _OF_THE_LEDGER[name]
    if macro.shows_queries:
        return f"the queries that {macro.verb.name} would run"
    said = (inspect.getdoc(macro.verb.price) or "").partition("\n")[0]
    return said if macro.spends else f"what {macro.verb.name} would cost and find"


_OF_THE_LEDGER = {
    "ledger": "what is spent and left of each corpus",
    "releases": "the releases that there are, with their run ids",
    "release": "a release by its run id",
}


def install(con: duckdb.DuckDBPyConnection, answer: Answer, *, temporary: bool = False) -> None:
    """Register the answering functions on a connection's instance, and define the macros."""
    from duckdb.func import PythonUDFType

    for name, macro in macros().items():
        con.create_function(
            f"dphh_answer_{name}",
            _vectorised(name, macro.parameters, macro.columns, answer),
            ["VARCHAR"],
            f"STRUCT(refused VARCHAR, rows {_rows_type(macro.columns)})",
            type=PythonUDFType.ARROW,
            # Neither folded while a query is planned nor run for a plan that is only explained.
            side_effects=True,
        )
        for statement in (
            macro_sql(f"dphh_asked_{name}", "asked", _ASK.format(name=name), temporary),
            macro_sql(
                f"dphh_{name}",
                parameters_sql(macro.parameters),
                f"FROM dphh_asked_{name}({packed_sql(macro.parameters)})",
                temporary,
            ),
        ):
            con.execute(statement)


#: What was refused is said by `error`, whose message stands alone, without Python's traceback.
_ASK = """
    SELECT unnest(
        CASE WHEN answer.refused IS NULL THEN answer.rows ELSE error(answer.refused) END,
        recursive := true)
    FROM (SELECT dphh_answer_{name}(asked) AS answer)
"""


def macro_sql(name: str, parameters: str, body: str, temporary: bool = False) -> str:
    kind = "TEMP MACRO" if temporary else "MACRO"
    return f"CREATE OR REPLACE {kind} {name}({parameters}) AS TABLE {body}"


def parameters_sql(parameters: Parameters) -> str:
    """The first parameter is positional, if there is any; all others have their defaults."""
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
    """What `dphh_asked_...` was given: mostly by its macro, but it may be by hand."""
    try:
        asked = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not asked.keys() <= parameters.keys():
        raise UsageError(f"dphh_asked_{name}: give a JSON object of dphh_{name}'s options")
    for option, value in asked.items():
        if not _is_value(value, depth=2):
            raise UsageError(f"{option}: give one value, or a list of values or of such lists")
    return {**parameters, **asked}


def _is_value(value: Any, depth: int) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_value(each, depth - 1) for each in value)
    return value is None or isinstance(value, (str, int, float))


def _vectorised(
    name: str, parameters: Parameters, schema: pa.Schema, answer: Answer
) -> Callable[[Any], Any]:
    """One answer a row, though a query hardly ever asks with more than one row."""

    def answers(asked: Any) -> Any:
        refused: list[str | None] = []
        tables = []
        for text in asked.to_pylist():
            try:
                table = _with_columns(answer(name, _arguments(name, parameters, text)), schema)
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
    """The schema's columns, NULL where the table has none."""
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


def _default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is inspect.Parameter.empty else parameter.default
