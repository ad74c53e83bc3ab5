"""Options that no verb has are told in dphh's words, with the nearest name."""

from __future__ import annotations

from inspect import signature
from typing import Any

import polars as pl
import pytest

import dphh
from dphh import UsageError

ITEMS: Any = dphh.items  # type checkers find these too
TRIE: Any = dphh.trie
NGRAMS: Any = dphh.ngrams


def test_an_unknown_option_is_told_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"^epsilom: items has no such option; did you mean 'eps"):
        ITEMS(epsilom=1.0, delta=1e-8)
    with pytest.raises(UsageError, match=r"^zzz: trie has no such option; It has epsilon"):
        TRIE(zzz=1)


def test_what_is_wanting_is_told():
    with pytest.raises(UsageError, match=r"^max_n, delta: ngrams needs a value for each"):
        NGRAMS(epsilon=1.0)


def test_of_frames_too():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    with pytest.raises(UsageError, match=r"^txt: items has no such option; did you mean 'text'"):
        frame.dphh.items(user="who", txt="what", epsilon=1.0, delta=1e-8)
    with pytest.raises(UsageError, match=r"^source: items has no such option"):
        frame.dphh.items(source="x", user="who", epsilon=1.0, delta=1e-8)
    assert frame.dphh.items(user="who", text="what", epsilon=1.0, delta=1e-8).corpus is not None


def test_a_frames_verbs_complete_their_options_and_have_a_typed_door():
    frame = pl.DataFrame({"who": [1], "what": ["a"]})
    options = signature(frame.dphh.ngrams).parameters
    assert {"user", "text", "max_n", "epsilon", "delta", "max_items"} <= options.keys()
    assert options["max_items"].default == signature(dphh.ngrams).parameters["max_items"].default
    asked = {"user": "who", "text": "what", "epsilon": 1.0, "delta": 1e-8}
    door: Any = dphh.on(frame)
    assert door.items(**asked).price == frame.dphh.items(**asked).price
