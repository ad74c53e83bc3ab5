"""`release.top(k)`: the heaviest of what was released, and no more of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dphh import Release, UsageError
from dphh.columns import COLUMNS
from tests.report.made import ladder

MANIFEST = {"run_id": "one", "verb": "ngrams", "privacy": {"epsilon": 1.0, "delta": 1e-6}}


def release(rows, *more):
    names = ["level", "item", "tokens", *more]
    columns = [[row[0], row[1], row[1].split(), *row[2:]] for row in rows]
    schema = pa.schema([(name, COLUMNS[name]) for name in names])
    made = [dict(zip(names, row, strict=True)) for row in columns]
    return Release(pa.Table.from_pylist(made, schema=schema), MANIFEST)


def items(found):
    return [row["item"] for row in found]


WORDS = release(
    [(1, "b", 9.0), (1, "a", 8.0), (1, "c", 7.0), (2, "b a", 99.0), (2, "a b", 98.0)], "score"
)


@pytest.mark.parametrize(
    "k, expected",
    [
        (1, ["b"]),
        (3, ["b", "a", "b a"]),
        (4, ["b", "a", "b a", "a b"]),
        (99, ["b", "a", "c", "b a", "a b"]),
    ],
)
def test_lengths_take_turns_as_their_scores_do_not_compare(k, expected):
    found = WORDS.top(k)
    assert items(found) == expected
    assert found.manifest == {**MANIFEST, "top": k}
    assert len(WORDS) == 5 and "top" not in WORDS.manifest


def test_people_go_before_scores_where_they_were_counted():
    rows = [(1, "b", 9.0, 3), (1, "a", 8.0, 5), (1, "c", 7.0, None), (1, "d", 6.0, 5)]
    assert items(release(rows, "score", "users").top(3)) == ["a", "d", "b"]
    uncounted = [(*row[:3], None) for row in rows]
    assert items(release(uncounted, "score", "users").top(2)) == ["b", "a"]


def test_a_release_that_weighs_nothing_has_no_top():
    with pytest.raises(UsageError, match="neither scores nor counts"):
        release([(1, "a", None)], "score").top(1)
    assert items(release([], "score").top(1)) == []


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3"])
def test_how_many_is_a_whole_number(k):
    with pytest.raises(UsageError, match="k: found"):
        WORDS.top(k)


def test_the_first_of_a_release_are_not_said_to_be_all_that_was_found():
    first = ladder().top(2)
    assert "the first 2 of the 11 found by ngrams" in repr(first)
    assert "11 found by ngrams" in repr(ladder())
