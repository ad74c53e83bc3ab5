"""`frame.dphh` says what the typed functions say, on both kinds of frame, in any import order."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import dphh
from dphh.registry import VERBS

FRAME = pl.DataFrame({"who": range(300), "what": ["a b", "a b c", "b"] * 100})


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()])
def test_a_namespaces_verb_is_the_typed_function(frame):
    cost = {"epsilon": 4.0, "delta": 1e-3, "max_n": 2, "decay": 0.9, "method": "dpne"}
    plan = frame.dphh.ngrams(user="who", text="what", lower=True, account=None, **cost)
    typed = dphh.ngrams(dphh.Corpus(frame, user="who", text="what", lower=True), **cost)
    assert plan.dumps() == typed.dumps()
    assert {row["item"] for row in plan.run()} >= {"a", "b", "a b"}


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
