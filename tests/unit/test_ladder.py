"""The ladder against plain enumeration of the valid grams, as tuples of words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.mechanisms.ngrams.ladder.rungs import (
    ValidGrams,
    first_rung,
    next_rung,
    spelled,
    valid_grams,
)

WORDS = [f"w{i}" for i in range(5)]
SOME = settings(max_examples=40, deadline=None)
PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])


def enumerated(below, words, pruning):
    """V_k by its definition."""
    level = len(next(iter(below))) + 1 if below else 0
    return {
        gram
        for gram in product(sorted(words), repeat=level)
        if gram and gram[:-1] in below and (pruning == "single" or gram[1:] in below)
    }


@st.composite
def released_sets(draw, pruning, top=4):
    """S_1, S_2, ..., each some of the grams that the one before makes valid."""
    words = draw(st.sets(st.sampled_from(WORDS)))
    sets = [{(word,) for word in words}]
    for _ in range(2, draw(st.integers(2, top)) + 1):
        valid = sorted(enumerated(sets[-1], words, pruning))
        sets.append(draw(st.sets(st.sampled_from(valid))) if valid else set())
    return sets


def climbed(sets, pruning):
    """The rungs of these sets, made as a run makes them; and each gram's number, by its words."""
    vocabulary = pa.array(sorted(word for (word,) in sets[0]), pa.string())
    rungs = [first_rung(len(vocabulary))]
    for chosen in sets[1:]:
        valid = valid_grams(rungs[-1], rungs[0], pruning)
        keys = valid.keys(np.arange(len(valid), dtype=np.int64))
        spell = in_words(next_rung(rungs[-1], rungs[0], keys, pruning), vocabulary)
        kept = [key for key, gram in zip(keys.tolist(), spell, strict=True) if gram in chosen]
        above = np.array(sorted(kept), dtype=np.int64)
        rungs.append(next_rung(rungs[-1], rungs[0], above, pruning))
    return rungs, vocabulary


def in_words(rung, vocabulary):
    _, tokens = spelled(rung, vocabulary, " ")
    return [tuple(gram) for gram in tokens.to_pylist()]


@PRUNINGS
@given(data=st.data())
@SOME
def test_each_index_is_another_valid_gram_and_every_valid_gram_has_one(pruning, data):
    sets = data.draw(released_sets(pruning))
    rungs, vocabulary = climbed(sets, pruning)
    words = {word for (word,) in sets[0]}
    for rung, below in zip(rungs, sets, strict=True):
        valid = valid_grams(rung, rungs[0], pruning)
        keys = valid.keys(np.arange(len(valid), dtype=np.int64))
        assert len(set(keys.tolist())) == len(valid)
        found = in_words(next_rung(rung, rungs[0], np.sort(keys), pruning), vocabulary)
        assert sorted(found) == sorted(enumerated(below, words, pruning))


def test_more_grams_than_could_be_written_down_have_keys_of_their_own():
    many = 2**31 - 1  # as many words as a key has room for
    first = first_rung(3)
    beyond = ValidGrams(
        ending=np.array([many - 1]),
        beginning=np.array([many - 1]),
        begins=np.array([1]),
        starts_ending=np.array([0]),
        starts_beginning=np.array([0]),
        cumulative=np.array([1]),
    )
    (key,) = beyond.keys(np.array([0])).tolist()
    assert divmod(key, 2**32) == (many - 1, many - 1)
    words = first_rung(70_000)
    valid = valid_grams(words, words, "both")
    assert len(valid) == 70_000**2
    ends = valid.keys(np.array([0, 70_000, 70_000**2 - 1])).tolist()
    assert [divmod(key, 2**32) for key in ends] == [(0, 0), (1, 0), (69_999, 69_999)]
    assert len(valid_grams(first, words, "single")) == 210_000
