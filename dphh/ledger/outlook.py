"""What the ledger would say of a request, from one look at its accounts and at the files.

The look is `Ledger.outlook`. A later request may find other accounts and other files.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphh.ledger.by_period import CapToFit
from dphh.ledger.entries import Account, Request
from dphh.ledger.paying import Payer, moved_here
from dphh.ledger.remaining import Ahead, ahead
from dphh.rows.period import ALWAYS


@dataclass(frozen=True)
class Outlook:
    """What the ledger would say of a request: who pays, whether it is refused, and what it uses."""

    request: Request
    paying: tuple[Payer, ...]
    #: The caps that the request must fit, each with its account's label; for an analyst, those of
    #: the analyst's share alone.
    caps: tuple[tuple[str, CapToFit], ...]
    #: The account that would refuse the request; or the message, if it is refused otherwise.
    refusing: Payer | str | None

    @property
    def refusal(self) -> str | None:
        """The message with which `Ledger.reserve` would refuse the request, or None."""
        if isinstance(self.refusing, Payer):
            return self.refusing.refusal(self.request)
        return self.refusing

    @property
    def accounts(self) -> list[Account]:
        """The accounts that would pay, the one that the request names first. What is left is for
        the request's periods."""
        periods = self.request.source.periods
        named_first = sorted(
            self.paying, key=lambda each: each.account.name != self.request.account
        )
        return [
            each.account.account(each.prices, ALWAYS if periods is None else periods)
            for each in named_first
        ]

    @property
    def moved(self) -> tuple[str, ...]:
        """Sentences that say which accounts pay because files were moved from their location."""
        return tuple(moved_here(p.account.label, p.moved) for p in self.paying if p.moved)

    @property
    def ahead(self) -> Ahead | None:
        """What the request would use of the cap with the least room for it; None without a cap."""
        found = [
            ahead(f"{label}{met.of}", met.prices, met.cap, met.price) for label, met in self.caps
        ]
        return min(found, key=lambda each: (each.runs_left, -each.share), default=None)
