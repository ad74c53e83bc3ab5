"""The public verbs. Each prices a run and returns its plan for free; `plan.run()` spends."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Generic, Protocol

from dphh import registry
from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.given import Of, given_items
from dphh.plan import Plan
from dphh.registry import Options


class Planning(Protocol, Generic[Options]):
    """A verb as it is called: a corpus, now or when it runs, and the options of its price."""

    def __call__(
        self, corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs
    ) -> Plan: ...


def planning(verb: registry.Verb[Options]) -> Planning[Options]:
    """The verb as a function: the price that its mechanism makes, and the corpus as it reads it."""

    def plan(corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs) -> Plan:
        _check_corpus(corpus)
        price = verb.price(*args, **options)
        return Plan(price, None if corpus is None else verb.read(corpus, price))

    priced = signature(verb.price, eval_str=True)
    first = Parameter(
        "corpus", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Corpus | None
    )
    plan.__name__ = plan.__qualname__ = verb.name
    plan.__doc__ = verb.price.__doc__
    plan.__signature__ = priced.replace(  # type: ignore[attr-defined]
        parameters=[first, *priced.parameters.values()], return_annotation=Plan
    )
    return plan


def _check_corpus(corpus: object) -> None:
    if corpus is not None and not isinstance(corpus, Corpus):
        raise UsageError(
            f"corpus: found a {type(corpus).__name__}; say what it means with "
            "dphh.Corpus(source, user=..., text=...) or item=..., and give that"
        )


items = planning(registry.ITEMS)
ngrams = planning(registry.NGRAMS)
trie = planning(registry.TRIE)
ldp_trie = planning(registry.LDP_TRIE)


def counts(
    corpus: Corpus | None = None,
    *,
    of: Of,
    epsilon: float,
    delta: float,
    top: int | None = None,
    min_length: int = 1,
    max_items: int = 100,
    by: str | None = None,
    groups: Sequence[str] = (),
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> Plan:
    """How many users hold each of given items, with intervals that hold the truth.

    of: a release, its folder or its run id (in your own ledger); or a list of your own, each item a
    text, read as a row of the corpus, or a list of its tokens; or a text file of one item a line.
    top: of a release so many alone, the first of each level, then the second of each, and so on.
    min_length: items of at least so many tokens. max_items: how many of them a user counts for as
    one whole user each; who holds more counts for less of each, and `high` covers that. by, groups:
    count within these values of a column, and all others, NULL too, together as "other".
    confidence: how often each interval holds the truth; with `simultaneous`, all of them at once.
    """
    _check_corpus(corpus)
    return planning(registry.COUNTS)(
        corpus,
        of=given_items(of, corpus, top=top, min_length=min_length),
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        by=by,
        groups=groups,
        confidence=confidence,
        simultaneous=simultaneous,
    )
