"""Data that were moved pay on the account that they had, and what became of them is said."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import dphh
from dphh import Corpus, Ledger, UsageError, items
from dphh.errors import BudgetRefused, ElsewhereRefused, LedgerError, Notice
from dphh.ledger import Request, Source
from dphh.ledger.marks import BYTES_OF_MARK, LAST, SLOTS, SMALL_FILE, Marks, keep_marks, marks
from dphh.ledger.schema import reading, writing
from tests.ledger.asked import ask, tampered
from tests.ledger.test_ledger_older import BACK_TO_SCHEMA_6

ROWS = {"who": ["1", "2"], "what": ["a", "b"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files, in two folders."""
    for number in range(4):
        file = tmp_path / "reviews" / f"year={number // 2}" / f"{number}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({**ROWS, "number": [number] * 2}).write_parquet(file)
    return tmp_path / "reviews"


def paths(*where: Path | str) -> Source:
    return Source("path", tuple(map(str, where)), "who")


def moved(folder: Path) -> Path:
    return folder.rename(folder.with_name("elsewhere"))


def refused(book: Ledger, source: Source) -> str:
    with pytest.raises(BudgetRefused) as caught:
        ask(book, "too much", source, 5.0)
    return str(caught.value)


# Who pays


def whole(folder: Path) -> Source:
    return paths(moved(folder))


def by_a_glob(folder: Path) -> Source:
    return paths(moved(folder) / "**" / "*.parquet")


def one_of_its_files(folder: Path) -> Source:
    return paths(shutil.move(folder / "year=1" / "3.parquet", folder.parent / "x.data"))


def among_others(folder: Path) -> Source:
    other = folder.parent / "other"
    other.mkdir()
    pl.DataFrame(ROWS).write_parquet(other / "new.parquet")
    (folder / "year=0" / "0.parquet").rename(other / "0.parquet")
    return paths(other)


def a_copy_that_keeps_its_times(folder: Path) -> Source:
    return paths(shutil.copytree(folder, folder.with_name("copy")))


@pytest.mark.parametrize(
    "elsewhere",
    [
        whole,
        by_a_glob,
        one_of_its_files,
        among_others,
        a_copy_that_keeps_its_times,
    ],
)
def test_data_that_were_moved_pay_on_the_account_that_they_had(
    elsewhere: Callable[[Path], Source], book: Ledger, folder: Path
) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    ask(book, "one", paths(folder), 0.6)
    source = elsewhere(folder)
    assert book.accounts_touched(source) == ("reviews",)
    said = refused(book, source)
    assert "was a file of 'reviews' before it was moved or copied there" in said
    assert "dphh ledger move reviews PATH" in said
    again = ask(book, "two", source, 0.4)
    assert (again.accounts, again.capped) == (("reviews",), True)
    assert len(again.moved) == 1
    assert book.status("reviews").spent.epsilon == 1.0


def test_other_data_do_not_pay(book: Ledger, folder: Path, tmp_path: Path) -> None:
    """Nor are they taken for the account's where they hold the same: another time tells them."""
    (folder / "README.md").write_text("as everywhere")
    book.add("reviews", paths(folder), 1.0, 0.0)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy2(folder / "README.md", other)
    shutil.copyfile(folder / "year=0" / "0.parquet", other / "0.parquet")
    assert book.accounts_touched(paths(other)) == ()


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl.gz", "x.TSV", "x.duckdb"])
def test_files_of_other_formats_are_known_too(name: str, book: Ledger, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"who,what\n1,a\n" * 5_000)
    book.add("reviews", paths(tmp_path / name), 1.0, 0.0)
    (tmp_path / "there").mkdir()
    there = (tmp_path / name).rename(tmp_path / "there" / name)
    assert book.accounts_touched(paths(there)) == ("reviews",)


def test_files_that_came_after_the_account_are_known_once_a_run_read_them(
    book: Ledger, folder: Path
) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    new = folder / "year=2" / "new.parquet"
    new.parent.mkdir()
    pl.DataFrame(ROWS).write_parquet(new)
    ask(book, "one", paths(new))
    there = new.rename(folder.with_name("new.parquet"))
    assert book.accounts_touched(paths(there)) == ("reviews",)


def test_a_file_is_its_own_accounts_and_not_of_those_that_paid_beside_it(
    book: Ledger, folder: Path
) -> None:
    book.add("one", paths(folder / "year=0"), 1.0, 0.0)
    book.add("other", paths(folder / "year=1"), 1.0, 0.0)
    assert ask(book, "both", paths(folder)).accounts == ("one", "other")
    assert book.accounts_touched(paths(folder / "year=1")) == ("other",)
    there = (folder / "year=1").rename(folder.with_name("there"))
    assert book.accounts_touched(paths(there)) == ("other",)


def test_a_file_that_is_moved_in_after_the_reservation_is_caught_before_reading(
    book: Ledger, folder: Path, tmp_path: Path
) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    mine = tmp_path / "mine.parquet"
    pl.DataFrame(ROWS).write_parquet(mine)
    hold = ask(book, "a", paths(mine), 5.0).hold
    (folder / "year=0" / "0.parquet").rename(mine)
    with pytest.raises(LedgerError, match="did not pay"):
        book.begin(hold)


def test_what_was_spent_before_anybody_named_the_data_counts_where_they_lie_now(
    book: Ledger, folder: Path
) -> None:
    ask(book, "one", paths(folder), 0.25)
    ask(book, "of other data", paths(folder.parent / "other.parquet"), 0.5)
    there = moved(folder)
    assert book.add("reviews", paths(there), 1.0, 0.0).spent.epsilon == 0.25


def test_a_second_name_for_moved_data_is_no_fresh_cap(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    ask(book, "one", paths(folder), 0.75)
    there = paths(moved(folder))
    with pytest.warns(Notice, match="was a file of 'reviews' before"):
        assert book.add("again", there, 9.0, 0.0).spent.epsilon == 0.75
    assert book.accounts_touched(there) == ("reviews", "again")
    assert "of the account 'reviews'" in refused(book, there)


def test_an_analyst_learns_of_no_other_account(book: Ledger, folder: Path, tmp_path: Path) -> None:
    book.add("secret", paths(folder), 1.0, 0.0)
    book.add("theirs", paths(tmp_path / "theirs"), 9.0, 0.0)
    (tmp_path / "theirs").mkdir()
    (folder / "year=0" / "0.parquet").rename(tmp_path / "theirs" / "0.parquet")
    book.set_share("theirs", "ann", 9.0, 0.0)
    request = Request(paths(tmp_path / "theirs"), "items", {}, [], 5.0, 0.0, account="theirs")
    with pytest.raises(ElsewhereRefused) as caught:
        Ledger(book.path, "ann").reserve("a", request)
    assert "secret" not in str(caught.value)


# What is kept


def test_marks_tell_neither_how_many_files_there_are_nor_the_same_in_two_ledgers(
    book: Ledger, folder: Path, tmp_path: Path
) -> None:
    other = Ledger(tmp_path / "other.sqlite")
    for each in (book, other):
        each.add("all", paths(folder), 1.0, 0.0)
        each.add("one", paths(folder / "year=0" / "0.parquet"), 1.0, 0.0)
    kept = [
        {slots[at : at + BYTES_OF_MARK] for at in range(0, len(slots), BYTES_OF_MARK)}
        for each in (book, other)
        for (slots,) in tampered(each, "SELECT slots FROM marks")
    ]
    assert [len(slots) for slots in kept] == [SLOTS] * 4
    assert len(kept[0] & kept[1]) == 1  # the one file; all else is chance
    assert not (kept[0] | kept[1]) & (kept[2] | kept[3])


def test_marks_of_files_that_are_there_are_never_given_up(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    with reading(book.path) as con:
        before = marks(con)
    there = set(before.of_files(map(str, folder.rglob("*.parquet"))).values())
    for _ in range(20):
        new = {os.urandom(BYTES_OF_MARK) for _ in range(SLOTS // 2)}
        with writing(book.path) as con:
            keep_marks(con, 1, there | new)
    with reading(book.path) as con:
        kept = marks(con).of_accounts[1]
    slots = {kept[at : at + BYTES_OF_MARK] for at in range(0, len(kept), BYTES_OF_MARK)}
    assert there | new <= slots
    assert len(slots) == SLOTS


def test_of_more_files_than_there_are_slots_so_many_are_kept(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    many = {os.urandom(BYTES_OF_MARK) for _ in range(3 * SLOTS)}
    for _ in range(2):
        with writing(book.path) as con:
            keep_marks(con, 1, many)
        ((kept,),) = tampered(book, "SELECT slots FROM marks")
        assert {kept[at : at + BYTES_OF_MARK] for at in range(0, len(kept), BYTES_OF_MARK)} <= many


def test_no_more_of_a_file_is_read_than_its_ends(tmp_path: Path) -> None:
    """As much is not on any disk; and nobody waits for a pipe."""
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(1 << 42)
    os.mkfifo(tmp_path / "pipe.csv")
    found = Marks(b"key").of_files([str(large), str(tmp_path / "pipe.csv"), "/no/such.csv"])
    assert list(found) == [str(large)]


def test_a_small_file_whose_time_can_be_guessed_has_no_mark(tmp_path: Path) -> None:
    for name, size, time in (("small", 100, 10**9), ("large", SMALL_FILE, 10**9), ("fine", 100, 1)):
        (tmp_path / f"{name}.csv").write_bytes(bytes(size))
        os.utime(tmp_path / f"{name}.csv", ns=(time, time))
    found = Marks(b"key").of_files(map(str, tmp_path.iterdir()))
    assert {Path(file).stem for file in found} == {"large", "fine"}


@pytest.mark.parametrize("place", [0, LAST * 2, LAST * 3 - 1])
def test_what_changes_at_an_end_or_in_size_or_time_is_another_file(
    tmp_path: Path, place: int
) -> None:
    def mark(content: bytes, time: int = 1) -> bytes:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv"
        file.write_bytes(content)
        os.utime(file, ns=(time, time))
        return Marks(b"key").of_files([str(file)])[str(file)]

    content = bytearray(LAST * 3)
    before = mark(content)
    assert mark(content) == before
    assert mark(content, time=2) != before
    content[place] = 1
    assert mark(content) != before
    assert mark(bytes(LAST * 3 + 1)) != before


def test_a_ledger_of_schema_6_has_no_marks_until_it_is_written_to(
    book: Ledger, folder: Path
) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    before = book.status("reviews")
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_6)
    assert book.accounts_touched(paths(folder)) == ("reviews",)  # readers change nothing
    assert book.gone() == ()
    assert book.status("reviews") == before
    assert tampered(book, "PRAGMA user_version") == [(6,)]
    ask(book, "one", paths(folder), 0.5)
    there = moved(folder)
    assert book.accounts_touched(paths(there)) == ("reviews",)
    assert "'reviews'" in refused(book, paths(there))


def test_an_account_of_schema_6_whose_files_were_moved_since_is_said_to_have_lost_them(
    book: Ledger, folder: Path
) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    ask(book, "one", paths(folder), 0.5)
    with closing(sqlite3.connect(book.path)) as con, con:
        con.executescript(BACK_TO_SCHEMA_6)
    there = moved(folder)
    assert [account.name for account in book.gone()] == ["reviews"]
    assert book.accounts_touched(paths(there)) == ()  # nothing was kept to know them by
    with pytest.raises(UsageError, match="never read by a run"):
        book.move("reviews", there)
    assert book.move("reviews", there, sure=True).spent.epsilon == 0.5


# Where an owner says that they lie


def test_an_account_is_moved_with_its_cap_and_what_it_spent(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    ask(book, "one", paths(folder), 0.75)
    before = book.status("reviews")
    there = moved(folder)
    after = book.move("reviews", there / "**" / "*.parquet")
    assert after.source.where == (f"{there}/**/*.parquet",)
    assert (after.cap, after.spent.epsilon, after.user) == (before.cap, 0.75, "who")
    assert book.gone() == ()
    assert ask(book, "two", paths(there), 0.25).moved == ()
    refused(book, paths(there))
    pl.DataFrame(ROWS).write_parquet(there / "later.parquet")
    assert book.accounts_touched(paths(there / "later.parquet")) == ("reviews",)


def test_runs_that_read_the_new_place_before_count(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    other = folder.with_name("elsewhere")
    other.mkdir()
    pl.DataFrame(ROWS).write_parquet(other / "there already.parquet")
    ask(book, "unnamed", paths(other), 0.5)
    for file in sorted(folder.rglob("*.parquet")):
        file.rename(other / file.name)
    assert book.move("reviews", other).spent.epsilon == 0.5


def test_an_account_is_not_moved_to_other_data(book: Ledger, folder: Path, tmp_path: Path) -> None:
    before = book.add("reviews", paths(folder), 1.0, 0.0)
    other = tmp_path / "other.parquet"
    pl.DataFrame(ROWS).write_parquet(other)
    with pytest.raises(UsageError, match="still has files at"):
        book.move("reviews", other)
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="is known as a file of 'reviews'"):
        book.move("reviews", other)
    with pytest.raises(UsageError, match="Found no file at"):
        book.move("reviews", tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no account 'others'"):
        book.move("others", other)
    assert book.status("reviews") == before
    assert book.move("reviews", other, sure=True).source.where == (str(other),)


def test_an_account_is_not_moved_while_files_of_it_are_left(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    there = (folder / "year=1").rename(folder.with_name("elsewhere"))
    with pytest.raises(UsageError, match="still has files at"):
        book.move("reviews", there)
    both = book.move("reviews", [folder, there])
    assert both.source.where == (str(folder), str(there))
    only = book.move("reviews", there, sure=True)
    assert only.source.where == (str(there),)
    assert book.accounts_touched(paths(folder)) == ("reviews",)  # what was marked pays on


def test_a_frames_account_lies_nowhere(book: Ledger, folder: Path) -> None:
    book.add("frames", Source("frame", ("rows",), "who"), 1.0, 0.0)
    with pytest.raises(UsageError, match="table in memory"):
        book.move("frames", folder)
    assert book.gone() == ()


# What is gone


def test_an_account_whose_files_are_gone_is_told(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder / "**" / "*.parquet"), 1.0, 0.0)
    book.add("one", paths(folder / "year=0" / "0.parquet"), 1.0, 0.0)
    book.add("not-there-yet", paths(folder.parent / "later"), 1.0, 0.0)
    book.add("in-a-store", paths("s3://bucket/a.parquet"), 1.0, 0.0)
    assert book.gone() == ()
    (folder / "year=0" / "0.parquet").unlink()
    assert [account.name for account in book.gone()] == ["one"]
    moved(folder)
    assert [account.name for account in book.gone()] == ["reviews", "one"]


def test_what_is_deleted_is_no_news(book: Ledger, folder: Path) -> None:
    book.add("reviews", paths(folder), 1.0, 0.0)
    with pytest.raises(UsageError, match="has files at"):
        book.deleted("reviews")
    there = moved(folder)
    assert book.deleted("reviews").name == "reviews"
    assert book.gone() == ()
    assert book.accounts_touched(paths(there)) == ("reviews",)  # and yet it is known
    book.move("reviews", there)
    shutil.rmtree(there)
    assert [account.name for account in book.gone()] == ["reviews"]


def test_every_run_says_what_is_gone_and_who_pays_for_it(folder: Path, ledger: Ledger) -> None:
    ledger.add("reviews", Corpus(folder, user="who", text="what"), 1.0, 1e-6)
    corpus = Corpus(moved(folder), user="who", text="what")
    plan = items(corpus, epsilon=0.1, delta=1e-8)
    assert "before it was moved or copied there" in plan.describe(ledger)
    with pytest.warns(Notice) as caught:
        plan.run(ledger=ledger)
    said = [str(each.message) for each in caught]
    assert any("no file of the account 'reviews'" in each for each in said)
    assert any("was a file of 'reviews' before it was moved" in each for each in said)
    (run,) = ledger.runs()
    assert run.accounts == ("reviews",)
    assert "no file of the account 'reviews'" in repr(dphh.check(corpus, ledger=ledger))


def test_a_ledger_that_is_not_there_is_not_called_empty(book: Ledger, folder: Path) -> None:
    assert "There is no ledger at" in repr(book)
    book.add("reviews", paths(folder), 1.0, 0.0)
    ask(book, "one", paths(folder))
    assert (book.absent(), book.behind()) == (None, None)
    book.path.unlink()
    assert "or lost" in repr(book)
    assert "or lost" in str(book.behind())
    corpus = Corpus(folder, user="who", text="what")
    checked = dphh.check(corpus, ledger=book)
    assert not checked.ok
    assert "or lost" in repr(checked)
