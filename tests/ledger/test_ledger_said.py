"""The sentence that an officer reads out: what is promised, what share is used, what may follow."""

from __future__ import annotations

import re

import pytest

from dphh.errors import BudgetRefused
from dphh.ledger import Account, Ledger, Source
from dphh.ledger.budget import percent
from dphh.ledger.wording import accounts_text, guarantee_sentence, usage_phrase
from tests.ledger.asked import ask, items_price


def sentence(account: Account) -> str:
    return guarantee_sentence(account)


def test_nothing_used_leaves_all(book: Ledger, reviews: Source) -> None:
    assert sentence(book.add("reviews", reviews, 1.0, 1e-7)) == (
        "promised to each user: (1, 1e-07), whoever asks what in whatever order; "
        "nothing of it is used; a first run may have epsilon 1 at delta 1e-07"
    )


def test_what_is_used_and_what_may_follow_add_up(book: Ledger, reviews: Source) -> None:
    """It said "spent 0.8047, cap 1, left 0.1" of a run of 0.9."""
    book.add("reviews", reviews, 1.0, 1e-6, "sums")
    ask(book, "a", reviews, 0.9, 1e-7, events=items_price(0.9, 1e-7))
    account = book.status("reviews")
    assert account.spent.epsilon < 0.85  # the smallest at the cap's delta, for programs
    assert sentence(account).endswith(
        "90% of it is used, by 1 run; one more may have epsilon 0.1 at delta 9e-07"
    )


@pytest.mark.parametrize("kept", ["sums", "divergence"])
@pytest.mark.parametrize("epsilon", [0.31, 0.1])
def test_what_is_said_to_be_left_is_granted_until_all_is_used(
    book: Ledger, reviews: Source, epsilon: float, kept: str
) -> None:
    book.add("reviews", reviews, 1.0, 1e-6, kept)  # type: ignore[arg-type]
    before = 0.0
    for run in range(3):
        ask(book, f"run {run}", reviews, epsilon, 1e-8, events=items_price(epsilon, 1e-8))
        account = book.status("reviews")
        assert account.used is not None
        assert before < account.used < 1
        before = account.used
    found = re.search(r"one more.* may have epsilon (\S+) at delta (\S+)$", sentence(account))
    assert found is not None
    assert ("of items, ngrams or counts" in found[0]) == (kept == "divergence")
    left, delta = map(float, found.groups())
    with pytest.raises(BudgetRefused):
        more = left * 1.002
        ask(book, "over", reviews, more, delta, events=items_price(more, delta))
    ask(book, "last", reviews, left, delta, events=items_price(left, delta))
    assert book.status("reviews").used == pytest.approx(1, abs=2e-3)


def test_all_is_used_by_one_run_that_takes_all(book: Ledger, reviews: Source) -> None:
    book.add("reviews", reviews, 1.0, 1e-6)
    ask(book, "a", reviews, 1.0, 1e-6, events=items_price(1.0, 1e-6))
    said = sentence(book.status("reviews"))
    assert said.endswith("100% of it is used, by 1 run; no run may follow")


def test_a_larger_cap_is_used_less(book: Ledger, reviews: Source) -> None:
    """Raising delta alone lowered what was said to be spent; a share of what was raised is one."""
    book.add("reviews", reviews, 1.0, 1e-6)
    ask(book, "a", reviews, 0.5, 1e-7, events=items_price(0.5, 1e-7))
    before = book.status("reviews").used
    after = book.set_cap("reviews", 2.0, 1e-6)
    assert after.used is not None and before is not None and after.used < before
    assert "(2, 1e-06)" in sentence(after)


def test_a_cap_that_was_passed_promises_nothing(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews, 0.5)
    account = book.add("reviews", reviews, 0.2, 0.0)
    assert sentence(account) == (
        "the cap of (0.2, 0) does not hold: 1 run used 250% of it; no run may follow"
    )


def test_a_corpus_without_a_cap_has_no_promise(book: Ledger, reviews: Source) -> None:
    ask(book, "a", reviews, 0.5)
    assert "no cap: epsilon 0.5, delta 0 is spent, by 1 run" in accounts_text(book.accounts())


def test_a_share_is_said_alike(book: Ledger, reviews: Source) -> None:
    """It said "spent epsilon 0, delta 1e-07 of (0.5, 1e-07) in 0 runs"."""
    book.add("reviews", reviews, 1.0, 1e-6, "sums")
    book.set_share("reviews", "alice", 0.5, 1e-7)
    (share,) = book.shares("alice")
    assert usage_phrase(share) == (
        "nothing of it is used; a first run may have epsilon 0.5 at delta 1e-07"
    )
    ask(book, "all", reviews, 1.0, 1e-6)
    (share,) = book.shares("alice")
    assert usage_phrase(share) == "nothing of it is used; no run may follow"


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (1e-9, "less than 1%"), (0.314, "31%"), (0.9999, "more than 99%"), (1.0, "100%"),
     (2.5, "250%"), (float("inf"), "more than 10,000%")],
)  # fmt: skip
def test_no_rounding_makes_all_or_nothing_of_a_part(share: float, said: str) -> None:
    assert percent(share) == said
