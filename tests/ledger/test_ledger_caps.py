"""What fits under a cap, what is left of it, and what the ledger says of both."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dphh.errors import BudgetRefused, UsageError
from dphh.ledger import budget
from dphh.ledger.budget import Booking, Cap, allowed, part_of
from dphh.ledger.spending import guarantee_and_usage
from dphh.privacy.events import EpsilonDeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_epsilon, gaussian_sigma
from dphh.reader.corpus import replace_corpus
from tests.ledger.asked import ask, granted, items_price


def test_decimal_prices_add_up_to_their_decimal_sum(book, reviews):
    book.add("reviews", reviews, 0.3, 0.0)
    for run in "abc":
        ask(book, run, reviews, 0.1)
    assert not granted(book, "d", reviews, 1e-12)


@pytest.mark.parametrize(
    ("cap", "first", "second", "fits"),
    [
        ((1.0, 0.0), (0.5, 0.0), (0.4999999, 0.0), True),
        ((1.0, 0.0), (0.5, 0.0), (0.5, 0.0), True),
        ((1.0, 0.0), (0.5, 0.0), (0.5000001, 0.0), False),
        ((1.0, 1e-30), (0.5, 5e-31), (0.5, 5e-31), True),
        ((1.0, 1e-30), (0.5, 5e-31), (0.5, 5.000001e-31), False),
    ],
)
def test_a_near_miss_of_the_sums(book, reviews, cap, first, second, fits):
    book.add("reviews", reviews, *cap, "sums")
    ask(book, "first", reviews, *first)
    assert granted(book, "second", reviews, *second) == fits


@pytest.mark.parametrize(("times", "fits"), [(1.0001, True), (0.9999, False)])
def test_a_near_miss_of_the_divergence(book, reviews, times, fits):
    """Ten Gaussian runs fit whose epsilons add up to far more than the cap's."""
    book.add("reviews", reviews, 1.0, 1e-6)
    most = allowed(Cap(1.0, 1e-6, "divergence"))
    sigma = math.sqrt(10 * most.order / 2 / most.loss)
    claim = gaussian_epsilon(1e-7, sigma * 0.9)
    assert 10 * claim > 1.5
    for run in range(9):
        ask(book, f"run {run}", reviews, claim, 1e-7, events=[GaussianEvent(sigma)])
    last = [GaussianEvent(sigma * (1 + 10 * (times - 1)))]
    assert granted(book, "last", reviews, claim, 1e-7, events=last) == fits


@pytest.mark.parametrize("before", [0, 1, 6])
def test_what_is_left_is_granted_and_no_more(book, reviews, before):
    book.add("reviews", reviews, 1.0, 1e-6)
    for run in range(before):
        ask(book, f"run {run}", reviews, 0.2, 1e-7, events=items_price(0.2, 1e-7))
    left = book.status("reviews").one_more
    assert left.epsilon > 0
    for times, fits in ((1.001, False), (1 - 1e-5, True)):
        price = left.epsilon * times, left.delta
        assert granted(book, f"{times}", reviews, *price, events=items_price(*price)) == fits


def test_a_cap_below_what_was_spent_refuses_all_and_can_be_raised(book, reviews):
    book.add("reviews", reviews, 1.0, 1e-6, "sums")
    assert book.status("reviews").used == 0
    ask(book, "a", reviews, 0.5)
    account = book.set_cap("reviews", 0.2, 0.0)
    assert account.one_more.epsilon == 0
    assert guarantee_and_usage(account) == (
        "the cap of (0.2, 0) is broken, and promises nothing to anyone: 1 run used 2.5 times what "
        "it allows; no run may follow"
    )
    with pytest.raises(BudgetRefused, match="nothing is left"):
        ask(book, "b", reviews, 1e-9)
    book.set_cap("reviews", 1.0, 0.0)
    ask(book, "c", reviews, 0.5)


@pytest.mark.parametrize("rule", ["sums", "divergence"])
def test_runs_without_events_cost_their_claim_beside_noise_too(book, reviews, rule):
    book.add("reviews", reviews, 1.0, 1e-5, rule)
    ask(book, "noise", reviews, 0.4, 1e-7, events=items_price(0.4, 1e-7))
    assert not granted(book, "b", reviews, 0.9, 1e-6, events=[])


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-0.1, 0.0), (math.nan, 0.0), (math.inf, 0.0), (0.1, -1e-9), (0.1, math.nan), (0.1, 1.0)],
)
def test_no_price_can_give_something_back(book, reviews, epsilon, delta):
    with pytest.raises(UsageError):
        ask(book, "a", reviews, epsilon, delta, events=[])
    with pytest.raises(UsageError):
        book.add("reviews", reviews, epsilon, delta)


def test_a_claim_far_below_its_events_is_a_mistake(book, reviews):
    with pytest.raises(UsageError, match="claims epsilon 0"):
        ask(book, "a", reviews, 0.0, 1e-6, events=[GaussianEvent(0.5)])


def test_naming_a_corpus_charges_it_with_its_earlier_runs(book, reviews, tmp_path):
    ask(book, "exactly here", reviews, 0.25)
    ask(book, "the whole folder", replace_corpus(reviews, where=(str(tmp_path),)), 0.25)
    by_row = replace_corpus(reviews, user=("row_number",))
    book.failed(ask(book, "by another column", by_row, 0.25))
    ask(book, "elsewhere", replace_corpus(reviews, where=("/nowhere/at/all.parquet",)), 0.25)
    account = book.add("reviews", reviews, 1.0, 0.0)
    assert (account.runs, account.used) == (3, 0.75)
    assert [run.run_id for run in book.runs("reviews")][-1] == "by another column"
    assert [run.run_id for run in book.runs() if not run.accounts] == ["elsewhere"]
    assert not granted(book, "more", reviews, 0.26)


def test_a_second_account_of_the_same_files_pays_too(book, reviews, tmp_path):
    folder = replace_corpus(reviews, where=(str(tmp_path),))
    glob = replace_corpus(reviews, where=(f"{tmp_path}/*.parquet",))
    book.add("reviews", reviews, 1.0, 0.0)
    ask(book, "before", reviews, 0.3)
    for number, corpus in enumerate((folder, glob)):
        assert book.add(f"wide-{number}", corpus, 100.0, 0.0).runs == 1
    book.add("large", reviews, 100.0, 0.0)
    paid = ask(book, "b", reviews, 0.5, account="large")
    assert paid.accounts == ("large", "reviews", "wide-0", "wide-1")  # first the one that is named
    assert [each.used for each in book.accounts()] == [0.8, 0.008, 0.008, 0.008]
    with pytest.raises(BudgetRefused, match="the account 'reviews'"):
        ask(book, "c", reviews, 5.0, account="large")


@pytest.mark.parametrize("name", ["", "a/b", "a*", "x.parquet", "~me", "..", "two words", "a\nb"])
def test_a_name_cannot_be_taken_for_a_path(book, reviews, name):
    with pytest.raises(UsageError, match="name"):
        book.add(name, reviews, 1.0, 0.0)


def test_the_rule_of_a_cap_may_change_until_there_is_a_run(book, reviews):
    assert book.add("noise", reviews, 1.0, 1e-6).cap == Cap(1.0, 1e-6, "divergence")
    assert book.add("pure", reviews, 1.0, 0.0).cap == Cap(1.0, 0.0, "sums")
    assert [a.cap.rule for a in book.accounts()] == ["divergence", "sums"]
    assert book.set_cap("pure", 2.0, 1e-6).cap == Cap(2.0, 1e-6, "sums")  # as it was
    assert book.set_cap("noise", 2.0, 0.0).cap == Cap(2.0, 0.0, "sums")
    assert book.set_cap("noise", 2.0, 1e-6, "divergence").cap == Cap(2.0, 1e-6, "divergence")
    for epsilon, delta, rule in ((1.0, 1e-6, "composed"), (1.0, 0.0, "divergence")):
        with pytest.raises(UsageError, match="rule: found"):
            book.set_cap("noise", epsilon, delta, rule)


def delta_by_choice_of_rule(sigma, items, trie):
    """The delta at epsilon 1 of a Gaussian release whose privacy loss chooses what follows: `items`
    (sigma and the threshold's delta), or a run that is (epsilon, delta)-DP and no better."""
    standard, step = np.linspace(-9, 9, 200_001, retstep=True)
    rest = 1 - (standard / sigma + 1 / (2 * sigma**2))  # the epsilon that the first loss leaves
    mu, (epsilon, added) = 1 / items.sigma, trie
    gaussian = norm.cdf(mu / 2 - rest / mu) - np.exp(rest) * norm.cdf(-mu / 2 - rest / mu)
    answered = np.clip((np.exp(epsilon) - np.exp(rest)) / (1 + np.exp(epsilon)), 0, 1)
    by_items = items.delta + (1 - items.delta) * gaussian
    by_trie = added + (1 - added) * np.maximum(answered, 1 - np.exp(rest))
    return sum(norm.pdf(standard) * np.maximum(by_items, by_trie)) * step


def test_no_release_may_choose_the_rule_of_its_cap(book, reviews):
    """After `counts`, `items` fits by divergence and `trie` by sums. Who may choose between the
    rules by what was counted breaks the cap, so a rule is fixed by the first run."""
    cap, first, trie = (1.0, 1e-6), (0.24, 1.7e-7), (0.76, 8.2e-7)
    sigma, (items,) = gaussian_sigma(*first), items_price(0.785, 9.99e-7)
    counted = Booking((GaussianEvent(sigma),), *first)
    assert budget.fits([counted, Booking((items,), 0.785, 9.99e-7)], Cap(*cap, "divergence"))
    assert budget.fits([counted, Booking((EpsilonDeltaEvent(*trie),), *trie)], Cap(*cap, "sums"))
    assert delta_by_choice_of_rule(sigma, items, trie) > 1.06e-6
    book.add("reviews", reviews, *cap)
    ask(book, "counts", reviews, *first, events=[GaussianEvent(sigma)])
    for delta, rule in ((1e-6, "sums"), (0.0, None)):
        with pytest.raises(UsageError, match=r"^rule: 'reviews' has 1 run.*Nothing was changed"):
            book.set_cap("reviews", 1.0, delta, rule)
    with pytest.raises(UsageError, match=r"^rule: 'reviews' has 1 run"):
        book.add("reviews", reviews, 1.0, 1e-6, "sums", replace=True)
    # Nor does a second account of the same files, or one to which these are given up.
    for moved in (reviews, replace_corpus(reviews, where=("/given/up",))):
        book.add("reviews", moved, *cap, replace=True)
        with pytest.raises(UsageError, match=r"^rule: found 'sums', .*Nothing was changed"):
            book.add("again", reviews, *cap, "sums")
    book.add("reviews", reviews, *cap, replace=True)
    assert book.set_cap("reviews", 2.0, 1e-5).cap == Cap(2.0, 1e-5, "divergence")
    assert book.set_cap("reviews", 1.0, 1e-6, "divergence").cap.rule == "divergence"


# What is said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (1e-9, "less than 1%"), (0.314, "31%"), (0.9999, "more than 99%"), (1.0, "100%"),
     (2.5, "2.5 times the cap"), (8.85, "8.9 times the cap"),
     (float("inf"), "more than 100 times the cap")],
)  # fmt: skip
def test_rounding_makes_no_part_all_or_nothing(share, said):
    assert part_of(share, "the cap") == (said if share > 1 else f"{said} of the cap")
    assert part_of(share) == said.replace("the cap", "as much as it allows")
