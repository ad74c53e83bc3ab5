"""The public verbs. Each prices a run and returns its plan for free; `plan.run()` spends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Parameter, Signature
from typing import Any, Generic, Protocol

from dphh import registry
from dphh.corpus import Corpus
from dphh.errors import UsageError
from dphh.plan import Plan
from dphh.public.asked_prior import with_prior
from dphh.public.counted_items import with_items
from dphh.registry import Options
from dphh.wording.options import check_given, check_known, check_places, plain

#: What reads the public lists that options name, before the price is known.
_READERS_OF_OPTIONS: dict[str, Callable[[dict[str, Any], Corpus | None], dict[str, Any]]] = {
    "items": lambda options, corpus: with_prior(with_items(options, corpus), corpus),
    "ngrams": with_prior,
    "counts": with_items,
}


class VerbFunction(Protocol, Generic[Options]):
    """A verb as a function of a corpus (optional until the run) and the options of its price."""

    def __call__(
        self, corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs
    ) -> Plan: ...


def verb_function(verb: registry.Verb[Options]) -> VerbFunction[Options]:
    """The verb as a function: it prices the options and stores the corpus as the verb reads it."""

    def plan(corpus: Corpus | None = None, *args: Options.args, **options: Options.kwargs) -> Plan:
        check_places(1 + len(args), ["corpus"], ["corpus", *verb.options], verb.name)
        if corpus is not None and not isinstance(corpus, Corpus):
            raise UsageError(
                f"corpus: found a {type(corpus).__name__}; make it a corpus with "
                "dphh.Corpus(source, user=..., text=...), or item=..., and pass that"
            )
        if corpus is not None and corpus.source is not None:
            _check_columns(corpus)
        _refuse_known_values(options, verb.options, verb.name)
        check_known(options, verb.options, verb.name)
        check_given(options, verb.options, verb.name)
        given: Any = {name: plain(value) for name, value in options.items()}
        if verb.name in _READERS_OF_OPTIONS:
            given = _READERS_OF_OPTIONS[verb.name](given, corpus)
        price = verb.price(*args, **given)
        return Plan(price, None if corpus is None else verb.read(corpus, price))

    first = Parameter(
        "corpus", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Corpus | None
    )
    plan.__name__ = plan.__qualname__ = verb.name
    plan.__doc__ = verb.price.__doc__
    plan.__signature__ = Signature(  # type: ignore[attr-defined]
        [first, *verb.options.values()], return_annotation=Plan
    )
    return plan


def _check_columns(corpus: Corpus) -> None:
    """A column that a table in memory lacks, before a plan is made for it."""
    from dphh.sources.reading import is_in_memory, refuse_missing_columns  # slow to import

    if is_in_memory(corpus):
        names = getattr(corpus.source, "column_names", None) or corpus.source.columns
        refuse_missing_columns(corpus, [str(name) for name in names])


#: What other libraries call the values that are asked about.
_NAMES_IN_OTHER_LIBRARIES = {
    "categories",
    "domain",
    "keys",
    "keyset",
    "partitions",
    "public_partitions",
}


def _refuse_known_values(given: Collection[str], takes: Collection[str], verb: str) -> None:
    found = sorted(_NAMES_IN_OTHER_LIBRARIES & {*given} - {*takes})
    if found and "of" not in takes:
        instead = "dphh.items(corpus, domain=values, epsilon=..., delta=...)"
        raise UsageError(
            f"{found[0]}: {verb} has no such option. Of values that are known beforehand all are "
            f"shown, those that nobody holds too, and no delta goes to new ones: {instead}"
        )


items = verb_function(registry.ITEMS)
ngrams = verb_function(registry.NGRAMS)
trie = verb_function(registry.TRIE)
ldp_trie = verb_function(registry.LDP_TRIE)
counts = verb_function(registry.COUNTS)
