"""All errors of dphh: what was asked, what was found, what to do; never a value from the data."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: If this environment variable is 1, errors show engines' own messages and tracebacks, which only
#: those who may see the data may read.
SHOW_ERRORS_VARIABLE = "DPHH_SHOW_ENGINE_ERRORS"

#: Matches a character that controls a terminal, moves a cursor or reverses text, except tab and
#: line feed.
CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u206a-\u206f]"
)


def escaped(character: str) -> str:
    """The character as Python and JSON escape it: `\\x1b`, `\\u202e`."""
    return character.encode("unicode_escape").decode()


def printable(text: str) -> str:
    """The text, with characters that control a terminal escaped."""
    return CONTROL_CHARACTERS.sub(lambda found: escaped(found[0]), text)


_LIBRARY = re.compile(r"(dphh|duckdb)\.")


class DphhError(Exception):
    """The root of all errors that dphh raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        """Escapes control characters: names of files and columns must not steer a terminal."""
        return printable(super().__str__())


class UsageError(DphhError, ValueError):
    """An invalid argument: unknown name, value out of range, or arguments that contradict."""

    exit_code = 2


class CorpusError(DphhError):
    """The corpus does not exist, or differs from what the caller declared."""

    exit_code = 2


class UnreachableError(DphhError):
    """A store or a gateway does not answer, a file is not complete, or a disk is full. Trying again
    later may succeed, so the exit code is not that of bad input."""


class LedgerError(DphhError):
    """The ledger cannot be opened, read or written. Nothing that it records as spent is lost by
    that."""


class UnknownRunError(LedgerError):
    """The ledger does not know this run id: an error of the caller, not of the ledger."""

    exit_code = 2


class BudgetRefused(DphhError):  # noqa: N818 - the ledger refuses; nothing is in error
    """The ledger refuses the run: it would exceed the corpus's cap."""

    exit_code = 3


class EngineError(DphhError):
    """An engine failed while it ran a level. Its message is withheld: it may quote private data."""


class EngineOutOfResources(EngineError):  # noqa: N818 - says what ran out
    """A step needs more than the engine may use: memory, disk space to spill to, or (on Spark) what
    can be broadcast."""


class Notice(UserWarning):
    """A message about what a run costs, shown as a warning if the caller passed no `progress`."""


def warn(said: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line of code outside dphh and DuckDB that led here, each time; without a
    line if there is none, as when DuckDB calls a macro's function on its own thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and _LIBRARY.match(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    where = ("dphh", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    # `warnings.warn` would show a text once a line: of two paying runs in a loop, the first alone.
    warnings.warn_explicit(said, category, *where)


def hiding_private_details(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function that reads private rows: dphh's errors leave it without private details.

    An engine's message may quote data, and stack frames hold rows in their variables, so the error
    is raised again without its cause, context and inner frames. `raise ... from None` is not
    enough: it hides the cause in a printed traceback, but error trackers still read it. A defect or
    an interrupt passes as Python made it (docs/threats.md).
    """

    @wraps(function)
    def without_private_details(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except DphhError as problem:
            if os.environ.get(SHOW_ERRORS_VARIABLE) == "1":
                raise
            told = problem
        # Outside the except block, so that Python attaches no context to the error again.
        told.__cause__ = told.__context__ = None
        try:
            raise told.with_traceback(None)
        finally:
            del told  # break the reference cycle between the frame and the error

    return without_private_details
