"""`dphh/asking/frames.pyi`: the methods of `frame.dphh`, written out, for type checkers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from textwrap import indent
from typing import Any

from dphh.asking.frames import FrameVerbs, frame
from dphh.reader.corpus import HELP
from dphh.registry import VERBS

_HEAD = """\
# Made from the registry of verbs: make generated
import collections.abc
import datetime
import pathlib
import typing

import polars as pl

import dphh.mechanisms.counts.price
from dphh.plan import Plan
from dphh.reader.corpus import Corpus

_Frame = pl.DataFrame | pl.LazyFrame

class _Rows(typing.TypedDict, total=False):
{of_rows}
class _Corpus(_Rows, total=False):
{of_tokens}
def frame(frame: _Frame) -> FrameVerbs:
{doc_of_frame}

class FrameVerbs:
{doc}

    def __init__(self, frame: _Frame) -> None: ...
"""


def frames_stub() -> str:
    helps = {"corpus": HELP, **{name: verb.help for name, verb in VERBS.items()}}
    of_corpus = _options("corpus")
    # `ldp_trie` has an option `keep` of its own.
    of_tokens = {name: of_corpus.pop(name) for name in ("keep",)}
    head = _HEAD.format(
        of_rows=_fields(of_corpus),
        of_tokens=_fields(of_tokens),
        doc_of_frame=_quoted(frame, 4),
        doc=_quoted(FrameVerbs, 4),
    )
    return head + "".join(_method(name, each) for name, each in helps.items())


def _options(name: str) -> dict[str, inspect.Parameter]:
    _, *options = inspect.signature(getattr(FrameVerbs, name)).parameters.items()
    return dict(options)


def _fields(options: Mapping[str, inspect.Parameter]) -> str:
    """The options of a corpus, which all methods take, as a type of keywords."""
    return "".join(f"    {name}: {_field(option)}\n" for name, option in options.items())


def _field(option: inspect.Parameter) -> str:
    text = _type_text(option.annotation)
    return f"typing.Required[{text}]" if option.default is option.empty else text


def _method(name: str, helps: Mapping[str, str]) -> str:
    own = {} if name == "corpus" else VERBS[name].options
    options = [option for each, option in _options(name).items() if each in own]
    # Options that are needed come first, as everywhere else that Python has them.
    options.sort(key=lambda each: each.default is not each.empty)
    said = "".join(f"        {_option(each)},\n" for each in options)
    read = "_Rows" if "keep" in own else "_Corpus"
    summary, example = inspect.getdoc(getattr(FrameVerbs, name)).split("\n\n")[:2]
    lines = [f"{option}: {line}" for option, line in helps.items()]
    doc = _in_quotes("\n".join([summary, "", example, "", *lines]), 8)
    made, star = ("Corpus", "") if name == "corpus" else ("Plan", "        *,\n")
    taken = f"{star}{said}        **corpus: typing.Unpack[{read}],\n"
    return f"    def {name}(\n        self,\n{taken}    ) -> {made}:\n{doc}\n"


def _option(option: inspect.Parameter) -> str:
    default = "" if option.default is option.empty else f" = {option.default!r}"
    return f"{option.name}: {_type_text(option.annotation)}{default}"


def _type_text(annotation: Any) -> str:
    text = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    return text.replace("polars.expr.expr.Expr", "pl.Expr")


def _quoted(thing: Any, spaces: int) -> str:
    return _in_quotes(inspect.getdoc(thing) or "", spaces)


def _in_quotes(doc: str, spaces: int) -> str:
    return indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', " " * spaces)
