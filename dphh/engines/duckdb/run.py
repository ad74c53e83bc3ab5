"""A private DuckDB instance for one run, and its steps. No one else can access its tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

from dphh.corpora.quiet import without_bar
from dphh.corpora.stores import reach_stores
from dphh.corpus import Corpus
from dphh.engines.duckdb.content import Loader, open_corpus
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.forecast_functions import register_forecast
from dphh.engines.duckdb.memory import SharedMemory
from dphh.errors import CorpusError, UsageError
from dphh.files.private_folder import PrivateFolder
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.session.protocol import Limits
from dphh.sql import query
from dphh.udfs.draws.noise import register_noise
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.subsets import register_reports
from dphh.udfs.draws.votes import register_votes
from dphh.udfs.kernel.whole_users import WholeUsers, register_whole_users


class DuckDBRows:
    """A private instance of DuckDB with views of a corpus's rows. `DuckDBRun` adds the functions
    that bound users and draw noise."""

    name = "duckdb"
    version: str = duckdb.__version__

    def __init__(self, corpus: Corpus, limits: Limits) -> None:
        #: A relation's stream can be read only once.
        self._read_once = corpus.kind == "table"
        self._within_reach = False
        self._spill = PrivateFolder()
        try:
            self.con = duckdb.connect(
                ":memory:", config=_config_of_limits(limits, self._spill.path)
            )
            self.memory = SharedMemory(self.con, limits.memory is not None)
            without_bar(self.con)
            # Functions get 2,048 rows at a time. With four-byte offsets, 2 GiB of text in them (128
            # rows of the greatest length) would end a run that has been paid for.
            self.con.execute("SET arrow_large_buffer_size = true")
            reach_stores(self.con, corpus)
            self.load, self._has_rows_without_user = _opened(self.con, corpus)
        except duckdb.Error as problem:
            self._spill.close()
            raise UsageError(_explain_bad_limit(problem, limits)) from None
        except BaseException:
            self._spill.close()
            raise

    def close(self) -> None:
        self.con.close()
        self._spill.close()

    def hold_rows(self) -> None:
        """Make the corpus's rows available for reading several times."""
        if self._within_reach:
            return
        self.load()
        if self._read_once:
            with engine_errors("rows_of_corpus"):
                self.con.execute("CREATE TEMP TABLE kept_rows AS FROM rows_of_corpus")
                self.con.execute("CREATE OR REPLACE TEMP VIEW rows_of_corpus AS FROM kept_rows")
        self._within_reach = True

    def refuse_null_users(self, table: str) -> None:
        # Such rows belong to no user, so either both of two neighbouring corpora contain them or
        # neither does: refusing them reveals nothing about any user.
        with engine_errors(table):
            found = self.con.execute(
                f"SELECT 1 FROM {table} WHERE user_id IS NULL LIMIT 1"
            ).fetchall()
        if found:
            raise CorpusError(ROWS_WITHOUT_USER)

    def has_rows_without_user(self) -> bool:
        """Whether a row has NULL in all of the user's columns."""
        with engine_errors("look"):
            return self._has_rows_without_user()


class DuckDBRun(DuckDBRows):
    """A private instance of DuckDB for one run: its tables, and the functions that levels call."""

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        super().__init__(corpus, limits)
        self.randomness = randomness
        self.whole_users = WholeUsers()
        try:
            register_noise(self.con, randomness)
            register_votes(self.con, randomness)
            register_reports(self.con, randomness)
            register_whole_users(self.con, self.whole_users)
            register_forecast(self.con, randomness, self.whole_users)
        except BaseException:
            self.close()
            raise

    def execute(self, name: str, **parameters: Any) -> None:
        """Run the statements of one file of `sql/`, each with the parameters that it names."""
        with engine_errors(name):
            for statement in self.con.extract_statements(query(name)):
                named = {key: parameters[key] for key in statement.named_parameters}
                self.memory.settle()
                self.con.execute(statement, named or None)

    @contextmanager
    def side_by_side(self) -> Iterator[None]:
        """Run steps over rows of whole users in parallel: DuckDB gives each thread 122,880 rows of
        a table, so often one thread all of them. This testing pragma makes it 2,048."""
        with engine_errors("side_by_side"):
            self.con.execute("PRAGMA verify_parallelism")
        try:
            yield
        finally:
            # Keep the step's own error: a fatal one makes the connection unusable.
            with suppress(duckdb.Error):
                self.con.execute("PRAGMA disable_verify_parallelism")

    def fetch(self, query_name: str, **parameters: Any) -> Any:
        """Run the query in `sql/` with this name and return its result as an Arrow table.

        `con.sql` with parameters holds Python's lock while it waits for its threads. A thread that
        runs a function of `udfs/` would wait for that lock: a deadlock. So functions run in
        `execute`, which releases the lock, and only finished rows are fetched.
        """
        with engine_errors(query_name):
            answer = f"CREATE OR REPLACE TEMP TABLE answer AS {query(query_name)}"
            self.con.execute(answer, parameters or None)
            rows = self.con.table("answer").to_arrow_table()
            self.con.execute("DROP TABLE answer")
            return rows

    def tell(self, table: str, rows: Any) -> None:
        """Make a table of public rows, given in Arrow."""
        self.drop(table)
        self.con.register("told", rows)
        with engine_errors(table):
            self.con.execute(f"CREATE TEMP TABLE {table} AS FROM told")
        self.con.unregister("told")

    def rename(self, table: str, name: str) -> None:
        self.drop(name)
        self.con.execute(f"ALTER TABLE {table} RENAME TO {name}")

    def drop(self, table: str) -> None:
        self.con.execute(f"DROP TABLE IF EXISTS {table}")


def _opened(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> tuple[Loader, Callable[[], bool]]:
    try:
        return open_corpus(con, corpus)
    except duckdb.Error as problem:  # it may quote the names of folders, which may be user ids
        raise CorpusError(
            f"corpus: DuckDB cannot take its columns or its folders ({type(problem).__name__}); "
            "cast the columns to plain types, rename the folders, or use engine='polars'"
        ) from None


def _config_of_limits(limits: Limits, spill: str) -> dict[str, Any]:
    # Private rows spill to this folder, which belongs to the run, is readable by its user only, and
    # is removed with the session.
    config: dict[str, Any] = {
        "temp_directory": spill,
        "preserve_insertion_order": True,
    }
    if limits.memory is not None:
        config["memory_limit"] = limits.memory
    if limits.threads is not None:
        config["threads"] = limits.threads
    return config


def _explain_bad_limit(problem: duckdb.Error, limits: Limits) -> str:
    # DuckDB's text: it names the setting, and its type is that of any wrong setting.
    if limits.memory is not None and re.search("memory", str(problem), re.IGNORECASE):
        return f"memory_limit: found {limits.memory!r}; write it as 500MB or 4GB"
    return f"DuckDB could not be opened ({type(problem).__name__}: {problem})"
