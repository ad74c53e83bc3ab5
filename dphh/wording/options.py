"""Checks of named options; errors suggest the nearest known name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from dphh.errors import UsageError

Options = ParamSpec("Options")
Result = TypeVar("Result")


def checked_call(function: Callable[Options, Result], what: str = "") -> Callable[Options, Result]:
    """Decorate a function so that a call with wrong arguments is a UsageError, not a TypeError.
    `what`: the function's name in errors."""
    what = what or function.__qualname__.removesuffix(".__init__")
    asked = signature(function)
    takes = {name: option for name, option in asked.parameters.items() if name != "self"}
    by_place = [
        name for name, option in takes.items() if option.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]

    @wraps(function)
    def checked(*arguments: Options.args, **options: Options.kwargs) -> Result:
        try:
            asked.bind(*arguments, **options)
        except TypeError:
            places = len(arguments) - ("self" in asked.parameters)
            check_positional(places, by_place, takes, what)
            check_known(options, takes, what)
            check_required([*options.keys(), *by_place[:places]], takes, what)
            raise
        return function(*arguments, **options)

    return checked


def did_you_mean(name: str, known: Collection[str], advice: str = "") -> str:
    """The end of an error about an unknown name, after a semicolon: "did you mean x?" if a known
    name is near, and the advice."""
    alike = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), alike, n=1)
    if not near:
        return advice
    return f"did you mean {alike[near[0]]!r}? {advice[:1].upper()}{advice[1:]}".rstrip()


#: An option and its value in the text of an error, written as in Python.
_OPTION_IN_ERROR = re.compile(r"\b([a-z][a-z_]*)=('[^']*'|True|False)")


def respell_options(text: str, spell: Callable[[str, str], str]) -> str:
    """The text of an error, in which `spell` writes each option and its value as SQL or the command
    line does, instead of as Python."""
    return _OPTION_IN_ERROR.sub(lambda found: spell(found[1], found[2]), text)


def check_choice(option: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise UsageError(f"{option}: found {value!r}; give one of {', '.join(known)}")


def check_whole(
    option: str, value: Any, least: int = 1, most: int | None = None, advice: str = ""
) -> None:
    """Refuse a value unless it is a whole number from `least` to `most`."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and least <= value and (most is None or value <= most):
        return
    to = "" if most is None else f" to {most:,}"
    raise UsageError(f"{option}: found {value!r}; give a whole number from {least}{to}{advice}")


def check_positional(
    given: int, places: Collection[str], known: Collection[str], what: str
) -> None:
    """Refuse more positional values than there are options that take one (`places`)."""
    if given > len(places):
        alone = f"only {', '.join(places)} may be" if places else "none may be"
        first = next(name for name in known if name not in places)
        raise UsageError(
            f"{what}: found {given} positional values, and {alone} positional; pass the others by "
            f"name, as in {first}=..."
        )


def check_known(given: Collection[str], known: Collection[str], what: str) -> None:
    """Refuse options that `what`, a function or macro, does not have."""
    for name in given:
        if name not in known:
            if name == "tokens" and "as_" in known:
                raise UsageError(
                    f"tokens: {what} has no such option; name the column with text=, and pass "
                    "as_='list' if its values are lists of tokens"
                )
            raise UsageError(
                f"{name}: {what} has no such option; "
                + (did_you_mean(name, known) or f"the options are {', '.join(known)}")
            )


def check_required(given: Collection[str], options: Mapping[str, Parameter], what: str) -> None:
    """Refuse a call in which an option without a default is missing."""
    lacking = [
        name
        for name, option in options.items()
        if name not in given
        and option.default is Parameter.empty
        and option.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    if lacking:
        needs = "it" if len(lacking) == 1 else "each of them"
        raise UsageError(f"{', '.join(lacking)}: {what} needs {needs}")


def python_value(value: object) -> object:
    """Convert NumPy scalars to Python numbers."""
    is_numpys = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_numpys and hasattr(value, "item") else value
