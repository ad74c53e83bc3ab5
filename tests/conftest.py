"""What all tests share: engines to run on, ledgers of their own, corpora written for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

from dphh import Corpus, Ledger
from dphh.engines import ENGINES

# CI repeats the same examples, so that it fails for what changed; other runs go on exploring.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the ledger of whoever runs it."""
    path = tmp_path / "own-ledger.sqlite"
    monkeypatch.setenv("DPHH_LEDGER", str(path))
    return path


@pytest.fixture
def ledger(own_ledger: Path) -> Ledger:
    return Ledger(own_ledger)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Corpus]:
    """Write rows (user, content) to Parquet and give them as a corpus."""

    def write(rows: Sequence[tuple[Any, Any]], **options: Any) -> Corpus:
        path = tmp_path / "corpus.parquet"
        frame = pl.DataFrame(
            {"who": [row[0] for row in rows], "what": [row[1] for row in rows]}, strict=False
        )
        frame.write_parquet(path)
        return Corpus(str(path), user="who", **({"text": "what"} | options))

    return write


class NoNoise:
    """Randomness whose every word is all ones: the rounded Gaussian inverts it to zero."""

    is_test = True

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        return np.full(count, 2**64 - 1, dtype=np.uint64)


@pytest.fixture
def no_noise() -> NoNoise:
    return NoNoise()


@pytest.fixture
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the data beside the repository ({SHARED_DATA.parent.name}/data)")
    return SHARED_DATA


def full() -> bool:
    """Whether slow suites run with all their counts, rather than CI's."""
    return os.environ.get("DPHH_FULL") == "1"
