"""What users give to the words that earlier rounds left, whoever else is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from dphh.udfs.kernel import contributions as kernel
from dphh.udfs.kernel.contributions import Followed, Weigh, equal_weights
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram
from dphh.udfs.kernel.whole_users import unreleased, weighed
from dphh.udfs.kernel.words import numbers_of
from dphh.udfs.text.vocabulary import Vocabulary

#: For each row, the users: a user hash, and the words at the user's positions, by number; -1 ends a
#: text.
Rows = list[list[tuple[int, list[int]]]]
WORDS = [f"w{number}" for number in range(40)]


def made_rows(seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    names = iter(range(1, 1000))
    sizes = [0, 1, 4, 30, 300]
    return [
        [
            (next(names), rng.integers(-1, len(WORDS), rng.choice(sizes)).tolist())
            for _ in range(rng.choice([0, 0, 1, 3, 7]))
        ]
        for _ in range(40)
    ]


def numbered() -> Vocabulary:
    vocabulary = Vocabulary()
    assert vocabulary.ids(pa.array(WORDS)).tolist() == [*range(len(WORDS))]
    return vocabulary


def left(ids: list[list[int]], released: Sequence[str]) -> list[list[int]]:
    words = numbered()
    known = numbers_of(pa.array(released, pa.string())).by_id(words) if released else None
    found = unreleased(pa.array(ids, pa.list_(pa.int32())), words, known)
    return [*found.to_pylist()]


def test_what_any_earlier_round_released_is_left_out_and_all_positions_stay():
    ids = [[0, 1, 2, -1, 1], [], [39, 39, -1]]
    assert left(ids, []) == ids
    assert left(ids, ["w1", "nobody's"]) == [[0, -1, 2, -1, -1], [], [39, 39, -1]]
    assert left(ids, ["w1", "nobody's", "w39"]) == [[0, -1, 2, -1, -1], [], [-1, -1, -1]]


UNIT, MOST = 1 << 10, 4
NUMBERS = np.arange(len(WORDS))
#: What a user gives a key, and whether keys that get nothing are named too.
RULES: dict[str, Weigh] = {
    "equal": equal_weights(MOST, 10, salt=3),
    "equal, of rounds": equal_weights(MOST, 10, salt=3, keeps_zeros=True),
    "followed": Followed(UNIT, MOST, 3, 1 + NUMBERS * 997 % 1000),
    "plain": PlainWeights(UNIT),
    "shared": WeightsByGram(UNIT, Released(NUMBERS), NUMBERS * 31 % 50),
}


def given(rows: Rows, rule: Weigh, released: set[int]) -> Counter[int]:
    """What users give to what is left of their words."""
    before = [WORDS[number] for number in released]
    integers = pa.list_(pa.int64())
    added = weighed(
        pa.array([[name for name, _ in row] for row in rows], integers),
        pa.array([[len(ids) for _, ids in row] for row in rows], pa.list_(pa.int32())),
        pa.array(
            left([[word for _, ids in row for word in ids] for row in rows], before), integers
        ),
        rule,
    )
    found: Counter[int] = Counter()
    for pair in added.flatten().to_pylist():
        found[pair["key"]] += pair["weight"]  # also 0: a key that is named
    return found


@pytest.mark.parametrize("piece", [1, 50, 1 << 16])
@pytest.mark.parametrize("rule", RULES)
def test_users_give_what_each_of_them_gives_alone_to_what_is_left(monkeypatch, piece, rule):
    """A user who comes or goes changes the sums by what they give alone, within the norm; and a
    word that was released is as one that nobody ever had."""
    monkeypatch.setattr(kernel, "PIECE", piece)
    rows = made_rows(9)
    users = [user for row in rows for user in row]
    for released in (set(), {0, *range(1, 40, 3)}, {*range(38)}, {*range(40)}):
        without = [
            [(name, [-1 if word in released else word for word in ids]) for name, ids in row]
            for row in rows
        ]
        together = given(rows, RULES[rule], released)
        assert together == given(without, RULES[rule], set())
        assert not released & together.keys()
        alone = [given([[user]], RULES[rule], released) for user in users]
        added_up: Counter[int] = Counter()
        for (_, ids), of_user in zip(users, alone, strict=True):
            added_up.update(of_user)
            held = {*ids} - {-1, *released}
            some = {word for word in of_user if word >= 0}
            assert some <= held
            assert sum(weight**2 for weight in of_user.values()) <= UNIT**2
            if getattr(RULES[rule], "keeps_zeros", False):
                assert some == held
            if held and rule != "shared":  # most of the norm, whatever was released
                assert sum(weight**2 for weight in of_user.values()) > 0.6 * UNIT**2
        assert added_up == together
        assert added_up.keys() == together.keys()
