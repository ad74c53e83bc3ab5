"""What becomes of DuckDB's own errors: they may quote data, so they are told in other words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from dphh.engines.sources import NOT_UTF8, TOO_LONG
from dphh.errors import (
    SHOW_ERRORS,
    CorpusError,
    DphhError,
    EngineError,
    EngineOutOfMemory,
)


@contextmanager
def engine_errors(step: str) -> Iterator[None]:
    """DuckDB's messages may quote data, so they stop here: only their kind passes."""
    try:
        yield
    except DphhError:
        raise
    except duckdb.OutOfMemoryException:
        raise EngineOutOfMemory(
            f"DuckDB ran out of memory or of temporary disk in the step {step!r}: raise the "
            "memory limit, free disk space in the temporary folder, or lower max_items"
        ) from None
    except RuntimeError as problem:
        # So DuckDB says that a signal's handler has raised, whatever it raised.
        if "interrupted" not in str(problem):
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as problem:
        if os.environ.get(SHOW_ERRORS) == "1":
            raise
        if "dphh: too long" in str(problem):
            raise CorpusError(TOO_LONG) from None
        if "UTF" in str(problem) or "unicode" in str(problem):
            raise CorpusError(NOT_UTF8) from None
        raise EngineError(
            f"DuckDB failed in the step {step!r} with {type(problem).__name__}; its message is "
            "withheld because it may quote data. The step's query is sql/"
            f"{step}.sql; on data that may be seen, {SHOW_ERRORS}=1 shows it"
        ) from None
