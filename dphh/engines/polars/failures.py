"""What becomes of Polars' own errors: they may quote data, so they are told in other words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from polars.exceptions import PanicException

from dphh.engines.polars.queries.text import REFUSED
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
    """Polars' messages may quote data, so they stop here: only their kind passes.

    All kinds are caught: a lazy frame of the owner's may raise anything when it is collected.
    """
    try:
        yield
    except DphhError:
        raise
    except MemoryError:
        raise EngineOutOfMemory(
            f"Polars ran out of memory in the step {step!r}: give the process more memory, lower "
            "max_items, or use engine='duckdb', which spills to disk"
        ) from None
    except (Exception, PanicException) as problem:
        if os.environ.get(SHOW_ERRORS) == "1":
            raise
        if REFUSED in str(problem):
            raise CorpusError(TOO_LONG) from None
        if re.search("utf-?8", str(problem), re.IGNORECASE):
            raise CorpusError(NOT_UTF8) from None
        raise EngineError(
            f"Polars failed in the step {step!r} with {type(problem).__name__}; its message is "
            "withheld because it may quote data. If the corpus is a lazy frame, see that it "
            f"computes on its own; on data that may be seen, {SHOW_ERRORS}=1 shows the message"
        ) from None
