"""`dphh.connect()`: a DuckDB connection in which the verbs are table macros.

A request is drawn once. Asked again, in the same query or a later one, its release comes back and
costs nothing: a query may mention a macro twice, an optimiser may run it twice, and a relation runs
again whenever somebody looks at it. Of files, so it does on a later connection (`dphh.again`).
Whoever wants a second draw gives it a `run_id` of its own.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
import weakref
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dphh.again import Asking, notice
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
from dphh.asking.macros import Macro, help_sql, install
from dphh.corpus import WHICH_ROWS, Corpus, narrowed
from dphh.errors import UsageError
from dphh.given import with_declared, with_release
from dphh.ledger import Ledger
from dphh.registry import Verb
from dphh.release import Release
from dphh.show import plan_sections
from dphh.sql import looking
from dphh.wording.asked import named_in_words

if TYPE_CHECKING:
    import duckdb

#: DuckDB 1.5's `con.sql(..., params=...)` takes results beyond this buffer with Python's lock held.
#: A macro that runs after these, on a thread of DuckDB's, waits for that lock, and both for good.
#: So what is smaller is buffered whole. By `execute`, and in DuckDB 2.0, the lock is let go of.
RESULTS_WHOLE = "1GB"


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
    `dphh_releases()` and `dphh_release(run_id)` cost nothing. Once a release is a table, so
    does looking at it: `dphh_tree('words')`, `dphh_next_words`, `dphh_why`,
    `dphh_compare` (docs/shell-sql.md).

    A corpus is a name in the ledger; or, with `user_column :=` and `text_column :=` or
    `item_column :=`, a table or view of the connection, a Parquet path or a glob.
    """
    import duckdb

    con = duckdb.connect(str(database), config=config or {})
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    # In memory, cursors share the macros. A file keeps none: they are nothing without this process.
    temporary = str(database) != ":memory:"
    if duckdb.__version__ < "2":
        con.execute(f"SET streaming_buffer_size = '{RESULTS_WHOLE}'")
    install(con, _Owner(con, book, engine), temporary=temporary)
    con.execute(looking() if temporary else looking().replace("TEMP MACRO", "MACRO"))
    con.execute(help_sql(temporary))
    return con


class _Owner:
    """Answers whoever holds the data: any corpus, and the whole ledger."""

    def __init__(self, con: duckdb.DuckDBPyConnection, ledger: Ledger, engine: str | None) -> None:
        # Weak, because the connection's own functions hold this object.
        self._con = weakref.ref(con)
        self._ledger, self._engine = ledger, engine
        self._guard = threading.Lock()
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._run_ids: dict[str, str] = {}
        self._made: dict[str, pa.Table] = {}

    def __call__(self, what: str, arguments: Arguments) -> pa.Table:
        return answered(
            what,
            arguments,
            accounts=self._ledger.accounts,
            groups=self._ledger.declared_groups,
            releases=lambda: (self._ledger.runs(), None),
            release=self._release,
            verb=self._of_verb,
        )

    def _release(self, run_id: object) -> pa.Table:
        if not isinstance(run_id, str):
            raise UsageError("run_id: say dphh_release('...') with an id of dphh_releases()")
        manifest, parquet = self._ledger.release(run_id)
        return Release.from_parquet(parquet, manifest).table

    def _of_verb(self, macro: Macro, arguments: Arguments) -> pa.Table:
        assert macro.verb is not None
        arguments = with_declared(arguments, self._ledger, arguments.get("corpus"))
        if macro.spends:
            return self._drawn_once(macro.verb, arguments)
        asked = with_release(arguments, self._ledger, files=False)
        kind = "sql" if macro.shows_queries else "plan"
        plan = plan_of(macro.verb, asked, self._corpus(f"{kind}_{macro.verb.name}", arguments))
        if macro.shows_queries:
            return queries_table(plan, arguments)
        return plan_table(plan_sections(plan.price, plan.corpus, self._ledger))

    def _drawn_once(self, verb: Verb[...], arguments: Arguments) -> pa.Table:
        request = json.dumps([verb.name, arguments], sort_keys=True)
        with self._guard:
            asking = self._asking[request]
        with asking:  # whoever asks the same meanwhile waits for it
            if request not in self._made:
                asked = with_release(arguments, self._ledger, files=False)
                plan = plan_of(verb, asked, self._corpus(verb.name, arguments))
                run_id = arguments["run_id"] or self._run_ids.get(request)
                assert plan.corpus is not None
                asked_for = Asking.of(plan.price, plan.corpus, self._ledger)
                if run_id is None and not asked_for.files:
                    # Kept when the run fails: asking again goes on with it, for the price paid. Of
                    # files, and of queries over files, the ledger knows.
                    before = asked_for.before(notice)
                    run_id = uuid.uuid4().hex if before is None else before.run_id
                    self._run_ids[request] = run_id
                release = plan.run(
                    ledger=self._ledger, engine=self._engine, run_id=run_id, **self._limits()
                )
                self._made[request] = release.table
            return self._made[request]

    def _limits(self) -> dict[str, Any]:
        """The memory and threads that somebody set on the connection: a run on DuckDB keeps to
        them, in the instance of its own that it reads private rows in."""
        import duckdb

        con = self._con()
        if con is None or self._engine not in (None, "duckdb"):
            return {}
        usual = _limits_of(duckdb.connect())
        return {
            name: value for name, value in _limits_of(con.cursor()).items() if value != usual[name]
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
                f"corpus: {asked!r} is no name in the ledger; for a table or a path, say which "
                "columns count: user_column := ..., and text_column := ... or item_column := ..."
            )
        con = self._con()
        if con is not None and (cursor := con.cursor()).execute(_TABLES, [asked]).fetchall():
            return Corpus(asked, connection=cursor, **content)
        if re.fullmatch(r"\w+", asked) and not Path(asked).exists():
            raise UsageError(
                f"corpus: the connection has no table or view {asked!r}, and there is no such "
                f"file; of a frame of Python's, CREATE TABLE {asked} AS FROM frame makes one"
            )
        return Corpus(asked, **content)


def _limits_of(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    with con:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = con.execute(asked).fetchall()
    return {"memory_limit": memory, "threads": threads}


_TABLES = """
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
