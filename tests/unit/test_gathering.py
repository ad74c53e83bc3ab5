"""Texts that lie side by side, in tables that end anywhere, become rows of whole users."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh.udfs.gathering import Reading, rows_of_users, whole_users
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


def rows(parts: list[pa.Table], reading: Reading) -> list[list[str | None]]:
    vocabulary = Vocabulary()
    made = [rows_of_users(texts, vocabulary, reading) for texts in whole_users(parts)]
    codes = [row for table in made for row in table.column("codes").to_pylist()]
    return [[*vocabulary.spelled(row).to_pylist()] if row else [] for row in codes]


@settings(deadline=None, max_examples=50)
@given(users=USERS, cuts=st.lists(st.integers(0, 20), max_size=3))
def test_a_user_is_one_row_wherever_the_tables_end(users, cuts):
    texts = laid_out(users)
    ends = [0, *sorted(min(cut, texts.num_rows) for cut in cuts), texts.num_rows]
    parts = [texts.slice(a, b - a) for a, b in pairwise(ends)]
    words = [[word for text in user for word in text if word] for user in users]
    assert rows(parts, Reading()) == [row for row in words if row]


def test_the_ends_of_texts_stay_where_they_are_asked_for():
    texts = laid_out([[["a", "b"], [], ["a"]], [[""], []], [["b"]]])
    found = rows_of_users(texts, Vocabulary(), Reading(ends=True))
    assert found.column("codes").to_pylist() == [[0, 1, -1, -1, 0, -1], [1, -1]]


def test_texts_that_come_in_another_order_are_refused():
    texts = laid_out([[["a"]], [["b"], ["a"]]])
    for misplaced in ([1, 0, 2], [0, 2], [0, 1, 1, 2]):
        with pytest.raises(RuntimeError, match="out of order"):
            list(whole_users([texts.take(misplaced)]))
