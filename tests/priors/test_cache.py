"""A text that was counted is kept with nothing but digests and counts, and used only as it was
written."""

from __future__ import annotations

import polars as pl
import pytest

from dphh import Corpus
from dphh.public import cache
from dphh.public.cache import folder, keep, kept
from dphh.public.counted_texts import of_text


@pytest.fixture
def prior():
    frame = pl.DataFrame({"body": ["a b ü", "a b ü", "b a"]})
    return of_text(Corpus(frame, user="body", text="body"), 3)


def test_what_is_kept_is_what_was_counted(prior):
    keep("one", prior)
    again = kept("one")
    assert again.digest == prior.digest
    assert again.vocabulary.to_pylist() == prior.vocabulary.to_pylist()
    for one, other in zip(prior.grams, again.grams, strict=True):
        assert one.words.tolist() == other.words.tolist()
        assert one.counts.tolist() == other.counts.tolist()
    assert kept("other") is None


def test_the_folder_and_its_files_are_their_users_alone(prior):
    keep("one", prior)
    assert folder().stat().st_mode & 0o777 == 0o700
    assert (folder() / "one").stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_changed_is_not_used(prior):
    keep("one", prior)
    file = folder() / "one"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert kept("one") is None
    keep("one", type(prior)(prior.vocabulary, prior.grams, 99, prior.digest))
    assert kept("one") is None


def test_nowhere_to_keep_it_is_no_failure(prior, monkeypatch):
    monkeypatch.setenv("DPHH_CACHE", "/proc/none")
    keep("one", prior)
    assert kept("one") is None


def test_a_text_whose_state_files_of_this_machine_do_not_tell_is_not_kept(tmp_path):
    frame = pl.DataFrame({"body": ["a"]})
    frame.write_parquet(tmp_path / "2.parquet")
    for source in (frame, "s3://public/x.parquet", tmp_path / "app.duckdb/table", tmp_path / "no"):
        assert cache.name_of(Corpus(source, user="body", text="body"), []) is None
    one = cache.name_of(Corpus(tmp_path / "2.parquet", user="body", text="body"), [])
    frame.vstack(frame).write_parquet(tmp_path / "2.parquet")
    assert one != cache.name_of(Corpus(tmp_path / "2.parquet", user="body", text="body"), [])
