"""The in-memory frames of one run. Queries are lazy; frames with noise are materialised."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.engines.polars.content import open_corpus
from dphh.engines.polars.failures import engine_errors
from dphh.errors import CorpusError, UsageError
from dphh.rows.user import ROWS_WITHOUT_USER
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import Randomness, wants_keys
from dphh.udfs.kernel.whole_users import WholeUsers


class PolarsRun:
    """The frames of one run on Polars, by table name."""

    name = "polars"
    version: str = pl.__version__

    def __init__(self, corpus: Corpus, randomness: Randomness, limits: Limits) -> None:
        _refuse_limits(limits)
        self.randomness = randomness
        self.tables: dict[str, pl.DataFrame] = {}
        self.whole_users = WholeUsers()
        self._load, self._has_rows_without_user = open_corpus(corpus)
        self._rows: pl.LazyFrame | None = None

    def close(self) -> None:
        self.tables.clear()

    def load(self) -> pl.LazyFrame:
        """The corpus's rows, which can be read several times."""
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    def table(self, name: str) -> pl.LazyFrame:
        return self.tables[name].lazy()

    def make(self, name: str, rows: pl.LazyFrame, step: str | None = None) -> None:
        """Compute a query into a table; `step` is the query's name if it differs from `name`."""
        self.tables[name] = self.fetch(step or name, rows)

    def fetch(self, step: str, rows: pl.LazyFrame) -> pl.DataFrame:
        with engine_errors(step):
            return rows.collect(engine="streaming")

    def passed(self, threshold: int) -> pl.DataFrame:
        return self.tables["noised"].filter(pl.col("noisy") >= threshold)

    def has_rows_without_user(self) -> bool:
        """Whether a row has NULL in all of the user's columns."""
        with engine_errors("look"):
            return self._has_rows_without_user()

    def refuse_null_users(self, users: pl.Series) -> None:
        # Such rows belong to no user, so either both of two neighbouring corpora contain them or
        # neither does: refusing them reveals nothing about any user.
        if users.null_count():
            raise CorpusError(ROWS_WITHOUT_USER)

    def names(self, users: pl.Series, purpose: str) -> Any:
        """The user ids, if a test's random words depend on them, else None."""
        if not wants_keys(self.randomness, purpose):
            return None
        return users.to_arrow().cast(pa.string())

    def drop(self, table: str) -> None:
        self.tables.pop(table, None)


def _refuse_limits(limits: Limits) -> None:
    if limits.memory is not None:
        raise UsageError(
            f"memory_limit: found {limits.memory!r}, but Polars has no memory limit; leave "
            "memory_limit out, or use engine='duckdb', which obeys it and spills to disk"
        )
    if limits.threads is not None:
        raise UsageError(
            f"threads: found {limits.threads}, but Polars fixes its threads when it is first "
            "imported; set POLARS_MAX_THREADS before Python starts and leave threads out, or use "
            "engine='duckdb'"
        )
