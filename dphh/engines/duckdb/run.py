"""A private DuckDB instance for one run, and its steps. Nobody else can name its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

from dphh.corpus import Corpus
from dphh.engines.duckdb.content import open_corpus
from dphh.engines.duckdb.failures import engine_errors
from dphh.engines.duckdb.forecast_functions import register_forecast
from dphh.engines.duckdb.memory import SharedMemory
from dphh.engines.duckdb.stores import reach_stores
from dphh.engines.session import Limits
from dphh.errors import CorpusError, UsageError
from dphh.files.private_folder import PrivateFolder
from dphh.sources.quiet import without_bar
from dphh.sources.reading import ROWS_OF_NOBODY
from dphh.sql import query
from dphh.udfs.draws.noise import register_noise
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.subset_reports import register_reports
from dphh.udfs.draws.votes import register_votes
from dphh.udfs.kernel.whole_users import WholeUsers, register_whole_users


class DuckDBRun:
    name = "duckdb"
    version: str = duckdb.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        self.randomness = randomness
        self.whole_users = WholeUsers()
        #: A relation's stream is spent by one reading.
        self._read_once = corpus.kind == "table"
        self._within_reach = False
        self._spill = PrivateFolder()
        try:
            self.con = duckdb.connect(":memory:", config=_config(limits, self._spill.path))
            self.memory = SharedMemory(self.con, limits.memory is not None)
            without_bar(self.con)
            # Functions are handed 2,048 rows at a time. With offsets of four bytes, 2 GiB of text
            # in these (128 rows as long as a text may be) would end a run that is paid for.
            self.con.execute("SET arrow_large_buffer_size = true")
            register_noise(self.con, randomness)
            register_votes(self.con, randomness)
            register_reports(self.con, randomness)
            register_whole_users(self.con, self.whole_users)
            register_forecast(self.con, randomness, self.whole_users)
            self.con.execute(query("text_units"))
            self.con.execute(query("names"))
            self.con.execute(query("text"))
            reach_stores(self.con, corpus)
            self.load = open_corpus(self.con, corpus)
        except duckdb.Error as problem:
            self._spill.close()
            raise UsageError(_setting_problem(problem, limits)) from None
        except BaseException:
            self._spill.close()
            raise

    def close(self) -> None:
        self.con.close()
        self._spill.close()

    def execute(self, name: str, **parameters: Any) -> None:
        """Run one file of `sql/`: its statements, each with the parameters that it names."""
        with engine_errors(name):
            for statement in self.con.extract_statements(query(name)):
                named = {key: parameters[key] for key in statement.named_parameters}
                self.memory.settle()
                self.con.execute(statement, named or None)

    @contextmanager
    def side_by_side(self) -> Iterator[None]:
        """For steps over rows of whole users: DuckDB gives each thread 122,880 rows of a table, and
        so often all that there are to one. It has but a name for tests for less: 2,048."""
        with engine_errors("side_by_side"):
            self.con.execute("PRAGMA verify_parallelism")
        try:
            yield
        finally:
            # After what no connection survives, a step's own error is the one to tell.
            with suppress(duckdb.Error):
                self.con.execute("PRAGMA disable_verify_parallelism")

    def fetch(self, name: str, **parameters: Any) -> Any:
        """Run one file of `sql/` that asks, and give its answer as an Arrow table.

        `con.sql` with parameters holds Python's lock while it waits for its threads. One of them
        that is in a function of `udfs/` would wait for that lock, and both for good: so functions
        run in a step of `execute`, which lets go of it, and only finished rows are fetched.
        """
        with engine_errors(name):
            asked = f"CREATE OR REPLACE TEMP TABLE asked AS {query(name)}"
            self.con.execute(asked, parameters or None)
            answer = self.con.table("asked").to_arrow_table()
            self.con.execute("DROP TABLE asked")
            return answer

    def hold_rows(self) -> None:
        """Bring the corpus's rows within reach, to be read as often as need be."""
        if self._within_reach:
            return
        self.load()
        if self._read_once:
            with engine_errors("rows_of_corpus"):
                self.con.execute("CREATE TEMP TABLE kept_rows AS FROM rows_of_corpus")
                self.con.execute("CREATE OR REPLACE TEMP VIEW rows_of_corpus AS FROM kept_rows")
        self._within_reach = True

    def refuse_rows_of_nobody(self, table: str) -> None:
        # Such rows belong to no user, so both of two neighbouring corpora hold them or neither
        # does: refusing them says nothing of anyone.
        with engine_errors(table):
            found = self.con.execute(
                f"SELECT 1 FROM {table} WHERE user_id IS NULL LIMIT 1"
            ).fetchall()
        if found:
            raise CorpusError(ROWS_OF_NOBODY)

    def has_rows_of_nobody(self) -> bool:
        """Before anything is read: a look that costs next to nothing where there are none."""
        with engine_errors("rows_of_nobody"):
            ((held,),) = self.con.execute(query("rows_of_nobody")).fetchall()
        return bool(held)

    def tell(self, table: str, rows: Any) -> None:
        """A table of what is public, in Arrow."""
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


def _config(limits: Limits, spill: str) -> dict[str, Any]:
    # Private rows spill here: the folder is the run's own, readable by its user alone, and goes
    # with the session.
    config: dict[str, Any] = {
        "temp_directory": spill,
        "preserve_insertion_order": True,
    }
    if limits.memory is not None:
        config["memory_limit"] = limits.memory
    if limits.threads is not None:
        config["threads"] = limits.threads
    return config


def _setting_problem(problem: duckdb.Error, limits: Limits) -> str:
    if limits.memory is not None and re.search("memory", str(problem), re.IGNORECASE):
        return f"memory_limit: found {limits.memory!r}; write it as 500MB or 4GB"
    return f"DuckDB could not be opened ({type(problem).__name__}: {problem})"
