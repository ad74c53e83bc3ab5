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
from dphh.asking.asked import asked_corpus, corpus_of_account, typed
from dphh.asking.macros import (
    SQL_NAMES,
    Macro,
    argument_as_text,
    columns_sql,
    content_parameters,
    macro_sql,
    macros,
)
from dphh.corpus import Corpus
from dphh.engines import look_at_columns
from dphh.errors import DphhError, UsageError
from dphh.ledger import Ledger
from dphh.plan import Plan, verb_function
from dphh.public.asked import with_public_knowledge
from dphh.release import Release
from dphh.replay import Note, show_budget_notes
from dphh.report.plan_lines import plan_sections
from dphh.wording.options import checked_call, respelled

if TYPE_CHECKING:
    import duckdb

#: DuckDB 1.5's `con.sql(..., params=...)` holds Python's lock while it takes results beyond this
#: buffer. A macro that then runs on a DuckDB thread waits for that lock: a deadlock. So results
#: below this size are buffered whole. `execute`, and DuckDB 2.0, release the lock.
BUFFERED_RESULT_SIZE = "1GB"
#: At most this many statements with one call are remembered: each sees the same release throughout.
KEPT_STATEMENTS = 100

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
    owner = _Owner(con, ledger if isinstance(ledger, Ledger) else Ledger(ledger), engine)
    for macro in macros(of_tables=True).values():
        columns = ", ".join(f'"{name}" {kind}' for name, kind in columns_sql(macro).items())
        con.create_function(
            f"dphh_answer_{macro.name}",
            _vectorised(macro, owner),
            ["VARCHAR", "VARCHAR"],
            f"STRUCT({columns})[]",
            type=PythonUDFType.ARROW,
            # DuckDB must neither evaluate it while planning a query nor for EXPLAIN.
            side_effects=True,
        )
        # In memory, cursors share the macros. In a file they are temporary: they need this process.
        con.execute(macro_sql(macro, _source, temporary=str(database) != ":memory:"))
    return con


def _source(macro: Macro) -> str:
    packed = ", ".join(f"'{name}': {argument_as_text(name)}" for name in macro.parameters)
    given = f"CAST(to_json({{{packed}}}) AS VARCHAR)" if packed else "'{}'"
    statement = "concat_ws('.', current_query_id(), txid_current())"
    answer = f"dphh_answer_{macro.name}({given}, {statement})"
    return f"(SELECT unnest({answer}, recursive := true))"


def _vectorised(macro: Macro, owner: _Owner) -> Callable[[Any, Any], Any]:
    """Answers each row of a batch, though queries rarely have more than one."""
    columns = pa.schema([("refused", pa.string()), *macro.columns])

    def answer(given: str, statement: str) -> pa.Table:
        try:
            arguments = {k: v for k, v in json.loads(given).items() if v is not None}
            return answers.with_columns(owner.answer(macro, arguments, statement), columns)
        except DphhError as problem:
            told = pa.table({"refused": pa.array([respelled(str(problem), _option_in_sql)])})
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
    """An option of an error's text, which has Python's `name=value`, as SQL writes it."""
    literal = value.lower() if value in ("True", "False") else value
    return f"{SQL_NAMES.get(name, name)} := {literal}"


class _KeptAnswers:
    """The results of the statements that make one call of a macro."""

    def __init__(self) -> None:
        self.answering = threading.Lock()
        #: Of a table or view: later statements return it, as they cannot tell whether rows changed.
        self.release: Release | None = None
        #: By the statement, oldest first.
        self.tables: dict[str, pa.Table] = {}

    def keep(self, statement: str, table: pa.Table) -> None:
        self.tables[statement] = table
        if len(self.tables) > KEPT_STATEMENTS:
            del self.tables[next(iter(self.tables))]


class _Owner:
    """Answers the macros for the owner of the data: any corpus, and the whole ledger."""

    def __init__(self, con: duckdb.DuckDBPyConnection, ledger: Ledger, engine: str | None) -> None:
        # A weak reference, because the connection's own functions reference this object.
        self._con = weakref.ref(con)
        self._ledger, self._engine = ledger, engine
        self._guard = threading.Lock()
        self._asked: defaultdict[str, _KeptAnswers] = defaultdict(_KeptAnswers)

    def answer(self, macro: Macro, given: Arguments, statement: str) -> pa.Table:
        if macro.spends:
            return self._run_once(macro, given, statement)
        if macro.verb is not None:
            plan = self._plan(macro, given)
            assert plan.corpus is not None
            look_at_columns(plan.corpus)
            return answers.plan_table(plan_sections(plan.price, plan.corpus, self._ledger))
        accounts = self._ledger.accounts()
        return answers.table_of_ledger(macro, given, self._ledger, accounts, of_tables=True)

    def _run_once(self, macro: Macro, given: Arguments, statement: str) -> pa.Table:
        with self._guard:
            asked = self._asked[json.dumps([macro.name, given], sort_keys=True)]
        with asked.answering:  # the same request on another thread waits for this one
            if statement not in asked.tables:
                asked.keep(statement, self._release_of(macro, given, asked).table)
            return asked.tables[statement]

    def _release_of(self, macro: Macro, given: Arguments, asked: _KeptAnswers) -> Release:
        run_id = given.get("run_id")
        if run_id is None and asked.release is not None:
            show_budget_notes(_repeat_note(asked.release))
            return asked.release
        plan = self._plan(macro, given)
        release = plan.run(
            ledger=self._ledger, engine=self._engine, run_id=run_id, **self._limits_of_connection()
        )
        if plan.corpus is not None and plan.corpus.kind != "path":
            asked.release = release
        return release

    def _plan(self, macro: Macro, given: Arguments) -> Plan:
        assert macro.verb is not None
        asked = {name: text for name, text in given.items() if name in macro.verb.options}
        corpus = self._corpus(macro, given)
        options = typed(macro.verb.options, asked, f"dphh_{macro.name}")
        con, prior = self._con(), options.get("prior")
        if con is not None and isinstance(prior, str) and _has_table(con, prior):
            options["prior"] = con.cursor().table(prior)
        options = with_public_knowledge(options, corpus, self._ledger)
        return verb_function(macro.verb)(corpus, **options)

    def _corpus(self, macro: Macro, given: Arguments) -> Corpus:
        name = asked_corpus(given, macro.name)
        of_corpus = content_parameters()
        said = {of_corpus[key]: value for key, value in given.items() if key in of_corpus}
        content = typed(signature(Corpus.__init__, eval_str=True).parameters, said, "Corpus")
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
        """The memory and threads that were set on the connection. A run on DuckDB obeys them in its
        own instance, in which it reads the private rows."""
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
        "made before of this table; whether its rows have changed is not seen. A run_id of your "
        "own spends again"
    )


def _read_limits(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    with con:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = con.execute(asked).fetchall()
    return {"memory_limit": memory, "threads": threads}


def _has_table(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    return bool(con.cursor().execute(_FIND_TABLE_OR_VIEW, [name]).fetchall())


_FIND_TABLE_OR_VIEW = """
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
