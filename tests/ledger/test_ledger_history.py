"""Who allowed what, declared groups, and the ledger's copy."""

from __future__ import annotations

import json
import os
import pwd
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from dphh import Corpus, Ledger
from dphh.cli import cli
from dphh.errors import BudgetRefused, CorpusError, LedgerError, UsageError
from dphh.gateway.analysts import Analysts
from dphh.ledger import Source
from dphh.rows.period import PeriodColumn
from tests.ledger.asked import ask, tampered
from tests.ledger.test_ledger_older import BACK_TO_SCHEMA_7

ME = pwd.getpwuid(os.getuid()).pw_name


def told(book: Ledger, name: str | None = None) -> list[tuple[str | None, ...]]:
    return [(c.what, c.account, c.analyst, c.was, c.now) for c in book.history(name)]


def test_every_change_says_who_and_from_what_to_what(book: Ledger) -> None:
    book.add("draft", Corpus("/nowhere/a.parquet", user="who", text="what"), 1.0, 1e-6)
    book.rename("draft", "reviews")
    book.set_cap("reviews", 2.0, 1e-6, "sums")
    book.set_share("reviews", "alice", 0.5, 1e-7)
    book.set_share("reviews", "alice", 0.25, 1e-7)
    Analysts.of(book).add("alice")
    Analysts.of(book).remove("alice")
    Analysts.of(book).add("nobody-of-this-account")
    book.declare_groups("reviews", "country", "DE, US")
    book.declare_groups("reviews", "country", ())
    assert told(book, "reviews") == [
        ("cap", "draft", None, None, "epsilon 1, delta 1e-06"),
        ("name", "reviews", None, "draft", "reviews"),
        ("cap", "reviews", None, "epsilon 1, delta 1e-06", "epsilon 2, delta 1e-06, kept by sums"),
        ("share", "reviews", "alice", None, "epsilon 0.5, delta 1e-07"),
        ("share", "reviews", "alice", "epsilon 0.5, delta 1e-07", "epsilon 0.25, delta 1e-07"),
        ("token", None, "alice", None, "given"),
        ("token", None, "alice", "given", None),
        ("groups", "reviews", None, None, "country: DE, US"),
        ("groups", "reviews", None, "country: DE, US", None),
    ]
    assert {change.who for change in book.history()} == {ME}
    assert {change.when.timestamp() % 86_400 for change in book.history()} == {0.0}
    assert len(book.history()) == 10
    book.remove("reviews")
    assert told(book)[-1] == ("cap", "reviews", None, "epsilon 2, delta 1e-06, kept by sums", None)


def test_a_persons_cap_is_in_the_history(book: Ledger, tmp_path: Path) -> None:
    """From what to what, when and by whom: in Python, in `ledger show` and in what is exported."""
    weeks = Source("path", ("/data/weeks.parquet",), "author", period=PeriodColumn("date", "week"))
    one, five, eight = (f"; of a person epsilon {epsilon}, delta 1e-06" for epsilon in (1, 5, 8))
    book.add("weeks", weeks, 1.0, 1e-7, person=(5.0, 1e-6))
    book.set_cap("weeks", 1.0, 1e-7, person=(8.0, 1e-6))
    book.set_cap("weeks", 0.5, 1e-7)
    book.set_cap("weeks", 0.5, 1e-7, person=(1.0, 1e-6))
    changes = [
        (None, f"epsilon 1, delta 1e-07{five}"),
        (f"epsilon 1, delta 1e-07{five}", f"epsilon 1, delta 1e-07{eight}"),
        (f"epsilon 1, delta 1e-07{eight}", f"epsilon 0.5, delta 1e-07{eight}"),
        (f"epsilon 0.5, delta 1e-07{eight}", f"epsilon 0.5, delta 1e-07{one}"),
    ]
    assert [(each.was, each.now, each.who) for each in book.history("weeks")] == [
        (*change, ME) for change in changes
    ]
    asked = ["ledger", "show", "weeks", "--ledger", str(book.path)]
    shown = CliRunner().invoke(cli, asked).stdout
    for was, now in changes[1:]:
        assert f"cap: {now}, before {was}, by {ME}" in " ".join(shown.split())
    listed = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)["history"]
    book.export(tmp_path / "history.csv", history=True)
    for told in (listed, pl.read_csv(tmp_path / "history.csv").to_dicts()):
        assert [(each["was"], each["now"]) for each in told] == changes
    book.remove("weeks")
    assert (book.history()[-1].was, book.history()[-1].now) == (changes[-1][1], None)


def test_a_place_is_in_the_history(book: Ledger, reviews: Source, tmp_path: Path) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    there = tmp_path / "elsewhere.parquet"
    there.write_bytes(b"")
    book.move("reviews", there, sure=True)
    assert told(book)[-1] == ("place", "reviews", None, ", ".join(reviews.where), str(there))


@pytest.mark.parametrize("what", ["UPDATE history SET who = 'somebody'", "DELETE FROM history"])
def test_history_stands(book: Ledger, reviews: Source, what: str) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    with pytest.raises(sqlite3.IntegrityError, match="history"):
        tampered(book, what)


def test_a_ledger_of_schema_7_has_what_it_recorded_without_who(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    book.set_cap("reviews", 2.0, 1e-6)
    book.set_share("reviews", "alice", 0.5, 1e-7)
    ask(book, "a", reviews, 0.1, 1e-8)
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_7)
    before = book.status("reviews")
    assert (book.history(), book.declared_groups()) == ([], {})  # readers change nothing
    book.set_cap("reviews", 3.0, 1e-6)
    assert book.status("reviews").spent == before.spent
    assert told(book) == [
        ("cap", "reviews", None, None, "epsilon 1, delta 1e-06"),
        ("cap", "reviews", None, "epsilon 1, delta 1e-06", "epsilon 2, delta 1e-06"),
        ("share", "reviews", "alice", None, "epsilon 0.5, delta 1e-07"),
        ("cap", "reviews", None, "epsilon 2, delta 1e-06, kept by sums", "epsilon 3, delta 1e-06"),
    ]
    assert [change.who for change in book.history()] == [None, None, None, ME]


def test_history_is_exported(book: Ledger, reviews: Source, tmp_path: Path) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    for suffix, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet)):
        book.export(tmp_path / f"history{suffix}", history=True)
        (row,) = read(tmp_path / f"history{suffix}").to_dicts()
        assert (row["who"], row["what"], row["now"]) == (ME, "cap", "epsilon 1, delta 1e-06")


def test_added_if_missing(book: Ledger, reviews: Source) -> None:
    for _ in range(2):
        assert book.add("reviews", reviews, 1.0, 1e-6, if_missing=True).cap.epsilon == 1.0
    assert book.add("reviews", reviews, 9.0, 1e-6, if_missing=True).cap.epsilon == 1.0
    assert len(book.history()) == 1
    other = Source(reviews.kind, reviews.where, "another column", reviews.content)
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", other, 1.0, 1e-6, if_missing=True)
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", reviews, 1.0, 1e-6)


def test_groups_of_a_column_that_is_not_there(book: Ledger, tmp_path: Path) -> None:
    pl.DataFrame({"u": [1], "t": ["a"], "c": ["DE"]}).write_parquet(tmp_path / "a.parquet")
    book.add("words", Corpus(tmp_path / "a.parquet", user="u", text="t"), 1.0, 1e-6)
    with pytest.raises(CorpusError, match="no column 'country'"):
        book.declare_groups("words", "country", ["DE"])
    book.declare_groups("words", "c", ["DE", "US"])
    assert book.declared_groups() == {"words": {"c": ("DE", "US")}}
    with pytest.raises(UsageError, match="groups: none are declared"):
        book.declare_groups("words", "t", ())


def test_a_copy_is_the_ledger_as_it_was(book: Ledger, reviews: Source, tmp_path: Path) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    ask(book, "a", reviews, 0.5, 1e-7)
    copy = tmp_path / "copies" / "monday.sqlite"
    with pytest.raises(LedgerError, match="its folder exists"):
        book.backup(copy)
    copy.parent.mkdir()
    book.backup(copy)
    assert copy.stat().st_mode & 0o777 == 0o600
    ask(book, "b", reviews, 0.1, 1e-7)
    there = Ledger(copy)
    assert [run.run_id for run in there.runs()] == ["a"]
    assert there.status("reviews").used == pytest.approx(0.5)
    book.backup(copy)  # over the last one
    assert [run.run_id for run in Ledger(copy).runs()] == ["a", "b"]


def test_a_copy_is_never_written_over_the_ledger_nor_of_none(book: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no ledger"):
        book.backup(tmp_path / "copy.sqlite")
    book.path.write_bytes(b"")
    (tmp_path / "link").symlink_to(book.path)
    with pytest.raises(UsageError, match="the ledger itself"):
        book.backup(tmp_path / "link")


def test_a_lost_ledger_is_gone_on_with_from_its_copy(
    book: Ledger, reviews: Source, tmp_path: Path
) -> None:
    """The steps of docs/lost-ledger.md."""
    book.add("reviews", reviews, 3.0, 0.0)
    ask(book, "a", reviews, 1.0)
    copy = tmp_path / "monday.sqlite"
    book.backup(copy)
    book.begin(ask(book, "b", reviews, 0.8).hold)
    book.path.unlink()
    copy.rename(book.path)
    assert "older copy" in (book.behind() or "")
    with pytest.raises(LedgerError, match="older copy"):
        ask(book, "c", reviews, 0.1)
    book.path.with_name(book.path.name + ".seen").unlink()
    book.set_cap("reviews", 3.0 - 0.8, 0.0)
    with pytest.raises(BudgetRefused):
        ask(book, "c", reviews, 1.3)
    ask(book, "c", reviews, 1.2)


def test_the_commands_say_what_goes_with_an_account_and_what_a_copy_lacks(
    book: Ledger, tmp_path: Path
) -> None:
    def said(*words: str) -> str:
        done = CliRunner().invoke(cli, [*words, "--ledger", str(book.path)])
        assert done.exit_code == 0
        return done.output

    book.add("reviews", Source("table", ("told",), "who"), 1.0, 1e-6)
    book.set_share("reviews", "alice", 0.5, 1e-7)
    book.declare_groups("reviews", "country", "DE, US")
    assert "tokens are not in it" not in said("ledger", "backup", str(tmp_path / "a.sqlite"))
    Analysts.of(book).add("alice")
    assert f"copy {Analysts.of(book).path} too" in said("ledger", "backup", str(tmp_path / "b"))
    removed = said("ledger", "remove", "reviews")
    assert "with it went the shares of alice" in removed
    assert "with it went the declared groups of country" in removed
    assert "alice  has a token and no share" in said("serve", "analysts")


def test_a_share_below_what_was_spent_says_that_no_run_may_follow(book: Ledger) -> None:
    source = Source("path", ("/nowhere/a.parquet",), "who")
    book.add("reviews", source, 1.0, 1e-6)
    book.set_share("reviews", "alice", 0.5, 1e-7)
    Analysts.of(book).add("alice")
    ask(Ledger(book.path, "alice"), "one", source, 0.4, 1e-8, account="reviews")
    lower = ["--corpus", "reviews", "--epsilon", "0.1", "--delta", "1e-7"]
    for share, follows in (("0.1", False), ("0.45", True)):
        lower[3] = share
        words = ["serve", "add-analyst", "alice", *lower, "--yes", "--ledger", str(book.path)]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0
        assert ("no run may follow" not in done.output) == follows
