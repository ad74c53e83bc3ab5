"""Replaces an engine's own errors, which may quote data, by messages that do not.

Each engine says which errors are its own and what to do about them. DuckDB's are here, because it
also reads rows for the other engines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from dphh.errors import (
    SHOW_ERRORS_VARIABLE,
    CorpusError,
    DphhError,
    EngineError,
    EngineOutOfResources,
)
from dphh.reader.content import NOT_UTF8_MESSAGE, TOKEN_TOO_LONG_MESSAGE
from dphh.reader.corpus import ROWS_WITHOUT_USER_MESSAGE
from dphh.reader.tables import bad_line_message
from dphh.sql import query_paths

#: For each mark that dphh's own SQL and functions put into an error: the message that replaces it.
MESSAGE_OF_MARK = {
    "dphh: too long": TOKEN_TOO_LONG_MESSAGE,
    "dphh: not UTF-8": NOT_UTF8_MESSAGE,
    "dphh: NULL user": ROWS_WITHOUT_USER_MESSAGE,
}


@dataclass(frozen=True)
class EngineFailures:
    """Replaces the errors of an engine by messages that show only their type. Other errors pass
    unchanged.

    Called with a step's name, it returns the context in which to run the step.
    """

    engine: str
    errors: tuple[type[BaseException], ...]
    is_out_of_memory: Callable[[BaseException], bool]
    #: Which resource ran out, and what to do about it.
    ran_out_of: str
    more_memory: str
    #: A sentence that says where to look for the cause, if not in the step's query.
    where_to_look: str = ""
    #: Matches the engine's message about bytes that are not UTF-8.
    not_utf8: re.Pattern[str] | None = None

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        try:
            yield
        except DphhError:
            raise
        except self.errors as problem:
            if self.is_out_of_memory(problem):
                raise EngineOutOfResources(
                    f"{self.engine} ran out of {self.ran_out_of} in the step {step!r}: "
                    f"{self.more_memory}"
                ) from None
            if os.environ.get(SHOW_ERRORS_VARIABLE) == "1":
                raise
            if (message := self._corpus_fault_message(str(problem))) is not None:
                raise CorpusError(message) from None
            paths = query_paths(step, self.engine.lower())  # none, if the step is no query
            advice = self.where_to_look or "".join(f"The step's query is sql/{at}" for at in paths)
            raise EngineError(
                f"{self.engine} failed in the step {step!r} with {type(problem).__name__}; its "
                f"message is withheld because it may quote data. {advice and f'{advice}. '}With "
                f"{SHOW_ERRORS_VARIABLE}=1 it is shown, if you may see the data"
            ) from None

    def _corpus_fault_message(self, error_text: str) -> str | None:
        """The message to show if the engine's error says that the corpus is at fault; else None."""
        for mark, message in MESSAGE_OF_MARK.items():
            if mark in error_text:
                return message
        if (message_of_line := bad_line_message(error_text)) is not None:
            return message_of_line
        is_not_utf8 = self.not_utf8 is not None and self.not_utf8.search(error_text)
        return NOT_UTF8_MESSAGE if is_not_utf8 else None


_DUCKDB_FAILURES = EngineFailures(
    "DuckDB",
    errors=(duckdb.Error,),
    is_out_of_memory=lambda problem: isinstance(problem, duckdb.OutOfMemoryException),
    ran_out_of="memory or of temporary disk",
    more_memory="raise the memory limit, free disk space in the temporary folder, use fewer "
    "threads, or lower max_text_length or max_items",
    not_utf8=re.compile("UTF|unicode"),
)


@contextmanager
def replace_duckdb_errors(step: str) -> Iterator[None]:
    with _DUCKDB_FAILURES(step):
        try:
            yield
        except RuntimeError as problem:
            # DuckDB raises this if a signal handler raised any exception.
            if "interrupted" not in str(problem):
                raise
            raise KeyboardInterrupt from None
