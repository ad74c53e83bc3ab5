"""A prior that was counted is kept for its user alone, and used only as it was written."""

from __future__ import annotations

import os

import polars as pl
import pytest

from dphh import Corpus
from dphh.public import stored
from dphh.public.counted_texts import counted
from dphh.public.stored import folder, keep, kept


@pytest.fixture
def prior():
    frame = pl.DataFrame({"body": ["a b ü", "a b ü", "b a"]})
    return counted(Corpus(frame, user="body", text="body"), 3)


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


def test_a_folder_that_others_may_enter_is_neither_read_nor_written(prior):
    keep("one", prior)
    folder().chmod(0o755)
    assert kept("one") is None
    keep("two", prior)
    assert not (folder() / "two").exists()


def test_no_link_is_followed(prior, tmp_path):
    keep("one", prior)
    (folder() / "two").symlink_to(folder() / "one")
    assert kept("two") is None
    elsewhere = tmp_path / "elsewhere"
    folder().rename(elsewhere)
    folder().symlink_to(elsewhere)
    assert kept("one") is None
    keep("three", prior)
    assert not (elsewhere / "three").exists()


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(prior, tmp_path):
    keep("one", prior)
    target = tmp_path / "target"
    target.write_text("mine")
    (folder() / "two").symlink_to(target)
    keep("two", prior)
    assert target.read_text() == "mine"
    assert kept("two").digest == prior.digest


def test_a_file_that_was_changed_is_not_used(prior):
    keep("one", prior)
    file = folder() / "one"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert kept("one") is None
    changed = stored._prior_as_bytes(type(prior)(prior.vocabulary, prior.grams, 99, prior.digest))
    file.write_bytes(changed)
    assert kept("one") is None


def test_nowhere_to_keep_it_is_no_failure(prior, monkeypatch):
    monkeypatch.setenv("DPHH_CACHE", "/proc/none")
    keep("one", prior)
    assert kept("one") is None


def test_what_was_used_longest_ago_goes_where_it_is_too_much(prior, monkeypatch):
    for number, name in enumerate(("one.npz", "two.npz", "three.npz")):
        keep(name, prior)
        os.utime(folder() / name, (number, number))
    (folder() / "mine.txt").write_text("not a prior")
    assert kept("one.npz") is not None  # so it was used last
    size = (folder() / "one.npz").stat().st_size
    monkeypatch.setattr(stored, "MOST_BYTES", 2 * size)
    keep("four.npz", prior)
    assert {path.name for path in folder().iterdir()} == {"one.npz", "four.npz", "mine.txt"}
