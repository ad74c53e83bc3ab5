"""Reads requests that arrive as text, from SQL, an address or the command line: options, which
become values of the types that Python's options have, and names of corpora in the ledger."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Literal, Union, get_args, get_origin

from dphh.corpus import ROW_OPTIONS, Corpus, narrowed
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.wording.options import check_choice, check_known


def typed_options(
    options: Mapping[str, Parameter], given: Mapping[str, str], what: str
) -> dict[str, Any]:
    """The given texts as values of the types that the options have. `what`: the function or macro
    that has these options, as errors name it."""
    check_known(given, options, what)
    return {name: value_of(name, options[name].annotation, text) for name, text in given.items()}


def value_of(name: str, annotation: Any, text: str) -> Any:
    """An option's text as a value of the option's type."""
    kinds = types_of_option(annotation)
    lists = [each for each in kinds if get_origin(each) is Sequence]
    number = next((each for each in (int, float) if each in (*kinds, *_element_types(lists))), None)
    if number is not None:
        return _parsed_numbers(name, number, text, one=number in kinds, several=bool(lists))
    if bool in kinds:
        check_choice(name, text, ("true", "false"))
        return text == "true"
    if get_origin(kinds[0]) is Literal:
        check_choice(name, text, get_args(kinds[0]))
        return text
    return _parsed_texts(name, text) if lists and text.startswith("[") else text


def types_of_option(annotation: Any) -> list[Any]:
    """The types that an option may have, without None."""
    union = get_origin(annotation) in (Union, types.UnionType)
    choices = get_args(annotation) if union else (annotation,)
    return [each for each in choices if each is not type(None)]


def _element_types(lists: Sequence[Any]) -> list[Any]:
    return [each for one in lists for each in get_args(one)]


def _parsed_numbers(name: str, kind: type[Any], text: str, *, one: bool, several: bool) -> Any:
    """A number, if the option takes `one`; or a tuple of numbers, if it takes `several`: separated
    by commas, with or without brackets."""
    listed = text.startswith("[") and text.endswith("]")
    parts = text[1:-1].split(",") if listed else text.split(",")
    try:
        found = tuple(kind(part) for part in parts)
    except (ValueError, OverflowError):
        found = ()
    if len(found) == 1 and one and not listed:
        return found[0]
    if found and several:
        return found
    what = "a whole number" if kind is int else "a number"
    many = ", or several with commas between them" if several else ""
    raise UsageError(f"{name}: found {text[:100]!r}; give {what}{many}")


def _parsed_texts(name: str, text: str) -> list[Any]:
    """A list of texts, or of lists of texts, from JSON, as which SQL sends its lists."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(
        isinstance(each, str)
        or (isinstance(each, list) and all(isinstance(token, str) for token in each))
        for each in found
    ):
        raise UsageError(f'{name}: this is no list of texts; give one, such as ["a", "b c"]')
    return found


def given_corpus_name(given: Mapping[str, str], macro_name: str) -> str:
    if not (name := given.get("corpus")):
        raise UsageError(
            f"corpus: is missing; name it first, as in FROM dphh_{macro_name}('reviews', ...)"
        )
    return name


def corpus_of_account(
    ledger: Ledger,
    name: str,
    content: dict[str, Any],
    option_name: Callable[[str], str],
    files: Sequence[str] = (),
) -> Corpus | None:
    """The corpus of an account; None if the ledger has no such account. Of the options in
    `content`, a request may give only those that say which rows count. `option_name`: how the
    caller's interface writes an option's name, for errors."""
    if name not in ledger.names():
        return None
    rows = {option: content[option] for option in ROW_OPTIONS & content.keys()}
    if said := sorted(map(option_name, content.keys() - rows)):
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    return narrowed(ledger.corpus(name, files=files), **rows)
