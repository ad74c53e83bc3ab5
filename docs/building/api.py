"""The public names of dphh, as a part of a page: signatures and docstrings, read from the code."""

from __future__ import annotations

import inspect
import re
from typing import Any

import dphh

#: Who looks for a name looks for it among these.
GROUPS = {
    "Verbs": ("items", "ngrams", "counts", "trie", "ldp_trie"),
    "Before you spend": ("check", "compare", "profile"),
    "Data and plans": ("Corpus", "frame", "Plan", "plan_from_json"),
    "Releases": ("Release", "verify", "evaluate", "exact_ngrams"),
    "The ledger": ("Ledger",),
    "SQL": ("connect", "register"),
    "Errors": (
        "DphhError", "UsageError", "CorpusError", "BudgetRefused", "LedgerError", "EngineError",
    ),
}  # fmt: skip
LAST = "All else"


def groups() -> dict[str, list[str]]:
    """Every public name, each once."""
    grouped = {name for names in GROUPS.values() for name in names}
    public = [name for name in dphh.__all__ if not name.startswith("_")]
    found = {group: [n for n in names if n in public] for group, names in GROUPS.items()}
    found[LAST] = [name for name in public if name not in grouped]
    return found


def api_page() -> str:
    return "\n\n".join(
        f"### {group}\n\n" + "\n\n".join(_entry(name) for name in names)
        for group, names in groups().items()
    )


def _entry(name: str) -> str:
    thing = getattr(dphh, name)
    heading = f"#### `{name}` {{: #dphh.{name} }}"
    if inspect.isclass(thing):
        members = [_member(name, each, found) for each, found in _public(thing)]
        said = "" if issubclass(thing, Exception) else _signature(name, thing)
        return "\n\n".join(filter(None, [heading, said, _doc(thing), *members]))
    if callable(thing):
        return "\n\n".join(filter(None, [heading, _signature(name, thing), _doc(thing)]))
    return f"{heading}\n\n```python\n{name} = {thing!r}\n```"


def _public(thing: type) -> list[tuple[str, Any]]:
    """Its own members and those of the house's classes that it is made of, in their order."""
    members: dict[str, Any] = {}
    for part in reversed(thing.__mro__):
        members |= vars(part) if part.__module__.startswith("dphh.") else {}
    return [
        (name, found)
        for name, found in members.items()
        if not name.startswith("_")
        and (callable(found) or isinstance(found, (classmethod, staticmethod)))
        and inspect.getdoc(getattr(thing, name))
    ]


def _member(of: str, name: str, found: Any) -> str:
    function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
    heading = f"##### `{of}.{name}` {{: #{of}.{name} }}"
    return f"{heading}\n\n{_signature(name, function)}\n\n{_doc(function)}"


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing, eval_str=False)
    except (TypeError, ValueError):
        return ""
    parameters = [
        each.replace(annotation=_plain(each.annotation))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    shown = ",\n".join(f"    {each}" for each in _written(parameters))
    call = f"{name}(\n{shown},\n)" if shown else f"{name}()"
    result = _plain(signature.return_annotation)
    arrow = "" if result is inspect.Signature.empty or inspect.isclass(thing) else f" -> {result}"
    return f"```python\n{call}{arrow}\n```"


def _written(parameters: list[inspect.Parameter]) -> list[str]:
    written, bare = [], True
    for each in parameters:
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            bare = False
        if each.kind is inspect.Parameter.KEYWORD_ONLY and bare:
            written.append("*")
            bare = False
        written.append(str(each))
    return written


def _plain(annotation: Any) -> Any:
    """Types as they are written, without the modules that they are from."""
    if annotation is inspect.Parameter.empty:
        return annotation
    said = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _Said(re.sub(r"\b(?:\w+\.)+(\w)", r"\1", said))


class _Said(str):
    """A type's words, which a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _doc(thing: Any) -> str:
    """A docstring as Markdown; what it says of an option, `name: ...`, is an item of a list."""
    doc = inspect.getdoc(thing) or ""
    item = r"(?:^|(?<=\. )|(?<=\.\n))([a-z_]+(?:, [a-z_]+)*): "
    return re.sub(item, r"\n\n- **\1**: ", doc, flags=re.MULTILINE)
