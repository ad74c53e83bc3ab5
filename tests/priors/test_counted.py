"""A public text is counted as private data are read; a table's items are read the same way."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh import Corpus, CorpusError, UsageError
from dphh.public import counting as texts
from dphh.public.counting import cache_folder, counted, of_table, of_text


def spelled(prior):
    """Each gram of a prior and how often it occurs, by length."""
    words = prior.vocabulary.to_pylist()
    return [
        {
            tuple(words[number] for number in row): int(count)
            for row, count in zip(g.words, g.counts, strict=True)
        }
        for g in prior.grams
    ]


def by_hand(rows, max_n, least):
    """The same in plain Python, of lists of words."""
    words = Counter(word for row in rows for word in row)
    listed = {word: count for word, count in words.items() if count >= least}
    found = [{(word,): count for word, count in listed.items()}]
    for n in range(2, max_n + 1):
        runs = (tuple(row[i : i + n]) for row in rows for i in range(len(row) - n + 1))
        found.append(dict(Counter(run for run in runs if all(word in listed for word in run))))
    return found


def corpus(rows, **options):
    frame = pl.DataFrame({"body": rows}, schema={"body": pl.String})
    return Corpus(frame, user="body", **({"text": "body"} | options))


@settings(max_examples=20)  # each opens an instance of DuckDB
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "ü", "dd"]), max_size=9), max_size=12))
def test_every_run_of_listed_words_is_counted(rows):
    prior = counted(corpus([" ".join(row) for row in rows]), 3)
    assert spelled(prior) == by_hand(rows, 3, texts.LEAST_OF_SMALL)
    for grams in prior.grams:
        assert grams.words.tolist() == sorted(grams.words.tolist())
    words = prior.vocabulary.to_pylist()
    assert words == sorted(words, key=str.encode)
    assert prior.total == sum(map(len, rows))


def test_the_text_is_read_as_the_corpus_says():
    asked = corpus(["Don't stop. DON’T!", "don't"])
    assert spelled(counted(asked, 1)) == [{("don't",): 3}]


def test_a_large_text_lists_words_of_three_and_leaves_out_longer_grams_that_occur_once(monkeypatch):
    monkeypatch.setattr(texts, "SMALL", 5)
    monkeypatch.setattr(texts, "LARGE_TEXT", 5)
    prior = counted(corpus(["a b a b", "a b", "c c b a"]), 2)
    assert spelled(prior) == [{("a",): 4, ("b",): 4}, {("a", "b"): 3, ("b", "a"): 2}]


def table(rows, kind=pl.String):
    return pl.DataFrame(
        {"item": [row[0] for row in rows], "count": [row[1] for row in rows]},
        schema={"item": kind, "count": pl.Float64},
    )


@pytest.mark.parametrize("split", [" ".join, list])
@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_table_gives_items_whose_parts_it_has(split, in_a_file, tmp_path):
    rows = [("a", 5.0), ("b", 0.2), ("a b", 3.0), ("b c", 9.0), ("a b a", 2.0), ("b b b b", 1.0)]
    rows = [(split(item.split()), count) for item, count in rows]
    frame = table(rows, pl.List(pl.String) if split is list else pl.String)
    source = frame
    if in_a_file:
        source = str(tmp_path / "words.parquet")
        frame.write_parquet(source)
    prior = of_table(source, corpus([]).content, 4)
    assert spelled(prior) == [{("a",): 5, ("b",): 1}, {("a", "b"): 3}, {}, {}]


def test_texts_of_a_table_become_tokens_as_the_data_do():
    content = corpus([]).content
    prior = of_table(table([("The", 2.0), ("the", 3.0)]), content, 2)
    assert spelled(prior) == [{("the",): 5}, {}]


@pytest.mark.parametrize("count", [0.0, -1.0, None, float("nan"), float("inf")])
def test_a_count_is_a_number_above_0(count):
    with pytest.raises(UsageError, match="a number above 0"):
        of_table(table([("a", 3.0), ("b", count)]), corpus([]).content, 1)


@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_table_without_the_two_columns_is_refused(in_a_file, tmp_path):
    source = pl.DataFrame({"body": ["a"]})
    if in_a_file:
        source.write_parquet(tmp_path / "words.parquet")
        source = str(tmp_path / "words.parquet")
    with pytest.raises(CorpusError, match=r"a column 'item', .* prior_text names the column"):
        of_table(source, corpus([]).content, 1)


# What is kept


@pytest.fixture
def text(tmp_path):
    pl.DataFrame({"body": ["a b ü", "a b ü", "b a"]}).write_parquet(tmp_path / "text.parquet")
    return Corpus(tmp_path / "text.parquet", user="body", text="body")


def test_a_text_of_files_is_counted_once_until_it_changes(text, monkeypatch):
    counted = []
    count = texts.counted
    monkeypatch.setattr(texts, "counted", lambda *asked: counted.append(asked) or count(*asked))
    first, again = (of_text(text, 3) for _ in range(2))
    assert (again.digest, spelled(again)) == (first.digest, spelled(first))
    assert len(counted) == 1
    (kept,) = cache_folder().iterdir()
    assert (cache_folder().stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    kept.write_bytes(kept.read_bytes()[:200])
    assert of_text(text, 3).digest == first.digest
    assert len(counted) == 2
    pl.DataFrame({"body": ["a b"] * 3}).write_parquet(text.where[0])
    assert of_text(text, 3).digest != first.digest


def test_what_is_not_in_files_or_has_nowhere_to_be_kept_is_counted_all_the_same(text, monkeypatch):
    frame = Corpus(pl.read_parquet(text.where[0]), user="body", text="body")
    assert of_text(frame, 2).digest == of_text(frame, 2).digest
    assert not cache_folder().exists()
    monkeypatch.setenv("DPHH_CACHE", "/proc/none")
    assert of_text(text, 2).digest == of_text(frame, 2).digest
