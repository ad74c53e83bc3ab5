"""Texts that lie side by side, in tables that end anywhere, become rows of whole users."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.udfs.gathering import Reading, keys_of_users, rows_of_users, whole_users
from dphh.udfs.given_grams import GivenGrams
from dphh.udfs.vocabulary import Vocabulary

USERS = st.lists(st.lists(st.lists(st.sampled_from(["a", "b", "é", ""]), max_size=3), min_size=1))


def laid_out(users: list[list[list[str]]]) -> pa.Table:
    texts = [text for user in users for text in user]
    first = [place == 0 for user in users for place in range(len(user))]
    names = [f"user {i}" if is_first else None for i, is_first in enumerate(first)]
    return pa.table(
        {
            "place": np.arange(1, len(texts) + 1),
            "is_first": pa.array(first, pa.bool_()),
            "name": pa.array(names, pa.string()),
            "tokens": pa.array(texts, pa.list_(pa.string())),
        }
    )


def cut(texts: pa.Table, cuts: list[int]) -> list[pa.Table]:
    ends = [0, *sorted(min(cut, texts.num_rows) for cut in cuts), texts.num_rows]
    return [texts.slice(a, b - a) for a, b in pairwise(ends)]


def rows(parts: list[pa.Table], reading: Reading) -> list[list[str | None]]:
    vocabulary = Vocabulary()
    made = [rows_of_users(texts, vocabulary, reading) for texts in whole_users(parts)]
    codes = [row for table in made for row in table.column("codes").to_pylist()]
    return [[*vocabulary.spelled(row).to_pylist()] if row else [] for row in codes]


@settings(deadline=None, max_examples=50)
@given(users=USERS, cuts=st.lists(st.integers(0, 20), max_size=3))
def test_a_user_is_one_row_wherever_the_tables_end(users, cuts):
    texts = laid_out(users)
    parts = cut(texts, cuts)
    words = [[word for text in user for word in text if word] for user in users]
    assert rows(parts, Reading()) == [row for row in words if row]


@settings(deadline=None, max_examples=50)
@given(users=USERS, cuts=st.lists(st.integers(0, 20), max_size=3), grouped=st.booleans())
def test_given_items_are_held_by_a_user_wherever_the_tables_end(users, cuts, grouped):
    names = ["DE", None, "FR", "else"]
    numbers = [0, 2, 1, 2]
    texts = laid_out(users)
    of_texts = [place % 4 for place in range(texts.num_rows)]
    column = pa.array([names[of_text] for of_text in of_texts], pa.string())
    texts = texts.append_column("group_name", column)
    items, groups = [("a",), ("a", "b")], ("DE", "FR") if grouped else ()
    expected, at = [], 0
    for user in users:
        held = set()
        for text in user:
            group = numbers[of_texts[at]] if grouped else 0
            spelled = "".join(text)
            held |= {k * (3 if grouped else 1) + group for k in (0, 1) if "ab"[: k + 1] in spelled}
            at += 1
        expected += [sorted(held)] if held else []
    given_items = GivenGrams(items, 3 if grouped else 1)
    found = [keys_of_users(whole, given_items, groups) for whole in whole_users(cut(texts, cuts))]
    made = [sorted(set(row)) for table in found for row in table.column("keys").to_pylist()]
    assert made == expected


def test_the_ends_of_texts_stay_where_they_are_asked_for():
    texts = laid_out([[["a", "b"], [], ["a"]], [[""], []], [["b"]]])
    found = rows_of_users(texts, Vocabulary(), Reading(ends=True))
    assert found.column("codes").to_pylist() == [[0, 1, -1, -1, 0, -1], [1, -1]]


def test_texts_that_come_in_another_order_are_refused():
    texts = laid_out([[["a"]], [["b"], ["a"]]])
    for misplaced in ([1, 0, 2], [0, 2], [0, 1, 1, 2]):
        with pytest.raises(RuntimeError, match="out of order"):
            list(whole_users([texts.take(misplaced)]))
