"""Every error of dphh: what was asked, what was found, what to do. Never a value from the data."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dphh.characters.unseen import steerless

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Set to 1, where the data may be seen, to see engines' own messages and where they arose.
SHOW_ERRORS = "DPHH_SHOW_ENGINE_ERRORS"


class DphhError(Exception):
    """The root of all errors that dphh raises on purpose."""

    exit_code = 1
    #: Whether a run was paid for before it came to this; None where nobody looked.
    spent: bool | None = None

    def __str__(self) -> str:
        """Files and columns are named by whoever made them: no name steers a terminal."""
        return steerless(super().__str__())


class UsageError(DphhError, ValueError):
    """A parameter that cannot be: wrong name, wrong range, parts that contradict each other."""

    exit_code = 2


class UnpricedEventError(UsageError):
    """An event of a kind that this dphh does not know, so that nobody can say what it costs."""


class PortTakenError(UsageError):
    """The gateway cannot listen where it was told to: somebody else does, perhaps."""


class CorpusError(DphhError):
    """The corpus is not where or not what it was said to be."""

    exit_code = 2


class LedgerError(DphhError):
    """The ledger cannot be opened, read or written; nothing was spent that it does not show."""


class UnknownRunError(LedgerError):
    """A run id that the ledger does not know: whoever asked is mistaken, and not the ledger."""

    exit_code = 2


class NotHeldError(LedgerError):
    """An attempt at a run that it did not reserve, or has given back: another's, perhaps."""


class BudgetRefused(DphhError):  # noqa: N818 - the ledger refuses; nothing is in error
    """The ledger refuses: the corpus's cap would be passed."""

    exit_code = 3


class ElsewhereRefused(BudgetRefused):
    """What refuses is a corpus that whoever asks is not to know of."""


class EngineError(DphhError):
    """An engine failed while it ran a level. Its own message is withheld: it may quote data."""


class EngineOutOfMemory(EngineError):  # noqa: N818 - says what ran out
    """A step needs more memory, or more room to spill, than the engine may use."""


class Notice(UserWarning):
    """What a run has to say of its price where nobody watches its progress."""


def withholding(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """What reads private rows lets errors of dphh out alone: no error behind them, no inner frame.

    An engine's message may quote data, and frames hold rows in their variables. `from None` hides
    the one from people and from nobody else: error trackers walk all of it.
    """

    @wraps(function)
    def alone(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except DphhError as problem:
            if os.environ.get(SHOW_ERRORS) == "1":
                raise
            told = problem
        # Out here no error is being handled that Python would attach to it again.
        told.__cause__ = told.__context__ = None
        try:
            raise told.with_traceback(None)
        finally:
            del told  # or the frame and the error would hold each other

    return alone
