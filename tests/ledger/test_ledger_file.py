"""The ledger's file: where it is, whose it is, and what goes wrong with it."""

import os
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from dphh.errors import LedgerError, Notice, UsageError
from dphh.ledger import Ledger
from dphh.ledger import schema as ledger_schema
from dphh.ledger.schema import SCHEMA_VERSION, default_path, writing
from tests.ledger.asked import ask, asked, tampered


def test_the_path_comes_from_the_argument_then_the_environment_then_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("DPHH_LEDGER", str(tmp_path / "env.sqlite"))
    assert Ledger(tmp_path / "given.sqlite").path == tmp_path / "given.sqlite"
    assert Ledger().path == tmp_path / "env.sqlite"
    monkeypatch.delenv("DPHH_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data" / "dphh" / "ledger.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "share" / "dphh" / "ledger.sqlite"


def test_folders_and_file_are_made_for_their_owner_alone(tmp_path, reviews):
    book = Ledger(tmp_path / "one" / "two" / "ledger.sqlite", create=True)
    ask(book, "a", reviews)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (book.path, *list(book.path.parents)[:2])]
    assert modes == [0o600, 0o700, 0o700]
    assert [p.name for p in book.path.parent.iterdir()] == ["ledger.sqlite"]


def test_looking_makes_no_file(ledger, reviews):
    assert ledger.accounts() == []
    assert ledger.runs() == []
    assert ledger.before_reading(asked(reviews), None) is None
    assert ledger.shares() == ledger.history() == ledger.analysts() == []
    with pytest.raises(UsageError):
        ledger.status("reviews")
    assert not ledger.path.exists()


@pytest.mark.parametrize("named", ["by the argument", "by the environment", "empty"])
def test_a_misspelled_ledger_is_refused_and_not_made(tmp_path, reviews, monkeypatch, named):
    """A run would find nothing that caps it there."""
    path = tmp_path / "leger.sqlite"
    if named == "by the environment":
        monkeypatch.setenv("DPHH_LEDGER", str(path))
    if named == "empty":
        path.touch()
    before = [*tmp_path.iterdir()]
    book = Ledger(None if named == "by the environment" else path)
    for use in (
        lambda: ask(book, "a", reviews),
        lambda: book.before_reading(asked(reviews), None),
        lambda: book.outlook(asked(reviews)),
        lambda: book.accounts_of(reviews),
        book.names,
        lambda: book.give_token("alice"),
        lambda: book.set_cap("reviews", 1.0, 0.0),
    ):
        why = "it is no ledger, or no longer one. .* put the last copy back"
        if named != "empty":
            why = f"There is no ledger at {path}. Nothing was spent"
        with pytest.raises(UsageError, match=why):
            use()
    assert [*tmp_path.iterdir()] == before and (named != "empty" or path.read_bytes() == b"")
    book.add("reviews", reviews, 1.0, 0.0)
    assert ask(book, "a", reviews).accounts == ("reviews",)


def test_a_ledger_without_accounts_is_made_where_it_is_asked_for(tmp_path, reviews):
    book = Ledger(tmp_path / "trial.sqlite", create=True)
    ask(Ledger(book.path), "a", reviews)
    assert len(Ledger(book.path, create=True).runs()) == 1


@pytest.mark.parametrize("kind", ["text", "another database", 0, SCHEMA_VERSION + 1])
def test_other_files_and_schemas_are_refused_and_stay_as_they_are(book, reviews, kind):
    ask(book, "a", reviews)
    if kind == "text":
        book.path.write_bytes(b"user,item\n" * 1000)
    elif kind == "another database":
        book.path.unlink()
        tampered(book, "CREATE TABLE mine (x)")
    else:
        tampered(book, f"PRAGMA user_version = {kind}")
    before = book.path.read_bytes()
    for verb in (book.runs, lambda: ask(book, "b", reviews)):
        with pytest.raises(LedgerError, match=r"not a (ledger of this dphh|database)"):
            verb()
    assert book.path.read_bytes() == before


def test_a_full_disk_loses_nothing(book, reviews, monkeypatch):
    run = ask(book, "a", reviews)
    connect = ledger_schema._connect

    def small(path: Path) -> sqlite3.Connection:
        con = connect(path)
        con.execute("PRAGMA max_page_count = 60")
        return con

    with monkeypatch.context() as full, pytest.raises(LedgerError, match="disk is full"):
        full.setattr(ledger_schema, "_connect", small)
        book.settle(run, {}, os.urandom(10**6))
    assert book.runs()[0].state == "running"
    book.settle(run, {}, b"there is space again")
    assert book.release("a").parquet == b"there is space again"


def test_a_lock_held_too_long(book, reviews, monkeypatch):
    ask(book, "a", reviews)
    monkeypatch.setattr(ledger_schema, "LOCK_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(ledger_schema, "SILENT_SECONDS", 0.05)
    waits = pytest.warns(Notice, match=f"waiting for the ledger {book.path}, which another")
    with closing(sqlite3.connect(book.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"), waits:
            ask(book, "b", reviews)
        assert len(book.runs()) == 1  # readers do not wait for it
        other.execute("ROLLBACK")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="locked"), waits:
            book.runs()
        other.execute("ROLLBACK")
    ask(book, "b", reviews)


@pytest.mark.filterwarnings("error")
def test_a_lock_that_is_waited_for_ends_no_run(book, reviews, monkeypatch):
    monkeypatch.setattr(ledger_schema, "SILENT_SECONDS", 0.05)
    ask(book, "a", reviews)
    with closing(
        sqlite3.connect(book.path, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        release.start()
        ask(book, "b", reviews)
        release.join()
    assert len(book.runs()) == 2


def test_an_interrupted_transaction_leaves_nothing(book, reviews):
    ask(book, "a", reviews)
    with pytest.raises(KeyboardInterrupt), writing(book.path) as con:
        con.execute("UPDATE runs SET state = 'failed'")
        raise KeyboardInterrupt
    assert book.runs()[0].state == "running"


def test_a_commit_waits_for_the_disk(book, no_power_cut, monkeypatch):
    """And for its folder, where the journal's end is the commit: 3 is SQLite's EXTRA."""
    monkeypatch.setattr(ledger_schema, "SYNCHRONOUS", no_power_cut)
    with writing(book.path) as con:
        assert con.execute("PRAGMA synchronous").fetchone()[0] == 3
        assert con.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_a_transaction(book, reviews):
    ask(book, "a", reviews)
    inside, leaving = threading.Event(), threading.Event()

    def slow() -> None:
        with writing(book.path) as con:
            con.execute("UPDATE runs SET state = 'failed'")
            inside.set()
            time.sleep(0.2)
            leaving.set()

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0)
    waited = leaving.is_set()
    os.waitpid(child, 0)
    thread.join()
    assert waited
    assert book.runs()[0].state == "failed"


def test_a_ledger_is_one_file_however_it_is_named(tmp_path, reviews, monkeypatch):
    book = Ledger(tmp_path / "ledger.sqlite", create=True)
    (tmp_path / "link.sqlite").symlink_to(book.path)
    monkeypatch.chdir(tmp_path)
    named = Ledger("ledger.sqlite")
    monkeypatch.chdir("/")
    ask(named, "a", reviews)
    assert [run.run_id for run in Ledger(tmp_path / "link.sqlite").runs()] == ["a"]
    assert Ledger(tmp_path / "link.sqlite").path == named.path == book.path
