"""The public verbs: functions of a corpus, and methods of `frame.dphh` for Polars frames. Each
prices a run for free.

A frame's verb makes the frame a corpus and calls the verb:

    frame.dphh.ngrams(user="author", text="body", max_n=6, epsilon=1.0, delta=1e-7).run()

A lazy frame stays lazy until the plan runs. The run looks at its columns of users first, and then
collects the columns that the corpus names.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from dphh.corpus import Corpus
from dphh.plan import Plan, verb_function
from dphh.registry import COUNTS, ITEMS, LDP_TRIE, NGRAMS, TRIE, VERBS
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
_CORPUS_OPTIONS_NOT_TAKEN = ("source", "connection", "unit")


class Verbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends.

    The options are those of `dphh.Corpus` and of the verb. `keep` is the verb's own in `ldp_trie`;
    to filter tokens there, clean the frame or use a `Corpus`.
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame


def _verb_as_method(name: str, verb: Callable[..., Plan]) -> Callable[..., Plan]:
    """The verb as a method of `Verbs`, which passes options that the verb lacks to `Corpus`."""
    of_verb = signature(verb).parameters

    def plan(self: Verbs, **options: Any) -> Plan:
        asked = {name: value for name, value in options.items() if name in of_verb}
        reading = {name: value for name, value in options.items() if name not in of_verb}
        return verb(Corpus(self._frame, **reading), **asked)

    of_corpus = {
        name: option
        for name, option in signature(Corpus).parameters.items()
        if name not in _CORPUS_OPTIONS_NOT_TAKEN
    }
    options = {**of_corpus, **of_verb}
    del options["corpus"]
    plan.__name__ = plan.__qualname__ = name
    plan.__doc__ = verb.__doc__
    plan.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter("self", Parameter.POSITIONAL_ONLY),
            *(option.replace(kind=Parameter.KEYWORD_ONLY) for option in options.values()),
        ],
        return_annotation=Plan,
    )
    return checked_call(plan)


for _name in VERBS:
    setattr(Verbs, _name, _verb_as_method(_name, globals()[_name]))
