"""What the owner may look at: exact counts and how a release compares. None of it may leave."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh import Release, UsageError, evaluate, exact_ngrams
from dphh.columns import SCORED_SCHEMA, SCORES_AND_COUNTS_SCHEMA
from tests.engines.ladders import held_by_user
from tests.engines.levels import few

TEXTS = [(1, "a b a"), (1, "c"), (2, "a b"), (3, "b a"), (4, "b a c")]
#: Whatever may stand inside of a word of a list: separators, escapes, NUL, other scripts.
WORDS = st.one_of(
    st.sampled_from(["a", " ", "\0", "\x1f", "\\s", "\\\\", "\x1f\\", "a b", "b", "\n", "日"]),
    st.text(st.sampled_from("a s\0\x1f\\é"), min_size=1, max_size=3),
)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.lists(WORDS, max_size=6)), min_size=1, max_size=8)


def release_of(*grams):
    """A release made by hand, of these tuples of words."""
    rows = [
        {"level": len(gram), "item": " ".join(gram), "tokens": list(gram), "score": 9.0}
        for gram in grams
    ]
    levels = [{"level": level} for level in range(1, max(map(len, grams)) + 1)]
    manifest = {"run_id": "by hand", "levels": levels}
    return Release(pa.Table.from_pylist(rows, SCORED_SCHEMA), manifest)


@given(rows=ROWS, max_n=st.integers(1, 4), at_least=st.integers(1, 3))
@few(10)
def test_exact_counts_are_the_brute_force_ones(written, rows, max_n, at_least):
    rows = [*rows, (rows[0][0], ["a"])]  # an empty list alone has no type
    corpus = written(rows, text="what", as_="list")
    found = exact_ngrams(corpus, max_n=max_n, at_least=at_least)
    expected = []
    for n in range(1, max_n + 1):
        users = Counter(gram for grams in held_by_user(rows, n).values() for gram in grams)
        expected += [
            (n, " ".join(gram), list(gram), count)
            for gram, count in users.items()
            if count >= at_least
        ]
    table = found.to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in table) == sorted(expected)
    assert len(found) == len(expected)


def test_exact_counts_refuse_to_become_a_release_and_ask_no_ledger(written, tmp_path, own_ledger):
    found = exact_ngrams(written(TEXTS), max_n=2)
    with pytest.raises(UsageError, match="NOT private, not for publication"):
        found.save(tmp_path / "out")
    assert not (tmp_path / "out").exists() and not own_ledger.exists()
    assert not isinstance(found, Release)
    assert "NOT private" in repr(found) and "NOT private" in found.warning


def test_an_item_counted_within_groups_is_one_item(written):
    rows = [
        {"level": 1, "item": gram, "tokens": [gram], "score": 9.0, "group_name": group}
        for gram in "ab"
        for group in ("DE", "US", "other")
    ]
    table = pa.Table.from_pylist(rows, SCORES_AND_COUNTS_SCHEMA)
    grouped = Release(table, release_of(("a",)).manifest)
    corpus = written(TEXTS)
    assert evaluate(grouped, corpus) == evaluate(release_of(("a",), ("b",)), corpus)


def test_an_evaluation_by_hand(written):
    """Users of a: 4, b: 4, c: 2; of "a b": 2, "b a": 3, "a c": 1."""
    release = release_of(("a",), ("b",), ("z",), ("b", "a"), ("b", "b"))
    found = evaluate(release, written(TEXTS), at_least=(1, 2, 3, 100))
    one, two = found.levels
    assert (one.level, one.there, one.released, one.true) == (1, 3, 3, 2)
    assert one.recall == 2 / 3
    assert one.missing_mass == 2 / 10
    assert one.spurious == pytest.approx(1 / 3)
    assert one.coverage == ((1, 2 / 3), (2, 2 / 3), (3, 1.0))
    assert (two.level, two.there, two.released, two.true) == (2, 3, 2, 1)
    assert two.recall == 1 / 3
    assert two.missing_mass == 3 / 6
    assert two.spurious == 0.5
    assert two.coverage == ((1, 1 / 3), (2, 1 / 2), (3, 1.0))
    assert "NOT private, not for publication" in repr(found) and not hasattr(found, "save")
