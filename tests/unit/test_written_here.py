"""What is written, is written to this machine; a store's address is refused and nothing spent."""

from __future__ import annotations

import polars as pl
import pytest

from dphh import Corpus, Ledger, UsageError, items
from dphh.testing import SeededRandomness

STORE = "s3://bucket/found"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(user, "tea cake") for user in range(300)]
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet("c.parquet")
    return Corpus("c.parquet", user="who", text="what")


def test_a_run_that_would_write_to_a_store_is_refused_before_payment(corpus, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(UsageError, match="out: found 's3://bucket/found'"):
        items(corpus, epsilon=1, delta=1e-6).run(ledger=ledger, out=STORE)
    assert not ledger.runs()
    assert not (tmp_path / "s3:").exists()


@pytest.mark.parametrize(
    ("option", "write"),
    [
        ("out", lambda release, book: release.save(STORE)),
        ("report", lambda release, book: release.report(f"{STORE}.html")),
        ("to_csv", lambda release, book: release.to_csv(f"{STORE}.csv")),
        ("export", lambda release, book: book.export(f"{STORE}.csv")),
    ],
)
def test_what_shows_a_release_is_not_written_to_a_store(corpus, tmp_path, option, write):
    book = Ledger(tmp_path / "ledger.sqlite")
    plan = items(corpus, epsilon=1, delta=1e-6)
    release = plan.run(ledger=book, randomness=SeededRandomness(1))
    with pytest.raises(UsageError, match=f"{option}: found 's3://.*writes to local files only"):
        write(release, book)
    assert not (tmp_path / "s3:").exists()
