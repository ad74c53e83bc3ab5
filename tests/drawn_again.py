"""What chance does once in a few hundred runs, it does not do thrice in a row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any


def drawn_again(test: Callable[..., None]) -> Callable[..., None]:
    """Fails where three draws in a row fail: at 1 in 300 each, once in 27 million runs.

    For tests whose law has no exact bound. A defect that each draw shows is still always seen.
    """

    @wraps(test)
    def thrice(*arguments: Any, **named: Any) -> None:
        for _ in range(2):
            with suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return thrice
