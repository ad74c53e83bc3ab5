"""The verbs as methods of `frame.dphh`, for Polars frames. Each prices a run for free.

A frame's verb makes the frame a corpus and calls the verb. A lazy frame stays lazy until the plan
runs. `frames.pyi` has the methods written out, for editors and type checkers: `make generated`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import polars as pl

from dphh.errors import UsageError
from dphh.plan import Plan, verb_function
from dphh.reader.corpus import CORPUS_OPTIONS, Corpus
from dphh.registry import VERBS, Verb
from dphh.wording.options import checked_call

#: Options of `Corpus` that a frame's verbs lack: the frame is the source and needs no connection,
#: and `unit` is an option of `trie`.
_CORPUS_OPTIONS_NOT_TAKEN = {"source", "connection", "unit"}
#: The options that name a column or choose rows, which may be expressions of Polars.
_EXPRESSIONS = {"user", "text", "item", "by", "where"}
#: How each verb is called, for its docstring.
_EXAMPLES = {
    "items": 'frame.dphh.items(user="author", item="dish", epsilon=1.0, delta=1e-7)',
    "ngrams": 'frame.dphh.ngrams(user="author", text="body", max_n=3, epsilon=1.0, delta=1e-7)',
    "counts": 'frame.dphh.counts(user="author", item="dish", of=menu, epsilon=0.5, delta=1e-8)',
    "trie": 'frame.dphh.trie(user="author", item="query", max_length=12, epsilon=1.0, delta=1e-8)',
    "ldp_trie": 'frame.dphh.ldp_trie(user="author", item="query", max_length=8, keep=100,\n'
    "    users_per_level=100_000, contributions=1, local_epsilon=4.0, delta=1e-8)",
}


class FrameVerbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends.

    The options are those of `dphh.Corpus` and of the verb; what names a column or chooses rows may
    be an expression: `text=pl.col("body").str.to_lowercase()`, `where=pl.col("lang") == "en"`, made
    row by row. `keep` is the verb's own in `ldp_trie`; to filter tokens there, clean the frame.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def __dir__(self) -> list[str]:
        return [*VERBS]


def frame(frame: pl.DataFrame | pl.LazyFrame) -> FrameVerbs:
    """`frame.dphh`, for those who check types: `dphh.frame(messages).ngrams(user=..., ...)`."""
    if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        raise UsageError(
            f"frame: found a {type(frame).__name__}; give a Polars frame, or make anything else a "
            "dphh.Corpus"
        )
    return FrameVerbs(frame)


def _verb_as_method(verb: Verb[...]) -> Callable[..., Plan]:
    """The verb as a method, which passes options that the verb lacks to `Corpus`."""
    make_plan, verb_options = verb_function(verb), verb.options

    def plan(self: FrameVerbs, **options: Any) -> Plan:
        source = self._frame
        if isinstance(rows := options.get("where"), pl.Expr):
            source = source.filter(rows)
            del options["where"]
        for name in _EXPRESSIONS & options.keys():
            if isinstance(column := options[name], pl.Expr):
                if not column.meta.is_column():
                    source = source.with_columns(column)
                options[name] = column.meta.output_name()
        of_verb = {name: value for name, value in options.items() if name in verb_options}
        of_corpus = {name: value for name, value in options.items() if name not in verb_options}
        return make_plan(Corpus(source, **of_corpus), **of_verb)

    of_frame = {
        name: option
        for name, option in CORPUS_OPTIONS.items()
        if name not in _CORPUS_OPTIONS_NOT_TAKEN
    }
    taken = {**of_frame, **verb_options}
    by_name = [
        option.replace(
            kind=Parameter.KEYWORD_ONLY,
            annotation=option.annotation | pl.Expr if name in _EXPRESSIONS else option.annotation,
        )
        for name, option in taken.items()
    ]
    plan.__name__ = plan.__qualname__ = verb.name
    summary, _, rest = verb.doc.partition("\n")
    plan.__doc__ = f"{summary}\n\n    {_EXAMPLES[verb.name]}\n{rest}"
    plan.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("self", Parameter.POSITIONAL_ONLY), *by_name], return_annotation=Plan
    )
    return checked_call(plan)


for _verb in VERBS.values():
    setattr(FrameVerbs, _verb.name, _verb_as_method(_verb))
