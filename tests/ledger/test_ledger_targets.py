"""Where a ledger lies, and what its copies and exports may be written over."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from dphh import Ledger, LedgerError, UsageError
from dphh.cli import cli
from dphh.files.paths import written_here
from dphh.ledger import Source
from tests.ledger.asked import ask
from tests.report.made import ladder

SOURCE = Source("path", ("/data/a.parquet",), "who")


def spent(path: Path, runs: int) -> Ledger:
    book = Ledger(path)
    book.add("reviews", SOURCE, 5.0, 1e-5)
    for run in range(runs):
        ask(book, f"run {run}", SOURCE, 0.1, 1e-8)
    return book


@pytest.mark.parametrize("named", ["s3://bucket/l.sqlite", "s3:/bucket/l.sqlite", "gs://b/l"])
def test_a_ledger_at_a_stores_address_is_refused(named, tmp_path, monkeypatch):
    """`Path` would make a folder of that name, so each working folder would have its own budget."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"ledger: found '.*', but dphh writes to local"):
        Ledger(named)
    monkeypatch.setenv("DPHH_LEDGER", named)
    with pytest.raises(UsageError, match="local files only"):
        Ledger()
    assert not [*tmp_path.iterdir()]


def test_a_files_address_is_its_path():
    assert written_here("out", "file:///tmp/a%20b") == Path("/tmp/a b")
    assert written_here("out", "a:b/c") == Path("a:b/c")


def test_a_copy_that_has_more_is_not_written_over(tmp_path):
    book = spent(tmp_path / "l.sqlite", 1)
    older = tmp_path / "older.sqlite"
    book.backup(older)
    ask(book, "another", SOURCE, 0.1, 1e-8)
    ask(book, "and one more", SOURCE, 0.1, 1e-8)
    newest = tmp_path / "newest.sqlite"
    book.backup(newest)
    book.backup(newest)  # the same again
    before = newest.read_bytes()
    shutil.copy(older, book.path)
    with pytest.raises(LedgerError, match=r"older copy, or lost.* Nothing was copied"):
        Ledger(book.path).backup(newest)
    book.path.with_name("l.sqlite.seen").unlink()
    with pytest.raises(UsageError, match="it is newer, or a copy of another ledger"):
        Ledger(book.path).backup(newest)
    assert newest.read_bytes() == before


def test_another_ledger_is_not_written_over(tmp_path):
    book, other = spent(tmp_path / "l.sqlite", 3), spent(tmp_path / "other.sqlite", 1)
    with pytest.raises(UsageError, match="is a ledger in use"):
        book.backup(other.path)
    other.path.with_name("other.sqlite.seen").unlink()
    ask(other, "its own", SOURCE, 0.1, 1e-8)
    other.path.with_name("other.sqlite.seen").unlink()
    with pytest.raises(UsageError, match="1 runs that this ledger has not"):
        book.backup(other.path)


def test_a_copy_follows_after_an_account_was_removed(tmp_path):
    book = spent(tmp_path / "l.sqlite", 1)
    book.add("unused", Source("path", ("/data/b.parquet",), "who"), 1.0, 1e-6)
    book.backup(tmp_path / "monday.sqlite")
    book.remove("unused")
    book.backup(tmp_path / "monday.sqlite")


def test_what_is_no_such_file_is_not_written_over(tmp_path):
    book = spent(tmp_path / "l.sqlite", 1)
    data = tmp_path / "support.csv"
    data.write_text("customer,message\n1,hello\n")
    with pytest.raises(UsageError, match=r"backup: .* would be lost"):
        book.backup(data)
    with pytest.raises(UsageError, match=r"export: .* would be lost"):
        book.export(data)
    with pytest.raises(UsageError, match=r"to_csv: .* would be lost"):
        ladder().to_csv(data)
    with pytest.raises(UsageError, match=r"report: .* would be lost"):
        ladder().report(book.path)
    assert data.read_text() == "customer,message\n1,hello\n"
    for target in (tmp_path / "runs.csv", tmp_path / "runs.parquet"):
        book.export(target)
        book.export(target)
    with pytest.raises(UsageError, match="is another table"):
        book.export(tmp_path / "runs.parquet", history=True)


def _named(file: Path, name: Path) -> Path:
    shutil.copy(file, name)
    return name


def test_a_ledger_that_was_lost_is_said_to_be(tmp_path, monkeypatch):
    """The note beside it tells that there was one, where a name alone could be a path."""
    book = spent(tmp_path / "l.sqlite", 2)
    book.path.unlink()
    monkeypatch.setenv("DPHH_LEDGER", str(book.path))
    for asked in (
        ["items", "reviews", "--epsilon", "1", "--delta", "1e-6"],
        ["ledger", "cap", "reviews", "--epsilon", "9", "--delta", "1e-6"],
        ["ledger", "show"],
    ):
        done = CliRunner().invoke(cli, asked)
        assert "replaced by an older copy, or lost" in f"{done.output}{done.exception}", asked


def test_other_names_of_the_same_data_are_said(tmp_path, monkeypatch):
    pl.DataFrame({"who": [1], "what": ["a"]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "l.sqlite"))
    cap = ["--epsilon", "1", "--delta", "1e-6"]
    of = [str(tmp_path / "a.parquet"), "--user", "who", "--text", "what", *cap]
    first = CliRunner().invoke(cli, ["ledger", "add", "support", *of])
    second = CliRunner().invoke(cli, ["ledger", "add", "orders", *of])
    shown = CliRunner().invoke(cli, ["ledger", "show", "support"])
    assert "also paid by" not in first.output
    assert "a run on orders is also paid by support" in " ".join(second.output.split())
    assert "a run on support is also paid by orders" in " ".join(shown.output.split())
