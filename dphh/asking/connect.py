"""`dphh.register(con)`: the verbs as table macros of a DuckDB connection, whoever opened it;
`dphh.connect()` opens one.

A request is drawn once. If the same macro is called again, in this statement or a later one, it
gets the release from the ledger for nothing; on other rows it spends.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from itertools import accumulate, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dphh.asking import answers
from dphh.asking.macros import (
    SQL_NAME_OF_OPTION,
    Macro,
    argument_as_text,
    column_sql_types,
    corpus_options_by_sql_name,
    macro_sql,
    macros,
)
from dphh.asking.parsed import narrowed_corpus_of_account, typed_options
from dphh.checking import check
from dphh.errors import DphhError, UsageError
from dphh.ledger import Account, Ledger
from dphh.ledger.schema import is_ledger
from dphh.plan import Plan, verb_function
from dphh.reader.corpus import CORPUS_OPTIONS, Corpus
from dphh.reader.rows import check_columns
from dphh.release import Release
from dphh.report.plan_lines import plan_sections
from dphh.run import Note, show_budget_notes
from dphh.wording.options import check_required, checked_call, respell_options, shown

if TYPE_CHECKING:
    import duckdb

#: The size of DuckDB's buffer for results. In DuckDB 1.5, `con.sql(..., params=...)` holds Python's
#: lock while it takes a larger result, and a macro on another thread waits for this lock: a
#: deadlock. `execute`, and DuckDB 2.0, release the lock.
RESULT_BUFFER_SIZE = "1GB"

#: For each argument of a macro, by its name in SQL, its text.
Arguments = dict[str, str]

#: All functions of a DuckDB instance have one name space, which its connections share.
_registrations = count(1)


@checked_call
def connect(
    database: str | Path = ":memory:",
    *,
    ledger: Ledger | str | Path | None = None,
    config: dict[str, Any] | None = None,
    engine: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """`duckdb.connect(database, config=config)`, with dphh's macros: `register` says which."""
    import duckdb

    named = str(database) if isinstance(database, Path) else database
    if not isinstance(named, str) or is_ledger(Path(named)):
        raise UsageError(
            f"database: {shown(named)} is no DuckDB database; give the path of one, or none for "
            "tables in memory. The ledger is an option of its own: ledger=..."
        )
    con = duckdb.connect(named, config=config or {})
    if int(duckdb.__version__.partition(".")[0]) < 2:
        con.execute(f"SET streaming_buffer_size = '{RESULT_BUFFER_SIZE}'")
    return register(con, ledger, engine=engine)


@checked_call
def register(
    con: duckdb.DuckDBPyConnection,
    ledger: Ledger | str | Path | None = None,
    *,
    engine: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """Give a DuckDB connection dphh's macros, and return it. `FROM dphh_ngrams('reviews/*.parquet',
    ...)` spends and returns the release; `dphh_plan_ngrams(...)`, `dphh_ledger()`,
    `dphh_releases()` and `dphh_release(run_id)` cost nothing, and `FROM dphh_help()` lists all.

    A corpus is a name in the ledger; or, with `user_column :=` and `text_column :=` or
    `item_column :=`, a table or view of the connection, a Parquet path or a glob.

    Cursors of a connection whose database is in memory have the macros too. A file cannot keep
    them: there each cursor is registered by itself.
    """
    import duckdb
    from duckdb.func import PythonUDFType

    current = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
    # A wrapper of a connection, such as SQLAlchemy's, passes this to the connection itself.
    opened = con.execute(current) if hasattr(con, "execute") else None
    if not isinstance(opened, duckdb.DuckDBPyConnection):
        raise UsageError(
            f"con: found a {type(con).__name__}; give a DuckDB connection, as duckdb.connect() "
            "returns one"
        )
    ((file,),) = opened.fetchall()
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    owner, number = _AnswersForOwner(opened, book, engine), next(_registrations)
    for macro in macros().values():
        columns = ", ".join(f'"{name}" {kind}' for name, kind in column_sql_types(macro).items())
        answer_name = f"dphh_answer_{number}_{macro.name}"
        opened.create_function(
            answer_name,
            _batch_function(macro, owner),
            ["VARCHAR"],
            f"STRUCT({columns})[]",
            type=PythonUDFType.ARROW,
            # So DuckDB does not call the function while it plans or explains a query.
            side_effects=True,
        )
        # A database in memory shares its macros with cursors. In a file the macros are temporary:
        # their functions exist in this process only.
        opened.execute(
            macro_sql(macro, _source_sql(macro, answer_name), temporary=file is not None)
        )
    return con


def _source_sql(macro: Macro, answer_name: str) -> str:
    """An SQL expression: the rows with which the function behind the macro answers."""
    packed = ", ".join(f"'{name}': {argument_as_text(name)}" for name in macro.parameters)
    arguments_json = f"CAST(to_json({{{packed}}}) AS VARCHAR)" if packed else "'{}'"
    return f"(SELECT unnest({answer_name}({arguments_json}), recursive := true))"


def _batch_function(macro: Macro, owner: _AnswersForOwner) -> Callable[[Any], Any]:
    """The function behind a macro, which DuckDB calls with a batch of calls, a row for each."""
    columns = macro.columns_of_answer

    def answer(arguments_json: str) -> pa.Table:
        arguments = {k: v for k, v in json.loads(arguments_json).items() if v is not None}
        try:
            table = owner.answer(macro, arguments)
        except DphhError as problem:
            table = pa.table({"refused": [_in_words_of_sql(str(problem))]})
        # Columns that the answer lacks are NULL.
        with_all = pa.concat_tables([columns.empty_table(), table], promote_options="permissive")
        return with_all.select(columns.names).cast(columns)

    def answer_batch(arguments_json: Any) -> Any:
        tables = [*map(answer, arguments_json.to_pylist())]
        ends = [0, *accumulate(table.num_rows for table in tables)]
        rows = pa.concat_tables(tables).to_struct_array().combine_chunks()
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rows)])

    return answer_batch


def _show_note(line: str) -> None:
    """Show a note on what a run costs, with SQL's names of options."""
    if isinstance(line, Note):
        show_budget_notes(Note(_in_words_of_sql(line.removeprefix("note: "))))


def _in_words_of_sql(message: str) -> str:
    """The message with SQL's names of options, both in its beginning and in its advice."""
    about, colon, rest = message.partition(":")
    if re.fullmatch(r"\w+( or \w+)*", about):
        about = re.sub(r"\w+", lambda name: SQL_NAME_OF_OPTION.get(name[0], name[0]), about)
    return respell_options(about + colon + rest, _option_in_sql)


def _option_in_sql(name: str, value: str) -> str:
    """The option as SQL spells it, for an error that has `name=value`."""
    if name == "again":  # macros lack it: a statement that is repeated would spend by accident
        name, value = "run_id", "'a new name'"
    literal = value.lower() if value in ("True", "False") else value
    return f"{SQL_NAME_OF_OPTION.get(name, name)} := {literal}"


class _AnswersForOwner:
    """Answers the macros for the owner of the data: any corpus, and the whole ledger."""

    def __init__(self, con: duckdb.DuckDBPyConnection, ledger: Ledger, engine: str | None) -> None:
        # A weak reference, because the connection's own functions reference this object.
        self._con = weakref.ref(con)
        self._ledger, self._engine = ledger, engine

    def answer(self, macro: Macro, arguments: Arguments) -> pa.Table:
        macro.check_given(arguments)
        if macro.spends:
            return self._release(macro, arguments).table
        if macro.verb is not None:
            plan = self._plan(macro, arguments)
            assert plan.corpus is not None
            check_columns(plan.corpus)
            return answers.plan_table(plan_sections(plan.price, plan.corpus, self._ledger))
        if macro.name == "add_corpus":
            return answers.ledger_table(macro, [self._added_account(macro, arguments)])
        if macro.name == "check":
            corpus = self._corpus(macro, arguments)
            checked = check(corpus, ledger=self._ledger, engine=self._engine)
            findings = (replace(f, found=_in_words_of_sql(f.found)) for f in checked.findings)
            return answers.check_table(macro, findings)
        return answers.answer_without_plan(macro, arguments, self._ledger)

    def _added_account(self, macro: Macro, arguments: Arguments) -> Account:
        """The account that is added, or the existing one of this name and corpus."""
        parameters = signature(Ledger.add, eval_str=True).parameters
        options = {name: parameters[name] for name in ("epsilon", "delta", "rule")}
        texts = {name: text for name, text in arguments.items() if name in options}
        cap = typed_options(options, texts, "dphh_add_corpus")
        check_required(cap, options, "dphh_add_corpus")
        corpus = self._corpus(macro, {**arguments, "corpus": arguments["source"]})
        return self._ledger.add(arguments["corpus"], corpus, **cap, if_missing=True)

    def _release(self, macro: Macro, arguments: Arguments) -> Release:
        return self._plan(macro, arguments).run(
            ledger=self._ledger, engine=self._engine, run_id=arguments.get("run_id"),
            progress=_show_note, **self._limits_of_connection(),
        )  # fmt: skip

    def _plan(self, macro: Macro, arguments: Arguments) -> Plan:
        assert macro.verb is not None
        texts = {name: text for name, text in arguments.items() if name in macro.verb.options}
        corpus = self._corpus(macro, arguments)
        options = typed_options(macro.verb.options, texts, f"dphh_{macro.name}")
        con, prior = self._con(), options.get("prior")
        if con is not None and isinstance(prior, str) and _has_table_or_view(con, prior):
            options["prior"] = con.cursor().table(prior)
        return verb_function(macro.verb, self._ledger)(corpus, **options)

    def _corpus(self, macro: Macro, arguments: Arguments) -> Corpus:
        name = arguments["corpus"]
        python_names = corpus_options_by_sql_name()
        texts = {python_names[key]: text for key, text in arguments.items() if key in python_names}
        options = typed_options(CORPUS_OPTIONS, texts, "Corpus")
        if "user" not in options:
            corpus = narrowed_corpus_of_account(
                self._ledger, name, options, lambda option: SQL_NAME_OF_OPTION.get(option, option)
            )
            if corpus is None:
                raise UsageError(
                    f"corpus: the ledger has no corpus {name!r}; for a table or a path, name its "
                    "columns: user_column := ..., and text_column := ... or item_column := ..."
                )
            return corpus
        con = self._con()
        if con is not None and _has_table_or_view(con, name):
            return Corpus(name, connection=con.cursor(), **options)
        if re.fullmatch(r"\w+", name) and not Path(name).exists():
            raise UsageError(
                f"corpus: found no table, view or file {name!r}; of a Python frame or a temporary "
                f"table, which its own connection alone sees, CREATE TABLE makes one that is found"
            )
        return Corpus(name, **options)

    def _limits_of_connection(self) -> dict[str, Any]:
        """The limits of memory and threads that were set on the connection. A run on DuckDB, which
        has an instance of its own, obeys them too."""
        import duckdb

        con = self._con()
        if con is None or self._engine not in (None, "duckdb"):
            return {}
        query = "SELECT current_setting('memory_limit'), current_setting('threads')"
        with con.cursor() as cursor, duckdb.connect() as fresh:
            (limits,), (defaults,) = (each.execute(query).fetchall() for each in (cursor, fresh))
        settings = zip(("memory_limit", "threads"), limits, defaults, strict=True)
        return {name: limit for name, limit, default in settings if limit != default}


def _has_table_or_view(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    query = """
        SELECT 1
        FROM information_schema.tables
        WHERE lower($1) IN (
            lower(table_name), lower(table_schema || '.' || table_name),
            lower(table_catalog || '.' || table_schema || '.' || table_name),
            lower(table_catalog || '.' || table_name))
    """
    return bool(con.cursor().execute(query, [name]).fetchall())
