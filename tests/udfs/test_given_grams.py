"""Which public sequences stand in users' texts: against looking at every text word by word."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import GivenGrams, counted

WORDS = "abcdef"


def sums(users, given, weighing):
    """What users of texts add to all keys, by way of each text's own keys."""
    texts = pa.array([text for texts in users for text in texts], pa.list_(pa.string()))
    lengths, keys = given.keys(texts, None)
    ends = np.cumsum([len(texts) for texts in users])
    of_users = np.diff(np.append(0, np.cumsum(lengths))[np.append(0, ends)])
    found = np.zeros(weighing.keys + weighing.octaves, np.int64)
    places, added = counted(weighing, of_users, keys)
    found[places] = added
    return found


def stands_in(sequence, text):
    text = [word for word in text if word]
    length = len(sequence)
    return any(tuple(text[i : i + length]) == sequence for i in range(len(text) - length + 1))


def some(seed, users=40):
    rng = random.Random(seed)
    words = [*WORDS, "", None]
    texts = [
        [
            rng.choices(words, k=rng.choice([0, 1, 2, 5, 12]))
            for _ in range(rng.choice([1, 1, 2, 4]))
        ]
        for _ in range(users)
    ]
    sequences = {tuple(rng.choices("abcdz", k=rng.choice([1, 1, 2, 3, 4]))) for _ in range(25)}
    return texts, sorted(sequences)


@pytest.mark.parametrize("table", [0, 10**9])
@pytest.mark.parametrize("seed", range(5))
def test_users_add_to_all_that_stands_in_a_text_of_theirs(monkeypatch, seed, table):
    """Whether steps are looked up in a table or, where they are many, searched for."""
    monkeypatch.setattr("dphh.udfs.kernel.given_grams.TABLE", table)
    users, sequences = some(seed)
    weighing = Weighing(len(sequences), 100, 10)  # nobody holds so many
    wanted = [
        sum(any(stands_in(sequence, text) for text in texts) for texts in users) << 10
        for sequence in sequences
    ]
    assert any(wanted)
    assert sums(users, GivenGrams(sequences), weighing).tolist() == wanted


def test_no_sequence_runs_from_one_text_or_user_into_the_next():
    users = [[["a"], ["b"]], [["a"]], [["b"]], [["x", "a", "b"]], [["a", "x", "b"]]]
    assert sums(users, GivenGrams([("a", "b")]), Weighing(1, 1, 0)).tolist() == [1]
