"""A ledger, and a corpus that is one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dphh.ledger import Ledger, Source


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def reviews(tmp_path: Path) -> Source:
    (tmp_path / "reviews.parquet").touch()
    return Source("path", (str(tmp_path / "reviews.parquet"),), "author", {"column": "body"})
