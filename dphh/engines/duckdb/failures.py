"""How DuckDB's errors are classified and explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from dphh.engines.failures import Failures, query_of_step

_DUCKDB_FAILURES = Failures(
    "DuckDB",
    errors=(duckdb.Error,),
    is_out_of_memory=lambda problem: isinstance(problem, duckdb.OutOfMemoryException),
    ran_out_of="memory or of temporary disk",
    more_memory="raise the memory limit, free disk space in the temporary folder, use fewer "
    "threads, or lower max_text_length or max_items",
    look=query_of_step("duckdb"),
    not_utf8=re.compile("UTF|unicode"),
)


@contextmanager
def engine_errors(step: str) -> Iterator[None]:
    with _DUCKDB_FAILURES(step):
        try:
            yield
        except RuntimeError as problem:
            # DuckDB raises this if a signal handler raised any exception.
            if "interrupted" not in str(problem):
                raise
            raise KeyboardInterrupt from None
