"""What answers a session that is asked to hold or to draw something: a function, by the types of
the session and of what is asked. Engines' files register their functions here; a session imports
all files of its engine's folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

S = TypeVar("S")
A = TypeVar("A")
Holding = Callable[[S, A], None]
Drawing = Callable[[S, A, str], Any]
Answers = dict[tuple[Any, type], Callable[..., Any]]

HOLDING: Answers = {}
DRAWING: Answers = {}


def holds(session: Callable[..., S], asked: type[A]) -> Callable[[Holding[S, A]], Holding[S, A]]:
    """Register the function that makes sessions of this class hold what is asked."""

    def register(function: Holding[S, A]) -> Holding[S, A]:
        HOLDING[session, asked] = function
        return function

    return register


def draws(session: Callable[..., S], asked: type[A]) -> Callable[[Drawing[S, A]], Drawing[S, A]]:
    """Register the function that draws what is asked on sessions of this class. What it returns may
    be released as it is, and nothing else may depend on anything else that it drew."""

    def register(function: Drawing[S, A]) -> Drawing[S, A]:
        DRAWING[session, asked] = function
        return function

    return register


class Answering:
    """The methods of every engine's session that depend on the type of what is asked."""

    def hold(self, what: object) -> None:
        _answer(HOLDING, type(self), type(what))(self, what)

    def draw(self, asked: object, purpose: str) -> Any:
        return _answer(DRAWING, type(self), type(asked))(self, asked, purpose)


def _answer(answers: Answers, session: type, asked: type) -> Callable[..., Any]:
    """What is registered for these types, or for classes that they inherit from."""
    for one in session.__mro__:
        for kind in asked.__mro__:
            if (one, kind) in answers:
                return answers[one, kind]
    raise AssertionError(f"{session.__name__} has no function for {asked.__name__}")
