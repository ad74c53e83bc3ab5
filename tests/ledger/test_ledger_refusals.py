"""Every refusal of the ledger, word by word: what was found, that nothing was spent, what to do."""

from __future__ import annotations

import pytest

from dphh.errors import BudgetRefused, ElsewhereRefused, UsageError
from dphh.ledger import Ledger, Source
from tests.ledger.asked import ask, asked, items_price

FILES = Source("path", ("/data/reviews.parquet",), "author", {"column": "body"})
BY_ROW = Source("path", ("/data/reviews.parquet",), "row", {"column": "body"})
FRAME = Source("frame", ("polars:DataFrame",), "author", {"column": "body"})
OTHER = Source("path", ("/data/other.parquet",), "author", {"column": "body"})

SUMS = (
    "Refused: epsilon 0.5, delta 1e-07 would exceed the cap of the account 'sums': epsilon 1, "
    "delta 1e-06, of which 75% is used; one more run may have epsilon 0.25 at delta 1e-07. "
    "Nothing was spent"
)
DIVERGENCE = (
    "Refused: epsilon 0.75, delta 1e-07 would exceed the cap of the account 'noise': epsilon 1, "
    "delta 1e-06, of which 68% is used; one more run may have epsilon 0.5017 at delta 1e-07. "
    "Nothing was spent"
)
NOTHING_LEFT = (
    "Refused: epsilon 0.1, delta 0 would exceed the cap of the account 'spent': epsilon 0.5, "
    "delta 0, of which 100% is used; nothing is left. Nothing was spent"
)
TOO_MUCH_ALONE = (
    "Refused: epsilon 9, delta 0 would exceed the cap of the account 'sums': epsilon 1, delta "
    "1e-06, of which 0% is used; one more run may have epsilon 1 at delta 0. Nothing was spent"
)
OF_A_SHARE = (
    "Refused: epsilon 0.5, delta 0 would exceed the cap of alice's share of the account 'sums': "
    "epsilon 0.2, delta 0, of which 0% is used; one more run may have epsilon 0.2 at delta 0. "
    "Nothing was spent"
)
NO_SHARE = (
    "Refused: bob has no share of the account 'sums'. Nothing was spent. Only the account's owner "
    "can give one."
)
ELSEWHERE = (
    "Refused: another corpus of the ledger has rows in the same files, and does not allow this "
    "run. Nothing was spent. Ask for less, or ask the corpora's owner."
)
WHICH = (
    "Refused: which account pays? This ledger has accounts, so a table in memory names one of "
    "them: account='sums'. Nothing was spent."
)
UNIT = (
    "Refused: the account 'sums' protects users by the column 'author', but this run counts them "
    "by user='row', which does not protect them. Nothing was spent. Use the "
    "account's user columns."
)
NOT_ITS_FILES = (
    "account: 'sums' is of /data/reviews.parquet, not of /data/other.parquet. Nothing was spent. "
    "Leave account out, or let its owner say where its data are now (`dphh ledger add NAME "
    "CORPUS ... --replace`)"
)
UNKNOWN = (
    "The ledger has no account 'typo': `dphh ledger show` lists those there are; `dphh ledger add "
    "typo ...`, or dphh.Ledger().add('typo', corpus, epsilon, delta), makes one"
)


@pytest.mark.parametrize(
    ("account", "cap", "before", "source", "price", "named", "kind", "said"),
    [
        ("sums", (1, 1e-6, "sums"), (0.75, 1e-7), FILES, (0.5, 1e-7), None, BudgetRefused, SUMS),
        ("noise", (1, 1e-6), (0.75, 1e-7), FILES, (0.75, 1e-7), None, BudgetRefused, DIVERGENCE),
        ("spent", (0.5, 0), (0.5, 0), FILES, (0.1, 0), None, BudgetRefused, NOTHING_LEFT),
        ("sums", (1, 1e-6, "sums"), None, FILES, (9, 0), None, BudgetRefused, TOO_MUCH_ALONE),
        ("sums", (1, 0), None, FRAME, (0.1, 0), None, BudgetRefused, WHICH),
        ("sums", (1, 0), None, BY_ROW, (0.1, 0), None, BudgetRefused, UNIT),
        ("sums", (1, 0), None, OTHER, (0.1, 0), "sums", UsageError, NOT_ITS_FILES),
        ("sums", (1, 0), None, FILES, (0.1, 0), "typo", UsageError, UNKNOWN),
    ],
)
def test_a_refusal_says_what_was_asked_used_and_left_and_records_nothing(
    book, account, cap, before, source, price, named, kind, said
):
    book.add(account, FILES, *cap)
    if before is not None:
        ask(book, "before", FILES, *before, events=items_price(*before) if before[1] else None)
    events = items_price(*price) if price[1] else None
    file = book.path.read_bytes()
    for refused in (
        lambda: ask(book, "a", source, *price, events=events, account=named),
        lambda: book.before_reading(asked(source, *price, events=events, account=named), None),
    ):
        with pytest.raises(kind) as why:
            refused()
        assert str(why.value) == said
        assert why.value.exit_code == (3 if kind is BudgetRefused else 2)
    if kind is BudgetRefused:  # what a plan is told, before it is run
        outlook = book.outlook(asked(source, *price, events=events, account=named))
        assert outlook.refusal == said
    assert book.path.read_bytes() == file


@pytest.mark.parametrize(
    ("analyst", "second", "epsilon", "said"),
    [
        ("alice", None, 0.5, OF_A_SHARE),
        ("bob", None, 0.1, NO_SHARE),
        ("alice", 0.01, 0.1, ELSEWHERE),
    ],
)
def test_what_an_analyst_is_refused(book, analyst, second, epsilon, said):
    book.add("sums", FILES, 1, 1e-6, "sums")
    book.set_share("sums", "alice", 0.2, 0)
    if second is not None:
        book.add("other", FILES, second, 0)
    theirs = Ledger(book.path, analyst)
    request = asked(FILES, epsilon, account="sums")
    for refused in (
        lambda: theirs.book(request, {}, files="f1"),
        lambda: theirs.before_reading(request, None),
    ):
        with pytest.raises(BudgetRefused) as why:
            refused()
        assert str(why.value) == said
        assert isinstance(why.value, ElsewhereRefused) == (said == ELSEWHERE)
    assert theirs.outlook(request).refusal == said
    assert book.runs() == []


@pytest.mark.parametrize(("epsilon", "left"), [(0.2, 5), (0.26, 3), (1.0, 1), (1.01, 0)])
def test_an_outlook_counts_the_runs_that_are_left_and_changes_nothing(book, epsilon, left):
    book.add("sums", FILES, 1, 0)
    book.add("large", FILES, 10, 0)
    file = book.path.read_bytes()
    outlook = book.outlook(asked(FILES, epsilon))
    assert [account.name for account in outlook.accounts] == ["sums", "large"]
    assert (outlook.refusal is None) == (left > 0)
    assert outlook.scarcest == ("sums", pytest.approx(epsilon), left)
    assert book.path.read_bytes() == file
    for number in range(left):
        ask(book, f"run {number}", FILES, epsilon)
    assert book.outlook(asked(FILES, epsilon)).refusal is not None
