"""Which public sequences stand in users' texts: against looking at every text word by word."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from dphh.privacy.counts import Weighing
from dphh.udfs.kernel.given_grams import END, GivenGrams, counted

WORDS = "abcdef"


def sums(users, given, weighing, groups=None):
    """What users of texts add to all keys, by way of each text's own keys."""
    texts = pa.array([text for texts in users for text in texts], pa.list_(pa.string()))
    of_texts = None if groups is None else np.array([group for of in groups for group in of])
    lengths, keys = given.keys(texts, of_texts)
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


def looked_up(users, sequences, weighing, groups=None, in_all=1):
    """The same sums, one user and one sequence at a time."""
    sums = np.zeros(weighing.keys + weighing.octaves, np.int64)
    for user, texts in enumerate(users):
        of = groups[user] if groups else [0] * len(texts)
        held = {
            place * in_all + group
            for place, sequence in enumerate(sequences)
            for text, group in zip(texts, of, strict=True)
            if stands_in(sequence, text)
        }
        sums[sorted(held)] += weighing.weights[len(held)]
        if len(held) > weighing.most:
            octave = next(j for j in range(1, 60) if len(held) <= weighing.most << j)
            sums[weighing.keys + octave - 1] += weighing.reports[len(held)]
    return sums


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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [2, 100])
def test_sums_are_those_of_looking_at_each_user(seed, most):
    users, sequences = some(seed)
    weighing = Weighing(len(sequences), most, 10)
    found = sums(users, GivenGrams(sequences), weighing)
    assert found.tolist() == looked_up(users, sequences, weighing).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_within_groups_a_user_of_several_counts_in_each_within_one_norm(seed):
    users, sequences = some(seed)
    rng = random.Random(seed)
    groups = [[rng.randrange(3) for _ in texts] for texts in users]
    weighing = Weighing(3 * len(sequences), 4, 10)
    found = sums(users, GivenGrams(sequences, 3), weighing, groups)
    assert found.tolist() == looked_up(users, sequences, weighing, groups, 3).tolist()


def test_no_sequence_runs_from_one_text_or_user_into_the_next():
    users = [[["a"], ["b"]], [["a"]], [["b"]], [["x", "a", "b"]], [["a", "x", "b"]]]
    assert sums(users, GivenGrams([("a", "b")]), Weighing(1, 1, 0)).tolist() == [1]


def test_a_sequence_need_not_have_its_parts_among_those_given():
    users = [[list("abac")], [list("aba")], [list("ababac")]]
    given = GivenGrams([("a", "b", "a", "c"), ("b",)])
    assert sums(users, given, Weighing(2, 2, 0)).tolist() == [2, 3]


def test_whoever_comes_or_goes_moves_the_sums_by_the_priced_norm_at_most():
    users, sequences = some(4)
    everything = [list(word) for word in sequences] + [list("abcdef" * 50)]
    weighing, given = Weighing(len(sequences), 5, 10), GivenGrams(sequences)
    without = sums(users, given, weighing)
    for extra in (everything, [[]], [["a"]], users[0]):
        moved = sums([*users, extra], given, weighing) - without
        assert int(moved @ moved) <= 5 * 4**10


def test_texts_of_nothing_hold_nothing():
    lengths, keys = GivenGrams([("a",)]).keys(pa.array([[], None, [None]], pa.list_(pa.string())))
    assert lengths.tolist() == [0, 0, 0] and len(keys) == 0
    assert counted(Weighing(1, 1, 0), lengths, keys)[0].tolist() == []


@pytest.mark.parametrize("seed", range(3))
def test_many_steps_are_looked_up_otherwise_than_few_with_the_same_result(monkeypatch, seed):
    users, sequences = some(seed)
    weighing = Weighing(len(sequences), 3, 10)
    few = sums(users, GivenGrams(sequences), weighing)
    monkeypatch.setattr("dphh.udfs.kernel.given_grams.TABLE", 0)
    assert sums(users, GivenGrams(sequences), weighing).tolist() == few.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_of_beginnings_a_text_holds_those_it_begins_with_and_the_whole_of_it(seed):
    users, sequences = some(seed)
    asked = [*sequences, *((*sequence, END) for sequence in sequences)]
    weighing = Weighing(len(asked), 100, 10)

    def holds(text, sequence):
        kept = tuple(token for token in text if token)
        whole = sequence[-1] == END
        return kept == sequence[:-1] if whole else kept[: len(sequence)] == sequence

    expected = [
        sum(any(holds(text, sequence) for text in texts) for texts in users) * 2**10
        for sequence in asked
    ]
    assert sums(users, GivenGrams(asked, beginnings=True), weighing)[: len(asked)].tolist() == (
        expected
    )
    assert any(expected)
