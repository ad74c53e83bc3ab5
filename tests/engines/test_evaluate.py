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


@given(rows=ROWS, max_n=st.integers(1, 4))
@few(10)
def test_exact_counts_are_the_brute_force_ones(written, rows, max_n):
    rows = [*rows, (rows[0][0], ["a"])]  # an empty list alone has no type
    corpus = written(rows, text="what", as_="list")
    expected = []
    for n in range(1, max_n + 1):
        users = Counter(gram for grams in held_by_user(rows, n).values() for gram in grams)
        expected += [(n, " ".join(gram), list(gram), count) for gram, count in users.items()]
    assert sorted(exact_ngrams(corpus, max_n=max_n).rows()) == sorted(expected)


def test_an_item_counted_within_groups_is_one_item(written, own_ledger):
    rows = [
        {"level": 1, "item": gram, "tokens": [gram], "score": 9.0, "group_name": group}
        for gram in "ab"
        for group in ("DE", "US", "other")
    ]
    table = pa.Table.from_pylist(rows, SCORES_AND_COUNTS_SCHEMA)
    grouped = Release(table, release_of(("a",)).manifest)
    corpus = written(TEXTS)
    assert evaluate(grouped, corpus).equals(evaluate(release_of(("a",), ("b",)), corpus))
    assert not own_ledger.exists()


def test_an_evaluation_by_hand(written):
    """Users of a: 4, b: 4, c: 2; of "a b": 2, "b a": 3, "a c": 1."""
    release = release_of(("a",), ("b",), ("z",), ("b", "a"), ("b", "b"))
    corpus = written(TEXTS)
    said: list[str] = []
    found = evaluate(release, corpus, at_least=(1, 2, 3, 100), progress=said.append)
    assert said[-1] == "counting n-grams of 2 tokens"
    assert found.columns[:7] == [
        *("level", "held", "released", "true", "recall", "missing_mass", "spurious")
    ]
    one, two = found.rows()
    assert one == (1, 3, 3, 2, 2 / 3, 2 / 10, pytest.approx(1 / 3), 2 / 3, 2 / 3, 1.0, None)
    assert two == (2, 3, 2, 1, 1 / 3, 3 / 6, 0.5, 1 / 3, 1 / 2, 1.0, None)
    exact = exact_ngrams(corpus, max_n=3)
    assert evaluate(release, exact, at_least=(1, 2, 3, 100)).equals(found)
    longer = evaluate(release_of(("a",), ("a", "a", "a", "a")), corpus)
    assert longer.row(-1)[:6] == (4, 0, 1, 0, None, None)
    with pytest.raises(UsageError, match=r"^release: found a Corpus; give a dphh.Release"):
        evaluate(corpus, release)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="only releases of items and ngrams"):
        evaluate(Release(release.table, release.manifest | {"verb": "trie"}), corpus)


def test_a_corpus_that_is_read_otherwise_than_the_release_is_refused(written):
    corpus, made = written(TEXTS), release_of(("a",))
    content = corpus.content.to_json()
    for more in ({"where": "what <> 'c'"}, {"lower": False}):
        read = Release(made.table, made.manifest | {"parameters": {"content": content | more}})
        with pytest.raises(UsageError, match=f"^corpus: its {next(iter(more))} differ"):
            evaluate(read, corpus)
    alike = Release(made.table, made.manifest | {"parameters": {"content": content}})
    assert evaluate(alike, corpus).equals(evaluate(made, corpus))


def test_exact_counts_without_a_released_length_are_refused(written):
    exact = exact_ngrams(written(TEXTS), max_n=1)
    with pytest.raises(UsageError, match=r"without length 2; give exact_ngrams\(corpus, max_n=2\)"):
        evaluate(release_of(("a",), ("a", "b")), exact)
