"""Rows of what users hold, beside sets of Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dphh.udfs.kernel import contributions as kernel
from dphh.udfs.kernel.contributions import Followed, Weigh, contributions_of_held, equal_weights
from dphh.udfs.kernel.held import held_of_rows, rows_of_held, without
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram

#: A key is a number below 2^31 or a pair of such.
RIGHT_SIGN = 1 << 31
#: For each row, the users: a user hash, and the keys at the user's positions.
Rows = list[list[tuple[int, list[int]]]]


def made_rows(seed: int, largest: int) -> Rows:
    rng = np.random.default_rng(seed)
    rows: Rows = []
    name = 0
    for _ in range(40):
        users = int(rng.choice([0, 0, 1, 3, 7]))
        row = []
        for _ in range(users):
            name += 1
            size = int(rng.choice([0, 1, 4, 30, 300]))
            keys = rng.integers(-1, largest, size)
            row.append((name, np.where(keys < 0, -1, keys & ~RIGHT_SIGN).tolist()))
        rows.append(row)
    return rows


def columns(rows: Rows, kind: pa.DataType) -> tuple[pa.Array, pa.Array, pa.Array]:
    return (
        pa.array([[name for name, _ in row] for row in rows], pa.list_(pa.int64())),
        pa.array([[len(keys) for _, keys in row] for row in rows], pa.list_(pa.int32())),
        pa.array([[key for _, keys in row for key in keys] for row in rows], pa.list_(kind)),
    )


def expected(rows: Rows) -> set[tuple[int, int]]:
    return {(name, key) for row in rows for name, keys in row for key in keys if key >= 0}


def pairs(made: pa.StructArray) -> list[tuple[int, int]]:
    return [
        (row["user_hashes"][owner], key)
        for row in made.to_pylist()
        for key, owner in zip(row["keys"], row["owners"], strict=True)
    ]


@pytest.mark.parametrize("piece", [1, 50, 1 << 16])
@pytest.mark.parametrize(
    ("kind", "largest"), [(pa.int32(), 40), (pa.int64(), 1 << 40), (pa.int64(), 1 << 62)]
)
def test_a_user_holds_each_of_their_keys_once(monkeypatch, piece, kind, largest):
    """However users are divided; also where many pieces begin in one row, and where a user's index
    has one bit."""
    monkeypatch.setattr(kernel, "PIECE", piece)
    for seed in range(5):
        rows = made_rows(seed, largest)
        made = rows_of_held(*columns(rows, kind))
        assert len(made) == len(rows)
        assert made.type.field("keys").type == pa.list_(kind)
        found = pairs(made)
        assert Counter(found) == Counter(expected(rows))
        holders = [name for row in made.to_pylist() for name in row["user_hashes"]]
        assert holders == sorted({name for name, _ in expected(rows)})


def test_rows_give_the_pieces_back():
    rows = made_rows(7, 40)
    made = rows_of_held(*columns(rows, pa.int32()))
    found = []
    for held in held_of_rows(*(made.field(name) for name in ("user_hashes", "keys", "owners"))):
        assert np.array_equal(np.bincount(held.owner, minlength=len(held.number)), held.number)
        found += zip(held.user_hashes[held.owner].tolist(), held.keys.tolist(), strict=True)
    assert Counter(found) == Counter(expected(rows))


def test_dropped_keys_leave_their_users():
    rows = made_rows(8, 40)
    made = rows_of_held(*columns(rows, pa.int32()))
    left = without(made.field("keys"), made.field("owners"), lambda keys: keys % 3 == 0)
    both = [made.field("user_hashes"), left.field("keys"), left.field("owners")]
    again = pa.StructArray.from_arrays(both, ["user_hashes", "keys", "owners"])
    assert set(pairs(again)) == {pair for pair in expected(rows) if pair[1] % 3}
    gone = without(made.field("keys"), made.field("owners"), lambda keys: keys >= 0)
    assert gone.to_pylist() == [{"keys": [], "owners": []}] * len(rows)


def test_no_rows_and_no_keys():
    assert len(rows_of_held(*columns([], pa.int32()))) == 0
    nobody = rows_of_held(*columns([[], [(1, [])], [(2, [-1, -1])]], pa.int32()))
    assert nobody.to_pylist() == [{"user_hashes": [], "keys": [], "owners": []}] * 3
    assert not [*held_of_rows(*(nobody.field(name) for name in ("user_hashes", "keys", "owners")))]


UNIT, MOST = 1 << 10, 4
GRAMS = np.arange(40)
#: What a user gives a key, and whether keys that get nothing are named too.
RULES: dict[str, Weigh] = {
    "equal": equal_weights(MOST, 10, salt=3),
    "equal, of rounds": equal_weights(MOST, 10, salt=3, keeps_zeros=True),
    "followed": Followed(UNIT, MOST, 3, 1 + GRAMS * 997 % 1000),
    "plain": PlainWeights(UNIT),
    "shared": WeightsByGram(UNIT, Released(GRAMS), GRAMS * 31 % 50),
}


def given(rows: Rows, rule: Weigh, released: set[int]) -> Counter[int]:
    """What users give to what is left of their keys."""
    made = rows_of_held(*columns(rows, pa.int64()))
    names, keys, owners = (made.field(name) for name in ("user_hashes", "keys", "owners"))
    left = without(keys, owners, lambda held: np.isin(held, [*released]))
    held = held_of_rows(names, left.field("keys"), left.field("owners"))
    found: Counter[int] = Counter()
    for key, weight in zip(*map(np.ndarray.tolist, contributions_of_held(held, rule)), strict=True):
        found[key] += weight  # also 0: a key that is named
    return found


@pytest.mark.parametrize("piece", [1, 50, 1 << 16])
@pytest.mark.parametrize("rule", RULES)
def test_users_give_what_each_of_them_gives_alone_to_what_is_left(monkeypatch, piece, rule):
    """A user who comes or goes changes the sums by what they give alone, within the norm; and a
    key that was released is as one that nobody ever had."""
    monkeypatch.setattr(kernel, "PIECE", piece)
    rows = made_rows(9, 40)
    users = [user for row in rows for user in row]
    for released in (set(), {0, *range(1, 40, 3)}, {*range(38)}, {*range(40)}):
        left = [
            [(name, [-1 if key in released else key for key in keys]) for name, keys in row]
            for row in rows
        ]
        together = given(rows, RULES[rule], released)
        assert together == given(left, RULES[rule], set())
        assert not released & together.keys()
        alone = [given([[user]], RULES[rule], released) for user in users]
        added_up: Counter[int] = Counter()
        for (_, keys), of_user in zip(users, alone, strict=True):
            added_up.update(of_user)
            held = {*keys} - {-1, *released}
            some = {key for key in of_user if key >= 0}
            assert some <= held
            assert sum(weight**2 for weight in of_user.values()) <= UNIT**2
            if getattr(RULES[rule], "keeps_zeros", False):
                assert some == held
            if held and rule != "shared":  # most of the norm, whatever was released
                assert sum(weight**2 for weight in of_user.values()) > 0.6 * UNIT**2
        assert added_up == together
        assert added_up.keys() == together.keys()
