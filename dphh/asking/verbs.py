"""The public verbs, of a corpus and, as `frame.dphh`, of Polars frames. Each prices a run for free.

A frame's verb makes the frame a corpus and calls the verb:

    frame.dphh.ngrams(user="author", text="body", max_n=6, epsilon=1.0, delta=1e-7).run()

A lazy frame stays lazy until the plan runs; Polars then optimises it together with the level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from dphh.corpus import Corpus
from dphh.levels.ldp_trie import Sampling
from dphh.levels.ngrams import Pruning
from dphh.levels.trie import Choice
from dphh.mechanisms.counts.price import Of
from dphh.mechanisms.ngrams.price import Method as NgramsMethod
from dphh.mechanisms.set_union.price import Method
from dphh.mechanisms.trie.price import Accounting
from dphh.plan import Plan, verb_function
from dphh.prior import PriorAsked
from dphh.registry import COUNTS, ITEMS, LDP_TRIE, NGRAMS, TRIE, VERBS
from dphh.rows.content import Characters, Reading, TooLong
from dphh.wording.options import named_in_words

if TYPE_CHECKING:
    import polars as pl


items = verb_function(ITEMS)
ngrams = verb_function(NGRAMS)
trie = verb_function(TRIE)
ldp_trie = verb_function(LDP_TRIE)
counts = verb_function(COUNTS)


class RowsOptions(TypedDict, total=False):
    """The options of `Corpus` besides its source, without `keep`, which `ldp_trie` has itself."""

    user: Required[str | Sequence[str]]
    text: str | None
    item: str | None
    as_: Reading | None
    lower: bool
    split: str
    strip: str
    drop: str | None
    max_text_length: int
    max_token_length: int
    too_long: TooLong
    characters: Characters
    where: str | None
    since: str | None
    until: str | None
    name: str | None


class CorpusOptions(RowsOptions, total=False):
    """All options of `Corpus` besides its source."""

    keep: str | None


class ItemsOptions(CorpusOptions, total=False):
    """The options of `frame.dphh.items`."""

    epsilon: Required[float]
    delta: Required[float]
    max_items: int
    method: Method
    counts: float | None
    by: str | None
    groups: str | Sequence[str]
    min_users: int | None
    prior: PriorAsked | None
    prior_text: str | None
    prior_is_public: bool
    domain: Of | None


class NgramsOptions(CorpusOptions, total=False):
    """The options of `frame.dphh.ngrams`."""

    max_n: Required[int]
    epsilon: Required[float]
    delta: Required[float]
    max_items: int | Sequence[int]
    spurious: float
    method: NgramsMethod
    pruning: Pruning
    decay: float
    shares: Sequence[float] | None
    counts: float | None
    by: str | None
    groups: str | Sequence[str]
    min_users: int | None
    prior: PriorAsked | None
    prior_text: str | None
    prior_is_public: bool


class CountsOptions(CorpusOptions, total=False):
    """The options of `frame.dphh.counts`."""

    of: Required[Of]
    epsilon: Required[float]
    delta: Required[float]
    top: int | None
    min_length: int
    max_items: int
    by: str | None
    groups: str | Sequence[str]
    confidence: float
    simultaneous: bool


class TrieOptions(CorpusOptions, total=False):
    """The options of `frame.dphh.trie`."""

    epsilon: Required[float]
    delta: Required[float]
    max_length: Required[int]
    unit: int
    choice: Choice
    accounting: Accounting
    theta: int | None
    p: float | None
    users: int | None
    counts: float | None
    by: str | None
    groups: str | Sequence[str]
    max_items: int | None


class LdpTrieOptions(RowsOptions, total=False):
    """The options of `frame.dphh.ldp_trie`."""

    local_epsilon: float | None
    delta: Required[float]
    users_per_level: Required[int]
    contributions: Required[int]
    max_length: Required[int]
    keep: Required[int]
    sampling: Sampling
    passes: int
    character_set: str | Sequence[str]
    known: Sequence[str | Sequence[str]]
    pad: bool
    central_epsilon: float | None
    user_epsilon: float | None


class Verbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends."""

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def items(self, **options: Unpack[ItemsOptions]) -> Plan:
        """`dphh.items` on this frame: single items that many users hold."""
        return _plan_of_frame(items, self._frame, {**options})

    def ngrams(self, **options: Unpack[NgramsOptions]) -> Plan:
        """`dphh.ngrams` on this frame: runs of up to `max_n` tokens that many users hold."""
        return _plan_of_frame(ngrams, self._frame, {**options})

    def counts(self, **options: Unpack[CountsOptions]) -> Plan:
        """`dphh.counts` on this frame: how many users hold each of given items, with intervals."""
        return _plan_of_frame(counts, self._frame, {**options})

    def trie(self, **options: Unpack[TrieOptions]) -> Plan:
        """`dphh.trie` on this frame: sequences, grown level by level from sampled votes."""
        return _plan_of_frame(trie, self._frame, {**options})

    def ldp_trie(self, **options: Unpack[LdpTrieOptions]) -> Plan:
        """`dphh.ldp_trie` on this frame: sequences, grown from locally randomised votes.

        `keep` is the verb's option here; to filter tokens, clean the frame or use a `Corpus`."""
        return _plan_of_frame(ldp_trie, self._frame, {**options})


def on(frame: pl.DataFrame | pl.LazyFrame) -> Verbs:
    """`frame.dphh` for type checkers, which do not see namespaces registered on Polars' classes."""
    return Verbs(frame)


_SET_BY_THE_FRAME = ("source", "connection", "unit")


def _options(verb: Callable[..., Plan]) -> dict[str, Parameter]:
    """The options of a frame's verb: the corpus's and the verb's; a shared name is the verb's."""
    of_corpus = signature(Corpus).parameters.items()
    reading = {name: option for name, option in of_corpus if name not in _SET_BY_THE_FRAME}
    options = {**reading, **signature(verb).parameters}
    del options["corpus"]
    return {name: option.replace(kind=Parameter.KEYWORD_ONLY) for name, option in options.items()}


def _plan_of_frame(verb: Callable[..., Plan], frame: Any, options: dict[str, Any]) -> Plan:
    """Pass each option to the verb if it has one of that name, else to the corpus."""
    of_verb = signature(verb).parameters
    reading = {name: value for name, value in options.items() if name not in of_verb}
    asked = {name: value for name, value in options.items() if name in of_verb}
    return verb(Corpus(frame, **reading), **asked)


# Signatures for completion and checks, since `**options` has no names.
for _name in VERBS:
    _takes = [Parameter("self", Parameter.POSITIONAL_ONLY), *_options(globals()[_name]).values()]
    _asked = getattr(Verbs, _name)
    _asked.__signature__ = Signature(_takes, return_annotation=Plan)
    setattr(Verbs, _name, named_in_words(_asked, _name))
