"""Refusals of the ledger: who is refused, by which layer, and that nothing is recorded."""

import pytest

from dphh import Corpus, Ledger
from dphh.errors import BudgetRefused, UsageError
from dphh.ledger import Data
from tests.ledger.asked import ask, asked, items_price

FILES = Corpus("/data/reviews.parquet", user="author", text="body")
BY_ROW = Corpus("/data/reviews.parquet", user="row", text="body")
OTHER = Corpus("/data/other.parquet", user="author", text="body")


@pytest.mark.parametrize(
    ("source", "epsilon", "named", "kind", "said"),
    [
        (FILES, 0.5, None, BudgetRefused, "75% is used; one more run may have epsilon 0.25 at"),
        (BY_ROW, 0.1, None, UsageError, "counts them by user='row'"),
        (OTHER, 0.1, "reviews", UsageError, "is for /data/reviews.parquet, not for"),
    ],
)
def test_a_refusal_records_nothing(book, source, epsilon, named, kind, said):
    book.add("reviews", FILES, 1, 1e-6, "sums")
    ask(book, "before", FILES, 0.75, 1e-7, events=items_price(0.75, 1e-7))
    file = book.path.read_bytes()
    request = asked(source, epsilon, account=named)
    for refused in (
        lambda: book.book(request, {}, Data("f1", None)),
        lambda: book.before_reading(request, None),
    ):
        with pytest.raises(kind, match=said) as why:
            refused()
        assert why.value.exit_code == (3 if kind is BudgetRefused else 2)
    # What a plan is told, before it is run.
    assert book.outlook(request).refusal == str(why.value)
    assert book.path.read_bytes() == file


@pytest.mark.parametrize(
    ("analyst", "second", "epsilon", "said"),
    [
        ("alice", None, 0.5, "the cap of alice's share of the account 'reviews'"),
        ("bob", None, 0.1, "bob has no share"),
        ("alice", 0.01, 0.1, "what is left for all who may ask does not"),
    ],
)
def test_what_an_analyst_is_refused(book, analyst, second, epsilon, said):
    book.add("reviews", FILES, 1, 1e-6, "sums")
    book.set_share("reviews", "alice", 0.2, 0)
    if second is not None:
        book.add("other", FILES, second, 0)
    theirs = Ledger(book.path, analyst)
    request = asked(FILES, epsilon, account="reviews")
    with pytest.raises(BudgetRefused, match=said) as why:
        theirs.book(request, {}, Data("f1", None))
    told = theirs.outlook(request).refusal  # is free, and so tells of the share alone
    assert told == (None if "for all" in said else str(why.value))
    assert book.runs() == []


@pytest.mark.parametrize(("epsilon", "left"), [(0.2, 5), (0.26, 3), (1.0, 1), (1.01, 0)])
def test_an_outlook_counts_the_runs_that_are_left_and_changes_nothing(book, epsilon, left):
    book.add("small", FILES, 1, 0)
    book.add("large", FILES, 10, 0)
    file = book.path.read_bytes()
    outlook = book.outlook(asked(FILES, epsilon))
    assert [account.name for account in outlook.accounts] == ["small", "large"]
    assert outlook.scarcest == ("small", pytest.approx(epsilon), left)
    assert book.path.read_bytes() == file
    for number in range(left):
        ask(book, f"run {number}", FILES, epsilon)
    assert book.outlook(asked(FILES, epsilon)).refusal is not None
