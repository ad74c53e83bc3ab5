"""What one user can change in a round, exactly; and what the two rounds tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.mechanisms.ngrams.ladder.rungs import PAIR
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram
from dphh.udfs.kernel.whole_users import weighed
from tests.forecast.rounds_in_arrays import Rule

WORDS = 6
KEYS = np.array([a << PAIR | b for a in range(WORDS) for b in range(WORDS)])
Lists = list[list[int]]
lists_of_users = st.lists(st.lists(st.integers(0, WORDS * WORDS - 1)), max_size=6)
units = st.integers(1, 5_000)


def sums(users: Lists, rule: Rule) -> dict[int, int]:
    """What the product's kernel makes of users' lists of grams."""
    user_hashes, lengths = [[*range(len(users))]], [[len(user) for user in users]]
    held = [[key for user in users for key in KEYS[user].tolist()]]
    lists = pa.list_(pa.int64())
    found = weighed(
        pa.array(user_hashes, lists), pa.array(lengths, lists), pa.array(held, lists), rule
    )
    added: dict[int, int] = {}
    for row in found.flatten().to_pylist():
        added[row["key"]] = added.get(row["key"], 0) + row["weight"]
    return added


def moved(users: Lists, more: list[int], rule: Rule) -> int:
    """The squared L2 distance of the sums of neighbours: with one more user, and without."""
    one, other = sums([*users, more], rule), sums(users, rule)
    return sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())


everything = list(range(WORDS * WORDS))


@given(lists_of_users, st.lists(st.sampled_from(everything)), units)
def test_a_user_moves_round_1_by_the_unit_at_most(users: Lists, more: list[int], unit: int) -> None:
    for their in (more, more[:1], everything, []):
        assert moved(users, their, PlainWeights(unit)) <= unit**2
    assert moved(users, [], PlainWeights(unit)) == 0


@settings(max_examples=50)
@given(lists_of_users, st.lists(st.sampled_from(everything)), units, st.integers(0, 9))
def test_a_user_moves_round_2_by_the_unit_at_most(
    users: Lists, more: list[int], unit: int, seed: int
) -> None:
    """Whatever the weights."""
    weights = np.random.default_rng(seed).integers(1, 3_500, len(KEYS))
    rule = WeightsByGram(unit, Released(KEYS), weights)
    for their in (more, more[:1], everything, []):
        assert moved(users, their, rule) <= unit**2


def test_round_2_refuses_a_gram_that_round_1_did_not_name() -> None:
    """Its weight would depend on who else holds it."""
    rule = WeightsByGram(900, Released(KEYS[::2]), np.full(len(KEYS[::2]), 64))
    assert sums([[0, 2, 4]], rule)
    with pytest.raises(RuntimeError, match="was not there in round 1"):
        sums([[0, 1]], rule)


def test_round_1_names_every_gram_that_somebody_holds_whatever_it_weighs() -> None:
    """At a unit of 5 who holds 36 grams gives each of them 0."""
    assert sums([everything], PlainWeights(5)).keys() >= set(KEYS.tolist())
    assert max(sums([everything], PlainWeights(5)).values()) == 0


@pytest.mark.parametrize(("weight", "is_taken"), [(4_095, True), (4_096, False), (2**23, False)])
def test_weights_whose_squares_could_overflow_are_refused(weight: int, is_taken: bool) -> None:
    weights = np.array([1, weight], dtype=np.int64)
    if is_taken:
        WeightsByGram(1024, Released(KEYS[:2]), weights)
        return
    with pytest.raises(ValueError, match="below 4,096"):
        WeightsByGram(1024, Released(KEYS[:2]), weights)
