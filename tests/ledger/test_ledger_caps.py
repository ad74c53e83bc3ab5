"""What fits under a cap, what is left of it, and how it is kept."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger import Ledger, Source
from dphh.ledger.budget import Budget, Cap
from dphh.ledger.exact import allowed
from dphh.privacy.events import GaussianEvent
from dphh.privacy.gaussian import gaussian_epsilon
from tests.ledger.asked import ask, items_price, tampered


def test_decimal_prices_add_up_to_their_decimal_sum(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 0.3, 0.0)
    for run in "abc":
        ask(book, run, reviews, 0.1)
    with pytest.raises(BudgetRefused):
        ask(book, "d", reviews, 1e-12)


@pytest.mark.parametrize(("asked", "granted"), [(0.4999999, True), (0.5, True), (0.5000001, False)])
def test_a_near_miss_in_epsilon(book: Ledger, reviews: Source, asked: float, granted: bool) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "first", reviews, 0.5)
    if granted:
        ask(book, "second", reviews, asked)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "second", reviews, asked)


@pytest.mark.parametrize(("asked", "granted"), [(5e-31, True), (5.000001e-31, False)])
def test_a_near_miss_in_a_tiny_delta(
    book: Ledger, reviews: Source, asked: float, granted: bool
) -> None:
    book.add("reviews", reviews, 1.0, 1e-30)
    ask(book, "first", reviews, 0.5, 5e-31)
    if granted:
        ask(book, "second", reviews, 0.5, asked)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "second", reviews, 0.5, asked)


@pytest.mark.parametrize(("times", "granted"), [(1.0001, True), (0.9999, False)])
def test_gaussian_runs_are_composed_tightly(
    book: Ledger, reviews: Source, times: float, granted: bool
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    sigma = math.sqrt(10) * allowed(1.0, 1e-6).sigma
    claim = gaussian_epsilon(1e-7, sigma * 0.9)
    assert 10 * claim > 1.5  # the sums alone would refuse
    for run in range(9):
        ask(book, f"run {run}", reviews, claim, 1e-7, events=[GaussianEvent(sigma)])
    last = [GaussianEvent(sigma * (1 + 10 * (times - 1)))]
    if granted:
        ask(book, "last", reviews, claim, 1e-7, events=last)
        return
    with pytest.raises(BudgetRefused):
        ask(book, "last", reviews, claim, 1e-7, events=last)


def test_a_refusal_says_what_was_asked_spent_and_left_and_records_nothing(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    ask(book, "a", reviews, 0.75, 1e-7)
    with pytest.raises(BudgetRefused) as refused:
        ask(book, "b", reviews, 0.5, 1e-7)
    said = str(refused.value)
    assert "asks for epsilon 0.5, delta 1e-07" in said
    assert "'reviews'" in said
    assert "Used: 75% of it, by 1 run; with this run, " in said
    assert "Left: epsilon 0.25 for one more run at delta 1e-07" in said
    assert refused.value.exit_code == 3
    assert [entry.run_id for entry in book.runs()] == ["a"]


@pytest.mark.parametrize("before", [0, 1, 6])
def test_what_is_left_is_granted_and_no_more(book: Ledger, reviews: Source, before: int) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in range(before):
        ask(book, f"run {run}", reviews, 0.2, 1e-7, events=items_price(0.2, 1e-7))
    left = book.status("reviews").left
    assert left is not None
    assert left.epsilon > 0
    more = left.epsilon * 1.001
    with pytest.raises(BudgetRefused):
        ask(book, "over", reviews, more, left.delta, events=items_price(more, left.delta))
    less = left.epsilon * (1 - 1e-5)
    ask(book, "under", reviews, less, left.delta, events=items_price(less, left.delta))


def test_nothing_spent_leaves_the_whole_cap(book: Ledger, reviews: Source) -> None:
    account = book.add("reviews", reviews, 1.0, 1e-6)
    assert account.left == Budget(1.0, 1e-6)
    assert account.cap == Cap(1.0, 1e-6, "open")
    assert account.spent.epsilon == 0
    assert account.runs == 0


def test_spent_is_never_more_than_the_sum(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in range(3):
        ask(book, f"run {run}", reviews, 0.1, 1e-7)
    assert book.status("reviews").spent.epsilon <= 0.3


def test_a_cap_below_what_was_spent_refuses_all_and_can_be_raised(
    book: Ledger, reviews: Source
) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "a", reviews, 0.5)
    account = book.set_cap("reviews", 0.2, 0.0)
    assert account.left is not None
    assert account.left.epsilon == 0
    with pytest.raises(BudgetRefused, match="nothing"):
        ask(book, "b", reviews, 1e-9)
    book.set_cap("reviews", 1.0, 0.0)
    ask(book, "c", reviews, 0.5)


def test_runs_without_events_cost_their_claim(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-5)
    ask(book, "a", reviews, 0.9, 1e-6, events=[])
    with pytest.raises(BudgetRefused):
        ask(book, "b", reviews, 0.9, 1e-6, events=[])


def test_runs_without_events_cost_their_claim_beside_noise_too(
    book: Ledger, reviews: Source
) -> None:
    """The first run decides how the cap is kept: here by what noise tells."""
    book.add("reviews", reviews, 1.0, 1e-5)
    ask(book, "noise", reviews, 0.5, 1e-6, events=items_price(0.5, 1e-6))
    with pytest.raises(BudgetRefused):
        for run in range(5):
            ask(book, f"none {run}", reviews, 0.9, 1e-6, events=[])


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-0.1, 0.0), (math.nan, 0.0), (math.inf, 0.0), (0.1, -1e-9), (0.1, math.nan), (0.1, 1.0)],
)
def test_no_price_can_give_something_back(
    book: Ledger, reviews: Source, epsilon: float, delta: float
) -> None:
    with pytest.raises(UsageError):
        ask(book, "a", reviews, epsilon, delta, events=[])
    with pytest.raises(UsageError):
        book.add("reviews", reviews, epsilon, delta)


def test_a_claim_far_below_its_events_is_a_mistake(book: Ledger, reviews: Source) -> None:
    with pytest.raises(UsageError, match="claims epsilon 0"):
        ask(book, "a", reviews, 0.0, 1e-6, events=[GaussianEvent(0.5)])


def test_an_unnamed_corpus_is_recorded_without_a_cap(book: Ledger, reviews: Source) -> None:
    reservation = ask(book, "a", reviews, 50.0)
    assert not reservation.capped
    (account,) = book.accounts()
    assert (account.name, account.cap, account.left) == (None, None, None)
    assert account.label == reviews.label
    assert account.spent.epsilon == 50.0
    assert book.status(reviews.label) == account
    assert len(book.runs(reviews.label)) == 1


def test_naming_a_corpus_charges_it_with_its_earlier_runs(
    book: Ledger, reviews: Source, tmp_path: Path
) -> None:
    ask(book, "exactly here", reviews, 0.25)
    ask(book, "the whole folder", Source("path", (str(tmp_path),), "author"), 0.25)
    ask(book, "elsewhere", Source("path", ("/nowhere/at/all.parquet",), "author"), 0.25)
    hold = ask(book, "cancelled", reviews, 0.25).hold
    book.cancel(hold)
    account = book.add("reviews", reviews, 1.0, 0.0)
    assert account.runs == 2
    assert account.spent.epsilon == 0.5
    assert [a.name for a in book.accounts()].count("reviews") == 1
    assert reviews.label not in {a.label for a in book.accounts()}


@pytest.mark.parametrize("name", ["", "a/b", "a*", "x.parquet", "~me", "..", "two words", "a\nb"])
def test_a_name_cannot_be_taken_for_a_path(book: Ledger, reviews: Source, name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        book.add(name, reviews, 1.0, 0.0)


def test_a_name_is_given_once(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 0.0)
    with pytest.raises(UsageError, match="exists"):
        book.add("reviews", reviews, 9.0, 0.0)
    with pytest.raises(UsageError, match="no account 'other'"):
        book.set_cap("other", 1.0, 0.0)
    with pytest.raises(UsageError, match="no account 'other'"):
        ask(book, "a", reviews, account="other")


def test_how_a_cap_is_kept_is_settled_once(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    book.cancel(ask(book, "a", reviews, 0.1, 1e-8).hold)
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "sums")  # by what was asked for first
    ask(book, "b", reviews, 0.1, 1e-8, events=items_price(0.1, 1e-8))
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "sums")
    with pytest.raises(sqlite3.IntegrityError):
        tampered(book, "UPDATE caps SET kept = 'divergence'")
    assert book.set_cap("reviews", 2.0, 1e-6).cap == Cap(2.0, 1e-6, "sums")


def test_an_owner_may_say_how_a_cap_is_kept(book: Ledger, reviews: Source) -> None:
    account = book.add("reviews", reviews, 1.0, 1e-6, "divergence")
    assert account.cap == Cap(1.0, 1e-6, "divergence")
    ask(book, "a", reviews, 0.1, 1e-8)  # alone, the first run would have settled for the sums
    assert book.status("reviews").cap == Cap(1.0, 1e-6, "divergence")
    assert book.set_cap("reviews", 1.0, 1e-6, "sums").cap == Cap(1.0, 1e-6, "sums")
    assert book.set_cap("reviews", 1.0, 1e-6).cap == Cap(
        1.0, 1e-6, "sums"
    )  # as the first run has it
    with pytest.raises(UsageError, match="kept: found 'composed'"):
        book.set_cap("reviews", 1.0, 1e-6, "composed")
    with pytest.raises(UsageError, match="give a delta above 0, or use 'sums'"):
        book.set_cap("reviews", 1.0, 0.0, "divergence")
