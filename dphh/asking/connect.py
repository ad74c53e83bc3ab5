"""`dphh.connect()`: a DuckDB connection in which the verbs are table macros.

A request is drawn once. If it is repeated, in the same statement or a later one, its release comes
back and costs nothing: a query may contain a macro twice, an optimiser may run it twice, and a
relation is executed each time it is shown. One statement sees one release. A later statement sees
it only if the data are the same, compared as `dphh.replay` does; other data are another request.
For files, this also holds on later connections. To draw again, pass a `run_id` of your own.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dphh.asking.answers import (
    Arguments,
    answered,
    corpus_name,
    given_content,
    owners_corpus,
    plan_of,
    plan_table,
    queries_table,
)
from dphh.asking.help import help_sql
from dphh.asking.macros import Macro, install
from dphh.corpus import WHICH_ROWS, Corpus, narrowed
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.plan import Plan
from dphh.public.asked_prior import with_prior
from dphh.public.counted_items import with_declared, with_release
from dphh.registry import Verb
from dphh.release import Release
from dphh.report.plan_lines import plan_sections
from dphh.wording.options import named_in_words

if TYPE_CHECKING:
    import duckdb

#: DuckDB 1.5's `con.sql(..., params=...)` holds Python's lock while it takes results beyond this
#: buffer. A macro that then runs on a DuckDB thread waits for that lock: a deadlock. So results
#: below this size are buffered whole. `execute`, and DuckDB 2.0, release the lock.
BUFFERED_RESULT_SIZE = "1GB"
#: How many statements that go on at once see one release each, whatever the data become.
KEPT_STATEMENTS = 100


@named_in_words
def connect(
    ledger: Ledger | str | Path | None = None,
    *,
    database: str | Path = ":memory:",
    config: dict[str, Any] | None = None,
    engine: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in which `FROM dphh_ngrams('reviews/*.parquet', ...)` spends and returns
    the release; `dphh_plan_ngrams(...)`, `dphh_sql_ngrams(...)`, `dphh_ledger()`,
    `dphh_releases()` and `dphh_release(run_id)` cost nothing.

    A corpus is a name in the ledger; or, with `user_column :=` and `text_column :=` or
    `item_column :=`, a table or view of the connection, a Parquet path or a glob.

    With `database=`, a file, cursors of the connection lack the macros, which a file cannot keep:
    where cursors are needed, leave `database` out and say `ATTACH 'app.duckdb'`.
    """
    import duckdb

    con = duckdb.connect(str(database), config=config or {})
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    # In memory, cursors share the macros. In a file they are temporary: they need this process.
    temporary = str(database) != ":memory:"
    if duckdb.__version__ < "2":
        con.execute(f"SET streaming_buffer_size = '{BUFFERED_RESULT_SIZE}'")
    install(con, _Owner(con, book, engine), temporary=temporary)
    con.execute(help_sql(temporary))
    return con


class _Asked:
    """What the statements with one call of a macro came to."""

    def __init__(self) -> None:
        self.answering = threading.Lock()
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
        self._asked: defaultdict[str, _Asked] = defaultdict(_Asked)

    def __call__(self, what: str, arguments: Arguments, statement: str) -> pa.Table:
        def priced_or_run(macro: Macro, arguments: Arguments) -> pa.Table:
            return self._priced_or_run(macro, arguments, statement)

        return answered(
            what,
            arguments,
            accounts=self._ledger.accounts,
            groups=self._ledger.declared_groups,
            releases=lambda: (self._ledger.runs(), None),
            release=self._release,
            verb=priced_or_run,
        )

    def _release(self, run_id: object) -> pa.Table:
        if not isinstance(run_id, str):
            raise UsageError("run_id: give the id of a release; FROM dphh_releases() lists them")
        manifest, parquet = self._ledger.release(run_id)
        return Release.from_parquet(parquet, manifest).table

    def _priced_or_run(self, macro: Macro, arguments: Arguments, statement: str) -> pa.Table:
        assert macro.verb is not None
        arguments = with_declared(arguments, self._ledger, arguments.get("corpus"))
        if macro.spends:
            return self._run_once(macro.verb, arguments, statement)
        kind = "sql" if macro.shows_queries else "plan"
        plan = self._plan(macro.verb, f"{kind}_{macro.verb.name}", arguments)
        if macro.shows_queries:
            return queries_table(plan)
        return plan_table(plan_sections(plan.price, plan.corpus, self._ledger))

    def _run_once(self, verb: Verb[...], arguments: Arguments, statement: str) -> pa.Table:
        request = json.dumps([verb.name, arguments], sort_keys=True)
        with self._guard:
            asked = self._asked[request]
        with asked.answering:  # the same request on another thread waits for this one
            if statement not in asked.tables:
                asked.keep(statement, self._release_of(verb, arguments, asked).table)
            return asked.tables[statement]

    def _release_of(self, verb: Verb[...], arguments: Arguments, asked: _Asked) -> Release:
        return self._plan(verb, verb.name, arguments).run(
            ledger=self._ledger,
            engine=self._engine,
            run_id=arguments["run_id"],
            **self._limits_of_connection(),
        )

    def _plan(self, verb: Verb[...], what: str, arguments: Arguments) -> Plan:
        corpus = self._corpus(what, arguments)
        con, prior = self._con(), arguments.get("prior")
        if con is not None and isinstance(prior, str):
            cursor = con.cursor()
            if cursor.execute(_FIND_TABLE_OR_VIEW, [prior]).fetchall():
                arguments = {**arguments, "prior": cursor.table(prior)}
        asked = with_release(arguments, self._ledger, files=False)
        return plan_of(verb, with_prior(asked, corpus, self._ledger), corpus)

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

    def _corpus(self, what: str, arguments: Arguments) -> Corpus:
        asked = corpus_name(what, arguments)
        content = given_content(arguments)
        if "user" not in content:
            rows = {name: content.pop(name) for name in WHICH_ROWS & content.keys()}
            named = owners_corpus(asked, self._ledger, content)
            if named is not None:
                return narrowed(named, **rows)
            raise UsageError(
                f"corpus: the ledger has no corpus {asked!r}; for a table or a path, name its "
                "columns: user_column := ..., and text_column := ... or item_column := ..."
            )
        con = self._con()
        if (
            con is not None
            and (cursor := con.cursor()).execute(_FIND_TABLE_OR_VIEW, [asked]).fetchall()
        ):
            return Corpus(asked, connection=cursor, **content)
        if re.fullmatch(r"\w+", asked) and not Path(asked).exists():
            raise UsageError(
                f"corpus: found no table, view or file {asked!r}; if it is a Python frame, make a "
                f"table of it with CREATE TABLE {asked} AS FROM frame"
            )
        return Corpus(asked, **content)


def _read_limits(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    with con:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = con.execute(asked).fetchall()
    return {"memory_limit": memory, "threads": threads}


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
