"""The registry of verbs: what each is, said once. Whatever asks for verbs goes by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, ParamSpec

import pyarrow as pa

from dphh.columns import GROWN, SCORED
from dphh.corpus import Corpus, as_sequences
from dphh.engines.session import Session
from dphh.mechanisms.items import price_items
from dphh.mechanisms.items_levels import items_levels
from dphh.mechanisms.ldp_trie import ldp_trie_takes_for_known, price_ldp_trie
from dphh.mechanisms.ldp_trie_levels import ldp_trie_levels
from dphh.mechanisms.ngrams import price_ngrams
from dphh.mechanisms.ngrams_levels import ngrams_levels
from dphh.mechanisms.released_rows import LevelDone
from dphh.mechanisms.trie import price_trie, trie_takes_for_known
from dphh.mechanisms.trie_levels import trie_levels
from dphh.price import Price, UsersKnown

Options = ParamSpec("Options")
#: How the levels of a price follow one another, with what stands between an item's tokens.
Levels = Callable[[Price, Session, str], Iterator[LevelDone]]


def _as_it_is(corpus: Corpus, _: Price) -> Corpus:
    return corpus


def _nothing(_: Price) -> None:
    return None


@dataclass(frozen=True)
class Verb(Generic[Options]):
    """One verb: its options are the keywords of `price`, whose docstring says what they are."""

    name: str
    price: Callable[Options, Price]
    levels: Levels
    #: The columns of its releases.
    columns: pa.Schema
    #: The corpus as the verb reads it.
    read: Callable[[Corpus, Price], Corpus] = _as_it_is
    #: Whether a run takes the number of users for known, so that how it ends would tell it.
    takes_for_known: Callable[[Price], UsersKnown | None] = _nothing


ITEMS = Verb("items", price_items, items_levels, SCORED)
NGRAMS = Verb("ngrams", price_ngrams, ngrams_levels, SCORED)
TRIE = Verb(
    "trie",
    price_trie,
    trie_levels,
    GROWN,
    read=lambda corpus, price: as_sequences(corpus, price["unit"]),
    takes_for_known=trie_takes_for_known,
)
LDP_TRIE = Verb(
    "ldp_trie",
    price_ldp_trie,
    ldp_trie_levels,
    GROWN,
    read=lambda corpus, _: as_sequences(corpus, 1),
    takes_for_known=ldp_trie_takes_for_known,
)

VERBS: dict[str, Verb[...]] = {verb.name: verb for verb in (ITEMS, NGRAMS, TRIE, LDP_TRIE)}
