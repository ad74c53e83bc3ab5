"""A ledger, and a corpus that is one file."""

import pytest

from dphh import Corpus, Ledger


@pytest.fixture
def book(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite", create=True)


@pytest.fixture
def reviews(tmp_path):
    (tmp_path / "reviews.parquet").touch()
    return Corpus(tmp_path / "reviews.parquet", user="author", text="body")
