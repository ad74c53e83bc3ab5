"""A run from booking to release: repeated, continued, failed, settled, and what is stored of it."""

import os
import re

import pyarrow as pa
import pytest

from dphh import Corpus, Ledger
from dphh.errors import BudgetRefused, LedgerError, UnknownRunError, UsageError
from dphh.ledger import Data
from dphh.ledger import book as ledger_book
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, GaussianEvent
from dphh.reader.corpus import replace_corpus
from dphh.release import Release
from dphh.run import settle
from tests.ledger.asked import DATA, SETTING, ask, asked, granted, tampered


def test_a_price_is_spent_from_booking_on_whatever_becomes_of_the_run(book, reviews):
    book.add("reviews", reviews, 0.1, 0.0)
    booked = ask(book, "a", reviews)
    assert (booked.new, booked.attempt, booked.settled) == (True, 1, False)
    for step, state in (
        (lambda: None, "running"),
        (lambda: book.failed(booked), "failed"),
        (lambda: ask(book, "a", reviews), "running"),
        (lambda: book.settle(booked, {"verb": "items"}, b"PAR1"), "settled"),
        (lambda: book.failed(booked), "settled"),
    ):
        step()
        assert [(run.run_id, run.state) for run in book.runs()] == [("a", state)]
        assert not granted(book, "b", reviews, word="another request")
    assert book.release("a") == ({"verb": "items"}, b"PAR1")


# Repeated requests


def test_the_same_request_on_the_same_data_gets_the_release_and_spends_nothing(book, reviews):
    book.add("reviews", reviews, 0.1, 0.0)
    first = ask(book, None, reviews, max_items=3)
    book.settle(first, {"levels": [1]}, b"rows")
    again = ask(book, None, reviews, max_items=3)
    assert (again.run_id, again.new, again.data) == (first.run_id, False, "d1")
    assert again.settled and book.release(again.run_id) == ({"levels": [1]}, b"rows")
    assert again.accounts == ("reviews",)
    assert ask(book, None, reviews, max_items=3, account="reviews").run_id == first.run_id
    assert len(book.runs()) == 1
    moved = replace_corpus(reviews, where=("/elsewhere/reviews.parquet",))
    assert ask(book, None, moved, max_items=3).run_id == first.run_id
    with pytest.raises(BudgetRefused):  # whatever its files look like
        book.book(asked(reviews, max_items=3), SETTING, Data("d2", "f1"))


def test_a_request_that_is_asked_for_again_pays_again(book, reviews):
    first = ask(book, None, reviews)
    second = book.book(asked(reviews), SETTING, DATA, again=True)
    assert second.new
    assert second.run_id != first.run_id
    assert ask(book, None, reviews).run_id == second.run_id  # the last


def test_data_that_come_back_get_the_release_that_they_had(book, reviews):
    first, second = (book.book(asked(reviews), SETTING, Data(each, None)) for each in "ab")
    assert book.book(asked(reviews), SETTING, Data("a", "new files")).run_id == first.run_id
    assert book.last_like(asked(reviews)).run_id == second.run_id


def test_a_state_of_files_tells_the_data_that_were_read_of_it(book, reviews):
    assert book.data_of("f1") is None
    ask(book, None, reviews)
    assert (book.data_of("f1"), book.data_of("f2")) == (DATA, None)
    assert Ledger(book.path, "alice").data_of("f1") is None


def test_every_ledger_has_its_own_key_and_keeps_it(book, tmp_path):
    other = Ledger(tmp_path / "other.sqlite", create=True)
    keys = [each.data_key() for each in (book, book, other, other)]
    assert {len(key) for key in keys} == {32}
    assert keys[0] == keys[1] != keys[2] == keys[3]
    book.backup(tmp_path / "copy.sqlite")
    assert Ledger(tmp_path / "copy.sqlite").data_key() == keys[0]


def test_a_tests_run_is_found_by_its_id_alone(book, reviews):
    booked = book.book(asked(reviews), SETTING, None)
    book.settle(booked, {"is_test": True}, b"seeded")
    assert book.last_like(asked(reviews)) is None
    assert ask(book, None, reviews).new
    assert book.book(asked(reviews), SETTING, None).new
    assert book.book(asked(reviews), SETTING, None, run_id=booked.run_id).settled


def test_an_analysts_runs_are_apart_from_the_owners(book, reviews):
    book.add("reviews", reviews, 1.0, 0.0)
    for name in ("alice", "bob"):
        book.set_share("reviews", name, 0.5, 0.0)
    books = [book, Ledger(book.path, "alice"), Ledger(book.path, "bob")]
    first = [ask(each, None, reviews, account="reviews") for each in books]
    assert all(each.new for each in first)
    for each, booked in zip(books, first, strict=True):
        again = ask(each, None, reviews, account="reviews")
        assert (again.run_id, again.new) == (booked.run_id, False)
        each.settle(booked, {}, b"rows")
    assert [len(each.runs()) for each in books] == [3, 1, 1]
    for other in (first[0].run_id, first[2].run_id):
        with pytest.raises(UnknownRunError):
            books[1].release(other)
        with pytest.raises(UsageError, match=r"another request \(.* or price\)"):
            ask(books[1], other, reviews, account="reviews", max_items=5)
    assert books[0].release(first[2].run_id).parquet == b"rows"


def test_another_request_with_a_used_id_is_a_mistake(book, reviews):
    ask(book, "a", reviews, max_items=3)
    title = Corpus(reviews.where, user="author", text="title")
    twice = [EpsilonDeltaEvent(0.05, 0), EpsilonDeltaEvent(0.05, 0)]
    for corpus, other, told in (
        (reviews, {"max_items": 4}, "; other here: max_items)"),
        (reviews, {"max_items": 3, "epsilon": 0.2}, "price)"),
        (reviews, {"max_items": 3, "delta": 1e-9}, "price)"),
        (reviews, {"max_items": 3, "events": twice}, "price)"),
        (title, {"max_items": 3}, "price)"),
    ):
        with pytest.raises(UsageError, match=rf"another request .*{re.escape(told)}"):
            ask(book, "a", corpus, **other)
    assert len(book.runs()) == 1


def test_notes_of_events_make_no_other_request(book, reviews):
    first = ask(book, None, reviews, 0.1, 1e-9, events=[GaussianEvent(60.0, note="one level")])
    again = ask(book, None, reviews, 0.1, 1e-9, events=[GaussianEvent(60.0, note="the only level")])
    other = ask(book, None, reviews, 0.1, 1e-9, events=[GaussianEvent(60.0), DeltaEvent(1e-10)])
    assert (again.run_id, other.new) == (first.run_id, True)
    assert book.runs()[0].events[0].note == "one level"


def test_what_would_be_refused_is_refused_before_anything_is_read(book, reviews):
    book.add("reviews", reviews, 0.1, 0.0)
    assert book.before_reading(asked(reviews), None) is None
    ask(book, "a", reviews)
    refused = (
        (asked(reviews, word="other"), None, {}),
        (asked(reviews, word="other"), None, {"run_id": "a new id"}),
        (asked(reviews), None, {"again": True}),
        (asked(reviews), Data("d2", "f2"), {}),
    )
    for request, data, how in refused:
        with pytest.raises(BudgetRefused):
            book.before_reading(request, data, **how)
    assert book.before_reading(asked(reviews), None) is None  # its data may be those of run a
    assert book.before_reading(asked(reviews), None, run_id="a") is None  # it goes on, and has paid
    with pytest.raises(UsageError, match="another request"):
        book.before_reading(asked(reviews, 0.05), None, run_id="a")
    book.settle(ask(book, "a", reviews), {}, b"rows")
    assert book.before_reading(asked(reviews), None, run_id="a").settled
    assert book.before_reading(asked(reviews), DATA).settled
    assert len(book.runs()) == 1


# Runs that go on


def test_a_run_that_did_not_finish_goes_on_by_its_own_key_for_nothing(book, reviews, tmp_path):
    book.add("reviews", reviews, 0.1, 0.0)
    booked = ask(book, None, reviews)
    assert len(booked.key) == 32
    assert booked.key != ask(Ledger(tmp_path / "other", create=True), None, reviews).key
    assert [(booked.key,)] == tampered(book, "SELECT key FROM runs")
    assert repr(booked.key) not in repr(booked)
    for attempt in (2, 3):
        book.failed(booked)
        again = ask(book, None, reviews)
        assert (again.new, again.key, again.attempt) == (False, booked.key, attempt)
        assert again.accounts == ("reviews",)
    assert len(book.runs()) == 1


def test_a_run_goes_on_as_it_began_or_not_at_all(book, reviews):
    ask(book, "a", reviews)
    for changed, said in (
        ({**SETTING, "data": "78"}, r"its data changed since it began\. Its price stays spent"),
        ({**SETTING, "engine": "polars"}, r"its engine .* \(then duckdb 2.0.0; now polars\)"),
        ({"data": "77"}, r"its engine changed .*now unknown"),
        ({**SETTING, "more": "1"}, r"its more changed .*then unknown; now 1"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            book.book(asked(reviews), changed, DATA, run_id="a")
        assert not re.search("7[78]", str(refused.value))  # an analyst may read it
    assert ask(book, "a", reviews).attempt == 2  # a refusal is no attempt
    assert book.runs()[0].state == "running"


def test_attempts_at_a_run_are_numbered_and_few(book, reviews):
    begun = [ask(book, "a", reviews).attempt for _ in range(ledger_book.MOST_ATTEMPTS)]
    assert begun == list(range(1, 21))
    with pytest.raises(LedgerError, match=r"was begun 20 times and never finished.*stays spent"):
        ask(book, "a", reviews)
    assert ask(book, "b", reviews).attempt == 1


# Levels and releases


@pytest.mark.parametrize("rows", [b"rows", b""])
def test_a_level_stays_as_it_was_first_stored(book, reviews, rows):
    one, other = (ask(book, run, reviews) for run in ("a", "b"))
    assert book.drawn(one, "level 1") is None
    assert book.keep_drawn(one, "level 1", rows) == rows
    assert book.keep_drawn(one, "level 1", b"drawn by another process") == rows
    assert book.drawn(one, "level 1") == rows
    for step in ("level 2", "level 10", "LEVEL 1", "level"):
        assert book.drawn(one, step) is None
    assert book.drawn(other, "level 1") is None


def test_a_settled_run_draws_nothing_more(book, reviews):
    run = ask(book, "a", reviews)
    book.settle(run, {}, b"rows")
    for late in (lambda: book.drawn(run, "1"), lambda: book.keep_drawn(run, "1", b"rows")):
        with pytest.raises(LedgerError, match="is not going on"):
            late()
    assert [entry.state for entry in book.runs()] == ["settled"]


def test_a_release_that_a_replaced_ledger_does_not_record_is_not_shown(book, reviews, tmp_path):
    booked = ask(Ledger(tmp_path / "the newer one", create=True), "a", reviews)
    release = Release(pa.table({"item": ["a"]}), {"run_id": "a"})
    with pytest.raises(UnknownRunError, match="is not going on in this ledger"):
        settle(book, release, booked)


def test_of_two_processes_the_first_to_settle_decides(book, reviews):
    run = ask(book, "a", reviews)
    assert book.settle(run, {"by": "one"}, b"one") == ({"by": "one"}, b"one")
    assert book.settle(run, {"by": "other"}, b"other") == ({"by": "one"}, b"one")
    assert book.release("a") == ({"by": "one"}, b"one")


def test_a_settled_run_leaves_neither_key_nor_levels_in_the_file(book, reviews):
    level = os.urandom(10_000)
    booked = ask(book, "a", reviews)
    book.keep_drawn(booked, "level 1", level)
    assert booked.key in book.path.read_bytes()
    book.settle(booked, {}, b"rows")
    kept = book.path.read_bytes()
    assert booked.key not in kept
    assert all(level[at : at + 100] not in kept for at in range(0, len(level), 1000))
    assert ask(book, "a", reviews).key == b""


def test_a_run_without_a_release_says_so(book, reviews):
    ask(book, "a", reviews)
    with pytest.raises(LedgerError, match="no release: its state is running"):
        book.release("a")


def test_a_run_does_not_go_on_in_a_ledger_that_was_put_in_this_ones_place(
    book: Ledger, reviews: Corpus
) -> None:
    """What was drawn at one price would be stored under a run that paid another."""
    book.add("reviews", reviews, 5.0, 0.0)
    older = book.path.read_bytes()
    mine = ask(book, "mine", reviews, 3.0)
    book.path.write_bytes(older)
    other = ask(book, "other", reviews, 0.1)
    assert [run.run_id for run in book.runs()] == ["other"]
    for step in (
        lambda: book.drawn(mine, "level 1"),
        lambda: book.keep_drawn(mine, "level 1", b"rows"),
        lambda: book.settle(mine, {}, b"rows"),
    ):
        with pytest.raises(UnknownRunError, match="mine is not going on in this ledger"):
            step()
    assert book.drawn(other, "level 1") is None
