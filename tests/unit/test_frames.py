"""`frame.dphh` says what the typed functions say, on both kinds of frame, in any import order."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import dphh
from dphh.registry import VERBS
from dphh.testing import SeededRandomness

FRAME = pl.DataFrame({"who": range(300), "what": ["a b", "a b c", "b"] * 100})
COST = {"epsilon": 4.0, "delta": 1e-3}
ASKED = {
    "items": {"max_items": 3, "method": "sips"},
    "ngrams": {"max_n": 2, "method": "dpne", "pruning": "single", "decay": 0.9},
    "trie": {"max_length": 3, "choice": "most-frequent"},
}


@pytest.mark.parametrize("kind", ["frame", "lazy"])
@pytest.mark.parametrize("verb", ASKED)
def test_a_namespaces_verb_is_the_typed_function(verb, kind):
    source = FRAME if kind == "frame" else FRAME.lazy()
    plan = getattr(source.dphh, verb)(
        user="who", text="what", lower=True, account=None, **COST, **ASKED[verb]
    )
    corpus = dphh.Corpus(FRAME, user="who", text="what", lower=True)
    typed = getattr(dphh, verb)(corpus, **COST, **ASKED[verb])
    assert plan.events == typed.events
    assert plan.parameters == typed.parameters
    assert plan.corpus.content == typed.corpus.content
    one, two = (each.run(randomness=SeededRandomness(1), engine="polars") for each in (plan, typed))
    assert one.to_arrow() == two.to_arrow()
    assert len(one) > 0


@pytest.mark.parametrize("verb", VERBS)
def test_a_namespaces_verb_takes_the_options_of_the_function_and_of_a_corpus(verb):
    of_corpus = dict(inspect.signature(dphh.Corpus).parameters)
    # `unit` is the verb's; a connection goes with the name of a table.
    for other in ("source", "connection", "unit"):
        del of_corpus[other]
    taken = inspect.signature(getattr(FRAME.dphh, verb)).parameters
    options = {**of_corpus, **VERBS[verb].options}
    assert {name: each.default for name, each in taken.items()} == {
        name: each.default for name, each in options.items()
    }
