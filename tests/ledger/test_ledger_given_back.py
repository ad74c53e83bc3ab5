"""What never ran is given back when a run settles, and on no other way (docs/ledger.md)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from dphh import Corpus, items, ngrams
from dphh.cli import cli
from dphh.errors import BudgetRefused, LedgerError
from dphh.ledger import Hold, Ledger, Request, Source, source_of
from dphh.ledger.budget import Booking, Cap, checked_draw, fits, given_back, left, spent
from dphh.ledger.exact import allowed, drawn
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, Event, GaussianEvent, SetUnionEvent
from dphh.refunds import drawn_events

CAP = (1.0, 1e-6)
NOISE = GaussianEvent(9.5**0.5 * allowed(*CAP).sigma)  # nine of these fit, not ten
LESS: list[Event] = [NOISE]
BOOKED: list[Event] = [NOISE] * 4 + [DeltaEvent(1e-7)]


def ask(book: Ledger, run: str, source: Source, events: Sequence[Event] = BOOKED) -> Hold:
    hold = book.reserve(run, Request(source, "ngrams", {}, events, 0.9, 9e-7)).hold
    book.begin(hold)
    return hold


def test_what_never_ran_is_free_for_others_once_the_run_settles(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, *CAP)
    first, second = ask(book, "a", reviews), ask(book, "b", reviews)
    with pytest.raises(BudgetRefused):
        ask(book, "c", reviews)
    book.settle(first, {}, b"rows", LESS)
    third = ask(book, "c", reviews)  # 1 + 4 + 4 of nine
    with pytest.raises(BudgetRefused):
        ask(book, "d", reviews, LESS)
    for hold in (second, third):
        book.settle(hold, {}, b"rows")
    with pytest.raises(BudgetRefused):
        ask(book, "d", reviews, LESS)
    account = book.status("reviews")
    assert account.given_back is not None
    assert account.given_back.runs == 1
    assert account.given_back.of_noise == pytest.approx(3 / 9.5)
    assert account.given_back.of_thresholds == pytest.approx(1e-7 / (CAP[1] * 15 / 16))
    assert [run.drawn for run in book.runs()] == [(NOISE,), None, None]
    assert "1 run used less than reserved, so that 31.6%" in repr(account)


def test_ledger_show_says_what_came_back(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, *CAP)
    book.settle(ask(book, "a", reviews), {}, b"rows", LESS)
    shown = CliRunner().invoke(cli, ["ledger", "show", "reviews", "--ledger", str(book.path)])
    assert "1 run used less than reserved, so that 31.6%" in shown.output
    assert "drew less than was reserved, and the rest was given back" in shown.output
    told = CliRunner().invoke(
        cli, ["ledger", "show", "reviews", "--json", "--ledger", str(book.path)]
    )
    found = json.loads(told.output)
    assert found["given_back"]["runs"] == 1
    assert found["runs"][0]["drawn"] == [NOISE.to_json()]


def test_a_run_that_did_not_finish_keeps_its_whole_charge(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, *CAP)
    for run in "ab":
        ask(book, run, reviews)
    assert book.status("reviews").given_back is None
    with pytest.raises(BudgetRefused):
        ask(book, "c", reviews, [NOISE, NOISE])


def test_nothing_else_gives_back(book: Ledger, reviews: Source) -> None:
    """Past the Python code: a run that does not settle now, and one that has."""
    book.add("reviews", reviews, *CAP)
    hold = book.reserve("a", Request(reviews, "ngrams", {}, BOOKED, 0.9, 9e-7)).hold
    for _ in range(2):  # reserved, then settled
        with (
            closing(sqlite3.connect(book.path)) as con,
            pytest.raises(sqlite3.IntegrityError, match="only a run that settles"),
        ):
            con.execute("INSERT INTO drawn VALUES (1, '[]')")
        if book.runs()[0].state == "reserved":
            book.begin(hold)
            book.settle(hold, {}, b"rows", LESS)
    for statement in ("UPDATE drawn SET events = '[]'", "UPDATE charges SET cap = 1"):
        with (
            closing(sqlite3.connect(book.path)) as con,
            pytest.raises(sqlite3.IntegrityError, match="cannot be changed"),
        ):
            con.execute(statement)


def test_a_run_cannot_have_drawn_more_than_it_reserved(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, *CAP)
    hold = ask(book, "a", reviews)
    for more in ([NOISE] * 5, [DeltaEvent(1.1e-7)], [EpsilonDeltaEvent(0.1, 0.0)]):
        with pytest.raises(LedgerError, match="used more than it had reserved"):
            book.settle(hold, {}, b"rows", more)
    assert [run.state for run in book.runs()] == ["running"]
    step = EpsilonDeltaEvent(0.1, 0.0)  # a step of its own is whole or not at all
    with pytest.raises(LedgerError):
        checked_draw([NOISE, step], [NOISE])
    assert checked_draw([NOISE, NOISE, step], [step, NOISE]) == (step, NOISE)


def test_a_run_that_fits_by_being_alone_leaves_nothing_however_it_went() -> None:
    """Its own theorem spends all of delta on the ways that it might have gone."""
    plan = ngrams(epsilon=CAP[0], delta=CAP[1], max_n=3, method="dpne")
    assert not drawn(plan.events, allowed(*CAP).order).within(allowed(*CAP))
    alone = Booking(plan.events, *CAP, drew=plan.events[:2])
    assert not fits([alone, Booking((GaussianEvent(1e4),), 0.01, 1e-9)], Cap(*CAP))
    assert left([alone], Cap(*CAP)).epsilon == 0
    assert given_back([alone], Cap(*CAP)) is None
    # Under a cap that it fits beside others, it gives back.
    large = Cap(2.0, 4e-6)
    assert left([alone], large).epsilon > left([Booking(plan.events, *CAP)], large).epsilon
    assert spent([alone], large).epsilon < spent([Booking(plan.events, *CAP)], large).epsilon


@pytest.mark.parametrize("kept", ["sums", "composed"])
def test_caps_that_are_kept_otherwise_take_nothing_back(kept: str) -> None:
    run = Booking((NOISE,) * 4, 0.5, 5e-7)
    less = Booking((NOISE,) * 4, 0.5, 5e-7, drew=(NOISE,))
    cap = Cap(*CAP, kept)  # type: ignore[arg-type]
    assert given_back([less], cap) is None
    assert left([less], cap) == left([run], cap)
    assert spent([less], cap) == spent([run], cap)


def test_a_smaller_cap_counts_what_was_reserved_under_a_larger_one(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, *CAP)
    book.settle(ask(book, "a", reviews), {}, b"rows", LESS)
    assert book.status("reviews").given_back is not None
    book.set_cap("reviews", 0.9, 1e-6)
    assert book.status("reviews").given_back is None
    book.set_cap("reviews", 1.5, 1e-6)
    assert book.status("reviews").given_back is not None


def test_runs_from_before_a_corpus_was_named_count_in_full(book: Ledger, reviews: Source) -> None:
    book.settle(ask(book, "a", reviews), {}, b"rows", LESS)
    assert book.add("reviews", reviews, *CAP).given_back is None
    with pytest.raises(BudgetRefused):
        ask(book, "b", reviews, [NOISE] * 6)


def test_an_analysts_share_counts_what_they_reserved(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, *CAP)
    book.set_share("reviews", "ann", *CAP)
    ann = Ledger(book.path, analyst="ann")
    request = Request(reviews, "ngrams", {}, BOOKED, 0.9, 9e-7, account="reviews")
    for run in "ab":
        hold = ann.reserve(run, request).hold
        ann.begin(hold)
        ann.settle(hold, {}, b"rows", LESS)
    with pytest.raises(BudgetRefused, match="ann's share"):
        ann.reserve("c", request)
    ask(book, "c", reviews)


def test_a_ladder_that_finds_no_words_pays_for_level_1_alone(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    pl.DataFrame({"who": range(50), "what": [f"w{i} v{i}" for i in range(50)]}).write_parquet(path)
    corpus = Corpus(path, user="who", text="what")
    book = Ledger(tmp_path / "ledger.sqlite")
    book.add("texts", source_of(corpus), 4.0, 1e-5)
    for method in ("dpne", "forecast"):
        plan = ngrams(corpus, max_n=4, epsilon=1.0, delta=1e-6, method=method)
        release = plan.run(ledger=book, run_id=method)
        assert release.to_arrow().num_rows == 0
        (entry,) = (run for run in book.runs() if run.run_id == method)
        assert entry.events == plan.events
        assert entry.drawn is not None
        assert [event.to_json() for event in entry.drawn] == release.manifest["drawn"]
        order = 8.0
        whole, less = drawn(plan.events, order), drawn(entry.drawn, order)
        assert less.divergence == pytest.approx(whole.divergence / 4, rel=0.1)
        assert less.delta <= whole.delta
    given = book.status("texts").given_back
    assert given is not None
    assert given.runs == 2


def test_a_run_whose_levels_all_drew_gives_nothing_back() -> None:
    for plan in (
        items(epsilon=1, delta=1e-6, method="gaussian"),
        items(epsilon=1, delta=1e-6, method="sips"),
    ):
        assert drawn_events(plan.price, plan.levels, True) == plan.events
        assert isinstance(plan.events[0], (SetUnionEvent, GaussianEvent))
