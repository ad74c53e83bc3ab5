"""A public text is counted as private data are read; a table's items are read the same way."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphh import Corpus, CorpusError
from dphh.public import texts
from dphh.public.texts import cache_folder, prior_of_table, prior_of_text
from tests.conftest import full


def spelled(prior):
    """Each gram of a prior and how often it occurs, by length."""
    words = prior.vocabulary.to_pylist()
    return [
        {tuple(words[number] for number in gram): int(n) for gram, n in zip(*pair, strict=True)}
        for pair in zip(prior.grams, prior.counts, strict=True)
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


CONTENT = Corpus(".", user="who", text="what").content


def of_rows(rows, max_n):
    frame = pl.DataFrame({"body": rows}, schema={"body": pl.String})
    return prior_of_text(frame, "body", CONTENT, max_n)


@settings(max_examples=20 if full() else 8)  # each opens an instance of DuckDB
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "ü", "dd"]), max_size=9), max_size=12))
def test_every_run_of_listed_words_is_counted(rows):
    prior = of_rows([" ".join(row) for row in rows], 3)
    assert spelled(prior) == by_hand(rows, 3, 2)
    for grams in prior.grams:
        assert grams.tolist() == sorted(grams.tolist())
    words = prior.vocabulary.to_pylist()
    assert words == sorted(words, key=str.encode)
    assert prior.total == sum(map(len, rows))


def test_the_text_is_read_as_the_corpus_says():
    assert spelled(of_rows(["Don't stop. DON’T!", "don't"], 1)) == [{("don't",): 3}]


def test_a_large_text_lists_words_of_three_and_leaves_out_longer_grams_that_occur_once(monkeypatch):
    monkeypatch.setattr(texts, "LARGE_TEXT_WORDS", 5)
    prior = of_rows(["a b a b", "a b", "c c b a"], 2)
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
    prior = prior_of_table(source, CONTENT, 4)
    assert spelled(prior) == [{("a",): 5, ("b",): 1}, {("a", "b"): 3}, {}, {}]


def test_texts_of_a_table_become_tokens_as_the_data_do_and_what_never_occurs_is_left_out():
    rows = [("The", 2.0), ("the", 3.0), ("a", 0.0), ("b", None), (None, 2.0), ("c", float("inf"))]
    assert spelled(prior_of_table(table(rows), CONTENT, 1)) == [{("c",): 2**52, ("the",): 5}]


@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_table_without_the_two_columns_is_refused(in_a_file, tmp_path):
    source = pl.DataFrame({"body": ["a"]})
    if in_a_file:
        source.write_parquet(tmp_path / "words.parquet")
        source = str(tmp_path / "words.parquet")
    with pytest.raises(CorpusError, match=r"a column 'item', .* by prior_text"):
        prior_of_table(source, CONTENT, 1)


# What is kept


def test_a_text_of_files_is_counted_once_until_it_changes(tmp_path, monkeypatch):
    path, rows = tmp_path / "text.parquet", pl.DataFrame({"body": ["a b ü", "a b ü", "b a"]})
    rows.write_parquet(path)
    asked, count = [], texts.count_text
    monkeypatch.setattr(texts, "count_text", lambda *each: asked.append(each) or count(*each))
    first, again = (prior_of_text(path, "body", CONTENT, 3) for _ in range(2))
    assert (again.digest, spelled(again)) == (first.digest, spelled(first))
    assert len(asked) == 1
    (kept,) = cache_folder().iterdir()
    assert (cache_folder().stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    monkeypatch.setenv("DPHH_CACHE", "/proc/none")  # where nothing can be kept
    assert prior_of_text(path, "body", CONTENT, 3).digest == first.digest
    assert prior_of_text(rows, "body", CONTENT, 3).digest == first.digest
    assert len(asked) == 3
    monkeypatch.undo()
    pl.DataFrame({"body": ["a b"] * 3}).write_parquet(path)
    assert prior_of_text(path, "body", CONTENT, 3).digest != first.digest
