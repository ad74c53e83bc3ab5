"""What is asked, by SQL, in an address or on the command line: options that arrive as text, checked
by the registry's own types, and corpora that the ledger names."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Literal, Union, get_args, get_origin

from dphh.corpus import WHICH_ROWS, Corpus, narrowed
from dphh.errors import UsageError
from dphh.ledger import Ledger
from dphh.wording.options import check_choice, check_known


def typed(options: Mapping[str, Parameter], given: Mapping[str, str], what: str) -> dict[str, Any]:
    """The options of `what` as values of the types that their parameters have."""
    check_known(given, options, what)
    return {name: value_of(name, options[name].annotation, text) for name, text in given.items()}


def value_of(name: str, annotation: Any, text: str) -> Any:
    """The value of one option as its type has it."""
    kinds = types_of_option(annotation)
    lists = [each for each in kinds if get_origin(each) is Sequence]
    number = next((each for each in (int, float) if each in (*kinds, *_element_types(lists))), None)
    if number is not None:
        return _numbers(name, number, text, one=number in kinds, several=bool(lists))
    if bool in kinds:
        check_choice(name, text, ("true", "false"))
        return text == "true"
    if get_origin(kinds[0]) is Literal:
        check_choice(name, text, get_args(kinds[0]))
        return text
    return _texts(name, text) if lists and text.startswith("[") else text


def types_of_option(annotation: Any) -> list[Any]:
    """The types that an option may have, beside None."""
    union = get_origin(annotation) in (Union, types.UnionType)
    choices = get_args(annotation) if union else (annotation,)
    return [each for each in choices if each is not type(None)]


def _element_types(lists: Sequence[Any]) -> list[Any]:
    return [each for one in lists for each in get_args(one)]


def _numbers(name: str, kind: type[Any], text: str, *, one: bool, several: bool) -> Any:
    """A number; or, where the option takes several, numbers with commas, in brackets or not."""
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


def _texts(name: str, text: str) -> list[Any]:
    """A list of texts, or of lists of texts, in JSON: what SQL's list of them becomes."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(
        isinstance(each, str)
        or (isinstance(each, list) and all(isinstance(token, str) for token in each))
        for each in found
    ):
        raise UsageError(f'{name}: found no list of texts; give a list, such as ["a", "b c"]')
    return found


def asked_corpus(given: Mapping[str, str], what: str) -> str:
    if not (name := given.get("corpus")):
        raise UsageError(
            f"corpus: is missing; name it first, as in FROM dphh_{what}('reviews', ...)"
        )
    return name


def corpus_of_account(
    ledger: Ledger,
    name: str,
    content: dict[str, Any],
    called: Callable[[str], str],
    files: Sequence[str] = (),
) -> Corpus | None:
    """The corpus of an account. A request may only say which of its rows count. None if the ledger
    has no such account. `called`: the name of an option where it was given."""
    if name not in ledger.names():
        return None
    rows = {option: content[option] for option in WHICH_ROWS & content.keys()}
    if said := sorted(map(called, content.keys() - rows)):
        raise UsageError(
            f"{', '.join(said)}: the ledger has the corpus {name!r}, whose owner has declared how "
            "it is read; leave these out"
        )
    return narrowed(ledger.corpus(name, files=files), **rows)
