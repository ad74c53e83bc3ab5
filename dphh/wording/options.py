"""Checks of named options; errors suggest the nearest known name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeGuard

from dphh.errors import Result, UsageError, hiding_private_details

Options = ParamSpec("Options")
#: The annotations of options that say yes or no.
_SWITCHES = (bool, bool | None, "bool", "bool | None")


def checked_call(function: Callable[Options, Result]) -> Callable[Options, Result]:
    """Decorate a function so that a call with wrong arguments is a UsageError, not a TypeError, and
    so is a text that cannot be written as UTF-8: engines would refuse it after a run has paid. In a
    notebook an error is the caller's line and the message, without frames of dphh's own."""
    callee = function.__qualname__.removesuffix(".__init__")
    called = signature(function)
    parameters = called.parameters
    takes = {name: option for name, option in parameters.items() if name != "self"}
    positional = [
        name for name, option in takes.items() if option.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]

    @hiding_private_details
    @wraps(function)
    def checked(*arguments: Options.args, **options: Options.kwargs) -> Result:
        try:
            bound = called.bind(*arguments, **options)
        except TypeError:
            count = len(arguments) - ("self" in parameters)
            check_positional(count, positional, takes, callee)
            check_known(options, takes, callee)
            check_required([*options.keys(), *positional[:count]], takes, callee)
            raise
        check_utf8(bound.arguments)
        check_switches(bound.arguments, takes)
        return function(*arguments, **options)

    return checked


def shown(value: object) -> str:
    """An option's wrong value, for an error; only its type, if it may hold rows, as columns do."""
    plain = value is None or isinstance(value, (str, int, float))
    return repr(value) if plain else f"a {type(value).__name__}"


def check_utf8(options: Mapping[str, object]) -> None:
    """Refuse options with a text in which half of a surrogate pair stands alone."""
    for option, value in options.items():
        try:
            for text in _texts_in(value):
                text.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{option}: a text in it is not UTF-8: it has half of a surrogate pair, as from "
                "bytes that were decoded wrongly; decode them again, or leave this text out"
            ) from None


def check_switches(options: Mapping[str, object], takes: Mapping[str, Parameter]) -> None:
    """Refuse a value other than True and False of an option that says yes or no: a text, also "no",
    would mean yes."""
    for option, value in options.items():
        of = takes.get(option)
        if of is None or of.annotation not in _SWITCHES or value is of.default:
            continue
        if not isinstance(python_value(option, value), bool):
            raise UsageError(f"{option}: found {shown(value)}; give True or False")


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in([*value.items()])
    elif isinstance(value, (list, tuple, Set)):
        for element in value:
            yield from _texts_in(element)


def did_you_mean(name: str, known: Collection[str], advice: str = "") -> str:
    """The end of an error about an unknown name: "did you mean x?", if the known name x is spelled
    nearly so, and the advice."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    if not near:
        return advice
    return f"did you mean {by_lower_case[near[0]]!r}? {advice[:1].upper()}{advice[1:]}".rstrip()


def respell_options(text: str, spell: Callable[[str, str], str]) -> str:
    """The text of an error in which each option=value is replaced by what `spell` returns for it:
    the spelling of SQL or of the command line."""
    option_and_value = r"\b([a-z][a-z_]*)=('[^']*'|True|False)"
    return re.sub(option_and_value, lambda match: spell(match[1], match[2]), text)


def check_choice(option: str, value: object, choices: Collection[str]) -> None:
    if value not in choices:
        raise UsageError(f"{option}: found {value!r}; give one of {', '.join(choices)}")


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
    count: int, positional: Collection[str], options: Collection[str], callee: str
) -> None:
    """Refuse more positional values than there are positional options."""
    if count > len(positional):
        allowed = f"only {', '.join(positional)} may be" if positional else "none may be"
        by_name = next(name for name in options if name not in positional)
        raise UsageError(
            f"{callee}: found {count} positional values, and {allowed} positional; pass the others "
            f"by name, as in {by_name}=..."
        )


def check_known(passed: Collection[str], options: Collection[str], callee: str) -> None:
    """Refuse a call in which an option is passed that the callee does not have."""
    for name in passed:
        if name not in options:
            if name == "tokens" and "as_" in options:
                raise UsageError(
                    f"tokens: {callee} has no such option; name the column with text=, and pass "
                    "as_='list' if its values are lists of tokens"
                )
            if name in ("user", "text", "item") and "corpus" in options:
                raise UsageError(
                    f"{name}: {callee} takes a corpus, which names its columns: "
                    f"{callee}(dphh.Corpus(data, user=..., text=...), ...)"
                )
            if name in ("engine", "ledger", "out", "threads", "run_id") and "corpus" in options:
                raise UsageError(
                    f"{name}: {callee} only plans; its run takes it: {callee}(...).run({name}=...)"
                )
            raise UsageError(
                f"{name}: {callee} has no such option; "
                + (did_you_mean(name, options) or f"the options are {', '.join(options)}")
            )


def check_required(passed: Collection[str], options: Mapping[str, Parameter], callee: str) -> None:
    """Refuse a call in which an option without a default is not passed."""
    lacking = [
        name
        for name, option in options.items()
        if name not in passed and option.default is Parameter.empty
    ]
    if lacking:
        needs = "it" if len(lacking) == 1 else "each of them"
        raise UsageError(f"{', '.join(lacking)}: {callee} needs {needs}")


def shown_default(option: Parameter) -> str | None:
    """The default of an option, as SQL, addresses and the command line write it; None if it has no
    default, or one that means "not given"."""
    if option.default in (Parameter.empty, None, "", ()):
        return None
    is_switch = isinstance(option.default, bool)
    return str(option.default).lower() if is_switch else str(option.default)


#: Options that are lists of texts, in which an integer stands for its text.
_LISTS_OF_TEXTS = {"of", "domain", "groups"}


def python_value(option: str, value: object) -> object:
    """The option's value as Python has it: the number in a NumPy scalar, the list in a Series, an
    array of NumPy or Arrow, or a range. A table stays a table."""
    if isinstance(value, range):
        value = list(value)
    elif not hasattr(value, "schema") and not hasattr(value, "columns"):
        unpack = [getattr(value, name, None) for name in ("to_pylist", "to_list", "tolist")]
        value = next((method() for method in unpack if callable(method)), value)
    if option in _LISTS_OF_TEXTS and isinstance(value, list):
        return [str(text) if type(text) is int else text for text in value]
    return value
