"""What an account, or an analyst's share of it, has spent and has left: in numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from dphh.ledger import budget
from dphh.ledger.budget import Booking, Budget, Cap, part_of
from dphh.price import warnings_of
from dphh.reader.corpus import Corpus, as_recorded, unit_and_columns, unit_in_words
from dphh.wording.lines import visible_text, with_noun, wrapped
from dphh.wording.notebook import InNotebooks

#: A message about a corpus that no account holds, and the calls that cap it.
UNCAPPED = "no account holds this corpus"
WHAT_CAPS = "`dphh ledger add`, `Ledger.add`, `dphh_add_corpus` cap it"


@dataclass(frozen=True)
class Account(InNotebooks):
    """A corpus with its cap and the bookings of the runs that it paid for; or an analyst's share of
    that cap, with the bookings of the analyst's runs."""

    id: int
    name: str
    corpus: Corpus
    cap: Cap
    bookings: tuple[Booking, ...]
    #: Columns by which users may be counted, each with the values that the owner declared public.
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    #: How many of its runs count other users than it protects; these promise its users nothing.
    runs_of_others: int = 0
    #: How many of its runs are tests', made with a seed; these promise nobody anything.
    test_runs: int = 0
    analyst: str | None = None  # whose share this is
    whole: Account | None = None  # the account, if this is a share

    @property
    def label(self) -> str:
        account = f"the account {self.name!r}"
        return account if self.analyst is None else f"{self.analyst}'s share of {account}"

    @property
    def runs(self) -> int:
        return len(self.bookings)

    @cached_property
    def used(self) -> float:
        """The used share of the cap: the larger of those of its loss and of its delta."""
        return budget.share_used(self.bookings, self.cap)

    @cached_property
    def one_more(self) -> Budget:
        """What one more run may have; for a share, at most what the account has left."""
        own = budget.left(self.bookings, self.cap)
        if self.whole is None:
            return own
        # What the share and the account have left is compared at one delta: one more run may have
        # the smaller epsilon.
        whole = budget.left(self.whole.bookings, self.whole.cap, own.delta)
        if whole.epsilon == 0:
            whole = self.whole.one_more
            own = budget.left(self.bookings, self.cap, whole.delta)
        return min(own, whole, key=lambda rest: rest.epsilon)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "analyst": self.analyst,
            "source": as_recorded(self.corpus),
            "runs_count": self.runs,
            "cap": asdict(self.cap),
            "used": self.used,
            "one_more": asdict(self.one_more),
        }

    def __repr__(self) -> str:
        return accounts_text([self])

    def _rows(self) -> list[tuple[str, ...]]:
        return [(self.name, *account_lines(self))]


@dataclass(frozen=True)
class Outlook:
    """The ledger's answer to a request if it came now. A later one may find other accounts."""

    #: The accounts that would pay, first the named one; for an analyst, the share of that one.
    accounts: tuple[Account, ...]
    #: The message with which the ledger would refuse it, or None.
    refusal: str | None
    #: The cap that has the least room: its account, the share of it that the run would use, and how
    #: many such runs are left; None without a cap.
    scarcest: tuple[str, float, int] | None


def accounts_text(accounts: Sequence[Account]) -> str:
    """What `dphh ledger show` prints."""
    if not accounts:
        return "The ledger has no account: `dphh ledger add NAME CORPUS ...` makes one."
    lines = []
    for account in accounts:
        lines.append(visible_text(account.name, 10_000))
        for text in account_lines(account):
            lines += wrapped(text, "   ", "      ")
    return "\n".join(lines)


def account_lines(account: Account) -> list[str]:
    rule = "the runs' epsilons are added up, and so are their deltas"
    if account.cap.rule == "divergence":
        rule = (
            "the promise has two parts: what noise must hide, and how rarely an item "
            "that few people hold may appear. Each run uses some of both; the percentage is of the "
            "part that is used more"
        )
    warnings = warnings_of(account.cap.epsilon, account.cap.delta)
    adding = f"how runs add up ({account.cap.rule}): {rule}"
    return [guarantee_and_usage(account), adding, *(f"warning: {text}" for text in warnings)]


def guarantee_and_usage(account: Account) -> str:
    """The cap's guarantee, how much of it is used, and what is left for one more run."""
    cap = f"({account.cap.epsilon:g}, {account.cap.delta:g})"
    runs = with_noun(account.runs, "run")
    if account.used > 1:
        return (
            f"the cap of {cap} is broken, and promises nothing to anyone: {runs} used "
            f"{part_of(account.used, 'what it allows')}; no run may follow"
        )
    if account.runs_of_others:
        return (
            f"the cap of {cap} promises {unit_in_words(account.corpus.user)} nothing for all runs "
            f"together: {account.runs_of_others} of {runs} counted others than "
            f"{unit_and_columns(account.corpus.user)}; {usage_phrase(account)}"
        )
    promise = f"{cap}, whatever is asked, in whatever order"
    if account.test_runs:
        tests = with_noun(account.test_runs, "run")
        promise += f", if nothing has left of {tests} made with a seed, which is NOT private"
    return f"promised to {unit_in_words(account.corpus.user)}: {promise}; {usage_phrase(account)}"


def usage_phrase(account: Account) -> str:
    """A phrase with the share of a cap that is used, and what is left for one more run."""
    more = account.one_more
    if not account.runs:
        return f"nothing of it is used; a first run {more.may_have}"
    used = f"{part_of(account.used)} of it is used, by {with_noun(account.runs, 'run')}"
    if more.epsilon == 0:
        return f"{used}; no run may follow"
    of_verbs = " of items, ngrams or counts" if account.cap.rule == "divergence" else ""
    return f"{used}; one more{of_verbs} {more.may_have}"
