"""Looks at a Spark frame, where its owner asks for it, for rows with a NULL user id. The executors
look, and at most one row of a constant comes to the driver. At files DuckDB looks."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit

from dphh.corpus import Corpus
from dphh.engines.duckdb import look as duckdb_look
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.rows import identifier
from dphh.session.protocol import Session
from dphh.sources.finding import refuse_missing_columns


def refuse_if_run_would_fail(corpus: Corpus, session: Session) -> None:
    """Before a run pays, refuse files on which it would fail. How much memory Spark's machines have
    for texts is not known here."""
    duckdb_look.look_first(corpus, lambda looking: None)


def has_rows_of_null_users(corpus: Corpus, thorough: bool) -> bool | None:
    """Whether a row has a NULL in a column that says whose it is; None if it
    is not known. A frame is looked at if the look is `thorough`."""
    if not hasattr(corpus.source, "columns"):
        return duckdb_look.has_rows_of_null_users(corpus, thorough)
    if not thorough:
        return None
    frame: DataFrame = corpus.source
    refuse_missing_columns(corpus, frame.columns)
    columns = [column for _, column in corpus.columns_of_user]
    nobody = reduce(lambda one, other: one | other, (col(identifier(c)).isNull() for c in columns))
    with engine_errors("look"):
        return bool(frame.where(nobody).select(lit(1)).limit(1).collect())
