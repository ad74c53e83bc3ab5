"""What a ledger knows as private is known wherever it lies, and by its bytes if it was copied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from dphh import Corpus
from dphh.ledger import source_of
from dphh.ledger.known import is_known
from tests.ledger.asked import ask


@pytest.fixture
def private(tmp_path):
    path = tmp_path / "private.parquet"
    pl.DataFrame({"who": range(99), "what": ["a secret"] * 99}).write_parquet(path)
    return path


def source(path, **options):
    return source_of(Corpus(str(path), user="who", **({"text": "what"} | options)))


def linked(path: Path) -> Path:
    (there := path.with_name("linked.parquet")).symlink_to(path)
    return there


def hard_linked(path: Path) -> Path:
    os.link(path, there := path.with_name("hard.parquet"))
    return there


def copied(path: Path) -> Path:
    return Path(shutil.copyfile(path, path.with_name("copied.parquet")))


def moved(path: Path) -> Path:
    return path.rename(path.with_name("moved.parquet"))


def folder(path: Path) -> Path:
    return path.parent


@pytest.mark.parametrize("find", [Path, linked, hard_linked, copied, folder])
@pytest.mark.parametrize("named", [False, True])
def test_a_corpus_is_known_by_another_name(book, private, find, named):
    if named:
        book.add("reviews", source(private), 1.0, 1e-6)
    else:
        ask(book, "one", source(private))
    assert is_known(book, source(find(private), text=None, item="what"))


def test_moved_files_are_known_by_their_marks(book, private):
    ask(book, "one", source(private))
    assert is_known(book, source(moved(private)))


def test_other_data_are_not(book, private, tmp_path):
    assert not is_known(book, source(private))
    book.add("reviews", source(private), 1.0, 1e-6)
    frame = pl.DataFrame({"who": range(99), "what": ["a public text"] * 99})
    frame.write_parquet(tmp_path / "public.parquet")
    assert not is_known(book, source(tmp_path / "public.parquet"))
    assert not is_known(book, source_of(Corpus(frame, user="who", text="what")))
