"""`dphh.connect()`: a DuckDB connection in which the verbs are table macros.

A request is drawn once. One statement sees one release, however often it names a macro. A later
statement gets the release of the same files from the ledger, for nothing; of a table or view it
gets the one that this connection made before. To draw again of a table whose rows have changed,
give the run a name of its own: `run_id := 'after the update'`.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dphh.asking import answers
from dphh.asking.asked import corpus_of_account, given_corpus_name, typed_options
from dphh.asking.macros import (
    SQL_NAMES,
    Macro,
    argument_as_text,
    column_sql_types,
    corpus_options_by_sql_name,
    macro_sql,
    macros,
)
from dphh.corpus import Corpus
from dphh.engines import check_columns
from dphh.errors import DphhError, UsageError
from dphh.ledger import Ledger
from dphh.plan import Plan, verb_function
from dphh.release import Release
from dphh.replay import Note, show_budget_notes
from dphh.report.plan_lines import plan_sections
from dphh.wording.options import checked_call, respell_options

if TYPE_CHECKING:
    import duckdb

#: DuckDB 1.5's `con.sql(..., params=...)` holds Python's lock while it takes results beyond this
#: buffer. A macro that then runs on a DuckDB thread waits for that lock: a deadlock. So results
#: below this size are buffered whole. `execute`, and DuckDB 2.0, release the lock.
BUFFERED_RESULT_SIZE = "1GB"
#: Of each call of a macro, the tables of this many statements are kept, the latest ones: a
#: statement that has the call twice sees one release.
KEPT_STATEMENTS = 100

#: The arguments of a macro as texts, by their names in SQL.
Arguments = dict[str, str]


@checked_call
def connect(
    ledger: Ledger | str | Path | None = None,
    *,
    database: str | Path = ":memory:",
    config: dict[str, Any] | None = None,
    engine: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in which `FROM dphh_ngrams('reviews/*.parquet', ...)` spends and returns
    the release; `dphh_plan_ngrams(...)`, `dphh_ledger()`, `dphh_releases()` and
    `dphh_release(run_id)` cost nothing, and `FROM dphh_help()` lists all.

    A corpus is a name in the ledger; or, with `user_column :=` and `text_column :=` or
    `item_column :=`, a table or view of the connection, a Parquet path or a glob.

    With `database=`, a file, cursors of the connection lack the macros, which a file cannot keep:
    where cursors are needed, leave `database` out and say `ATTACH 'app.duckdb'`.
    """
    import duckdb
    from duckdb.func import PythonUDFType

    con = duckdb.connect(str(database), config=config or {})
    if duckdb.__version__ < "2":
        con.execute(f"SET streaming_buffer_size = '{BUFFERED_RESULT_SIZE}'")
    owner = _AnswersForOwner(con, ledger if isinstance(ledger, Ledger) else Ledger(ledger), engine)
    for macro in macros(tables_and_paths=True).values():
        columns = ", ".join(f'"{name}" {kind}' for name, kind in column_sql_types(macro).items())
        con.create_function(
            f"dphh_answer_{macro.name}",
            _batch_function(macro, owner),
            ["VARCHAR", "VARCHAR"],
            f"STRUCT({columns})[]",
            type=PythonUDFType.ARROW,
            # DuckDB must not call the function while it plans a query, nor for EXPLAIN.
            side_effects=True,
        )
        # A database in memory shares its macros with cursors. In a file the macros are temporary:
        # their functions exist in this process only.
        con.execute(macro_sql(macro, _rows_sql, temporary=str(database) != ":memory:"))
    return con


def _rows_sql(macro: Macro) -> str:
    packed = ", ".join(f"'{name}': {argument_as_text(name)}" for name in macro.parameters)
    given = f"CAST(to_json({{{packed}}}) AS VARCHAR)" if packed else "'{}'"
    statement = "concat_ws('.', current_query_id(), txid_current())"
    answer = f"dphh_answer_{macro.name}({given}, {statement})"
    return f"(SELECT unnest({answer}, recursive := true))"


def _batch_function(macro: Macro, owner: _AnswersForOwner) -> Callable[[Any, Any], Any]:
    """The function behind a macro, as DuckDB calls it: with a batch of calls, a row for each."""
    columns = pa.schema([("refused", pa.string()), *macro.columns])

    def answer(given: str, statement: str) -> pa.Table:
        try:
            arguments = {k: v for k, v in json.loads(given).items() if v is not None}
            return answers.with_columns(owner.answer(macro, arguments, statement), columns)
        except DphhError as problem:
            told = pa.table({"refused": pa.array([respell_options(str(problem), _option_in_sql)])})
            return answers.with_columns(told, columns)

    def answer_batch(given: Any, statements: Any) -> Any:
        asked = zip(given.to_pylist(), statements.to_pylist(), strict=True)
        tables = [answer(*each) for each in asked]
        ends = [0]
        for table in tables:
            ends.append(ends[-1] + table.num_rows)
        rows = pa.concat_tables(tables).to_struct_array().combine_chunks()
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rows)])

    return answer_batch


def _option_in_sql(name: str, value: str) -> str:
    """How SQL writes an option that the text of an error has as `name=value`."""
    literal = value.lower() if value in ("True", "False") else value
    return f"{SQL_NAMES.get(name, name)} := {literal}"


class _AnswersToOneCall:
    """The answers to one call (a macro with its arguments), a table for each SQL statement."""

    def __init__(self) -> None:
        self.answering = threading.Lock()
        #: The release, if the corpus is a table or view. Later statements return it again, because
        #: nothing shows whether the rows have changed.
        self.release: Release | None = None
        #: The table that each statement got, the oldest first.
        self.tables: dict[str, pa.Table] = {}

    def keep(self, statement: str, table: pa.Table) -> None:
        self.tables[statement] = table
        if len(self.tables) > KEPT_STATEMENTS:
            del self.tables[next(iter(self.tables))]


class _AnswersForOwner:
    """Answers the macros for the owner of the data: any corpus, and the whole ledger."""

    def __init__(self, con: duckdb.DuckDBPyConnection, ledger: Ledger, engine: str | None) -> None:
        # A weak reference, because the connection's own functions reference this object.
        self._con = weakref.ref(con)
        self._ledger, self._engine = ledger, engine
        self._guard = threading.Lock()
        self._answers_by_call: defaultdict[str, _AnswersToOneCall] = defaultdict(_AnswersToOneCall)

    def answer(self, macro: Macro, given: Arguments, statement: str) -> pa.Table:
        if macro.spends:
            return self._run_once(macro, given, statement)
        if macro.verb is not None:
            plan = self._plan(macro, given)
            assert plan.corpus is not None
            check_columns(plan.corpus)
            return answers.plan_table(plan_sections(plan.price, plan.corpus, self._ledger))
        accounts = self._ledger.accounts()
        return answers.answer_without_plan(
            macro, given, self._ledger, accounts, tables_and_paths=True
        )

    def _run_once(self, macro: Macro, given: Arguments, statement: str) -> pa.Table:
        with self._guard:
            kept = self._answers_by_call[json.dumps([macro.name, given], sort_keys=True)]
        with kept.answering:  # the same request on another thread waits for this one
            if statement not in kept.tables:
                kept.keep(statement, self._release_of(macro, given, kept).table)
            return kept.tables[statement]

    def _release_of(self, macro: Macro, given: Arguments, kept: _AnswersToOneCall) -> Release:
        run_id = given.get("run_id")
        if run_id is None and kept.release is not None:
            show_budget_notes(_repeat_note(kept.release))
            return kept.release
        plan = self._plan(macro, given)
        release = plan.run(
            ledger=self._ledger, engine=self._engine, run_id=run_id, **self._limits_of_connection()
        )
        if plan.corpus is not None and plan.corpus.kind != "path":
            kept.release = release
        return release

    def _plan(self, macro: Macro, given: Arguments) -> Plan:
        assert macro.verb is not None
        asked = {name: text for name, text in given.items() if name in macro.verb.options}
        corpus = self._corpus(macro, given)
        options = typed_options(macro.verb.options, asked, f"dphh_{macro.name}")
        con, prior = self._con(), options.get("prior")
        if con is not None and isinstance(prior, str) and _has_table(con, prior):
            options["prior"] = con.cursor().table(prior)
        return verb_function(macro.verb, self._ledger)(corpus, **options)

    def _corpus(self, macro: Macro, given: Arguments) -> Corpus:
        name = given_corpus_name(given, macro.name)
        of_corpus = corpus_options_by_sql_name()
        said = {of_corpus[key]: value for key, value in given.items() if key in of_corpus}
        content = typed_options(
            signature(Corpus.__init__, eval_str=True).parameters, said, "Corpus"
        )
        if "user" not in content:
            found = corpus_of_account(
                self._ledger, name, content, lambda option: SQL_NAMES.get(option, option)
            )
            if found is None:
                raise UsageError(
                    f"corpus: the ledger has no corpus {name!r}; for a table or a path, name its "
                    "columns: user_column := ..., and text_column := ... or item_column := ..."
                )
            return found
        con = self._con()
        if con is not None and _has_table(con, name):
            return Corpus(name, connection=con.cursor(), **content)
        if re.fullmatch(r"\w+", name) and not Path(name).exists():
            raise UsageError(
                f"corpus: found no table, view or file {name!r}; if it is a Python frame, make a "
                f"table of it with CREATE TABLE {name} AS FROM frame"
            )
        return Corpus(name, **content)

    def _limits_of_connection(self) -> dict[str, Any]:
        """The limits of memory and threads that were set on the connection. A run on DuckDB obeys
        them in its own instance, in which it reads the private rows."""
        import duckdb

        con = self._con()
        if con is None or self._engine not in (None, "duckdb"):
            return {}
        usual = _read_limits(duckdb.connect())
        return {
            name: value
            for name, value in _read_limits(con.cursor()).items()
            if value != usual[name]
        }


def _repeat_note(release: Release) -> Note:
    return Note(
        f"nothing is spent: this is the release of run {release.run_id}, which this connection "
        "made of this table before; whether its rows have changed is not seen. To spend again, "
        "give a new run_id"
    )


def _read_limits(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    with con:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = con.execute(asked).fetchall()
    return {"memory_limit": memory, "threads": threads}


def _has_table(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    return bool(con.cursor().execute(_TABLE_OR_VIEW_SQL, [name]).fetchall())


_TABLE_OR_VIEW_SQL = """
    SELECT 1
    FROM (
        SELECT database_name AS in_database, schema_name AS in_schema, table_name AS name
        FROM duckdb_tables()
        UNION ALL
        SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
    )
    WHERE lower($1) IN (
        lower(name), lower(in_schema || '.' || name),
        lower(in_database || '.' || in_schema || '.' || name), lower(in_database || '.' || name))
"""
