"""The public verbs: functions of a corpus, and methods of `frame.dphh` for Polars frames. Each
prices a run for free.

A frame's verb makes the frame a corpus and calls the verb:

    frame.dphh.ngrams(user="author", text="body", max_n=6, epsilon=1.0, delta=1e-7).run()

A lazy frame stays lazy until the plan runs. The run looks at its columns of users first, and then
collects the columns that the corpus names.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from dphh.plan import Plan, verb_function
from dphh.reader.corpus import CORPUS_OPTIONS, Corpus
from dphh.registry import COUNTS, ITEMS, LDP_TRIE, NGRAMS, TRIE, VERBS, Verb
from dphh.wording.options import checked_call

if TYPE_CHECKING:
    import polars as pl


items = verb_function(ITEMS)
ngrams = verb_function(NGRAMS)
trie = verb_function(TRIE)
ldp_trie = verb_function(LDP_TRIE)
counts = verb_function(COUNTS)

#: Options of `Corpus` that a frame's verbs lack: the frame is the source and needs no connection,
#: and `unit` is an option of `trie`.
_CORPUS_OPTIONS_NOT_TAKEN = {"source", "connection", "unit"}


class Verbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends.

    The options are those of `dphh.Corpus` and of the verb. `keep` is the verb's own in `ldp_trie`;
    to filter tokens there, clean the frame or use a `Corpus`.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame


def _verb_as_method(verb: Verb[...]) -> Callable[..., Plan]:
    """The verb as a method of `Verbs`, which passes options that the verb lacks to `Corpus`."""
    make_plan, verb_options = verb_function(verb), verb.options

    def plan(self: Verbs, **options: Any) -> Plan:
        of_verb = {name: value for name, value in options.items() if name in verb_options}
        of_corpus = {name: value for name, value in options.items() if name not in verb_options}
        return make_plan(Corpus(self._frame, **of_corpus), **of_verb)

    of_frame = {
        name: option
        for name, option in CORPUS_OPTIONS.items()
        if name not in _CORPUS_OPTIONS_NOT_TAKEN
    }
    taken = {**of_frame, **verb_options}.values()
    by_name = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in taken]
    plan.__name__ = plan.__qualname__ = verb.name
    plan.__doc__ = verb.doc
    plan.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("self", Parameter.POSITIONAL_ONLY), *by_name], return_annotation=Plan
    )
    return checked_call(plan)


for _verb in VERBS.values():
    setattr(Verbs, _verb.name, _verb_as_method(_verb))
