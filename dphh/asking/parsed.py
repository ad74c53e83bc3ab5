"""Turns the texts of a request into values of Python: its options, and its corpus if the ledger
names it. The texts come from SQL, an address or the command line."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Literal, Union, get_args, get_origin

from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.reader.corpus import ROW_OPTIONS, Corpus, narrowed
from dphh.wording.options import check_choice, check_known


def typed_options(
    options: Mapping[str, Parameter], texts: Mapping[str, str], options_of: str
) -> dict[str, Any]:
    """The texts of options as values of the options' types. `options_of`: the function or macro
    that has these options, for errors."""
    check_known(texts, options, options_of)
    return {name: typed_value(name, options[name].annotation, text) for name, text in texts.items()}


def typed_value(name: str, annotation: Any, text: str) -> Any:
    """An option's text as a value of the option's type."""
    kinds = types_of_option(annotation)
    lists = [kind for kind in kinds if get_origin(kind) is Sequence]
    elements = [element for kind in lists for element in get_args(kind)]
    for number in (int, float):
        if number in kinds or number in elements:
            return _parsed_number(name, number, text, several=number in elements)
    if bool in kinds:
        check_choice(name, text, ("true", "false"))
        return text == "true"
    if get_origin(kinds[0]) is Literal:
        check_choice(name, text, get_args(kinds[0]))
        return text
    return _parsed_texts(name, text) if elements and text.startswith("[") else text


def types_of_option(annotation: Any) -> list[Any]:
    """The types that an option may have, without None."""
    union = get_origin(annotation) in (Union, types.UnionType)
    choices = get_args(annotation) if union else (annotation,)
    return [kind for kind in choices if kind is not type(None)]


def _parsed_number(name: str, number_type: type[Any], text: str, *, several: bool) -> Any:
    """The number in the text or, if the option has several, the numbers between its commas."""
    listed = several and text.startswith("[") and text.endswith("]")
    try:
        if several:
            return tuple(map(number_type, (text[1:-1] if listed else text).split(",")))
        return number_type(text)
    except (ValueError, OverflowError):
        what = "a whole number" if number_type is int else "a number"
        many = ", or several with commas between them" if several else ""
        raise UsageError(f"{name}: found {text[:100]!r}; give {what}{many}") from None


def _parsed_texts(name: str, text: str) -> list[Any]:
    """The list of texts, or of lists of texts, that the text is as JSON."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, list) or not all(
        isinstance(item, str)
        or (isinstance(item, list) and all(isinstance(token, str) for token in item))
        for item in parsed
    ):
        raise UsageError(f'{name}: this is no list of texts; give one, such as ["a", "b c"]')
    return parsed


def narrowed_corpus_of_account(
    ledger: Ledger,
    account: str,
    asked_options: dict[str, Any],
    shown_name_of: Callable[[str], str],
    files: Sequence[str] = (),
) -> Corpus | None:
    """The corpus of an account, narrowed to the rows that `asked_options` name; None if the ledger
    has no such account. Options other than where, since and until are refused. `shown_name_of`: how
    the caller's interface writes an option's name, for errors."""
    is_described = "user" in asked_options  # so it needs no ledger, where there is none yet
    if (is_described and ledger.absent() is not None) or account not in ledger.names():
        return None
    rows = {option: asked_options[option] for option in ROW_OPTIONS & asked_options.keys()}
    if others := sorted(map(shown_name_of, asked_options.keys() - rows)):
        raise UsageError(
            f"{', '.join(others)}: the ledger has the corpus {account!r}, whose owner has declared "
            "how it is read; leave these out"
        )
    return narrowed(ledger.corpus(account, files=files), **rows)
