"""What a new run would use of an account's cap, and how many such runs would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dphh.ledger.budget import Booking, Cap, fits, how_cap_is_kept, share_of
from dphh.ledger.exact import allowed, drawn

#: Counting of runs that fit ends at this number.
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Ahead:
    """What a run would use of the account that has the least room for it."""

    account: str
    #: The share of the cap that the run would use: the larger of its two amounts' shares. Above 1,
    #: the run never fits.
    share: float
    #: How many such runs would still be granted, one after another; at most `MOST_RUNS`.
    runs_left: int


def ahead(name: str, prices: Sequence[Booking], cap: Cap, price: Booking | None) -> Ahead:
    """How much of a cap a run would use. `price` is None if the run promises nothing to those whom
    the cap protects."""
    if price is None:
        return Ahead(name, float("inf"), 0)
    return Ahead(name, share(prices, cap, price), number_that_fit(prices, cap, price))


def share(prices: Sequence[Booking], cap: Cap, price: Booking) -> float:
    """The share of the cap that a run would use. A run that fits only because it is the single one
    uses the whole cap."""
    both = parts(prices, cap, price)
    return min(max(both), 1.0) if fits([price], cap) else max(*both, 1.0)


def parts(prices: Sequence[Booking], cap: Cap, price: Booking) -> tuple[float, float]:
    """The shares that a run would draw of the cap's divergence (or epsilon), and of its delta."""
    if how_cap_is_kept(cap, [*prices, price]) != "divergence":
        return share_of(price.epsilon, cap.epsilon), share_of(price.delta, cap.delta)
    most = allowed(cap.epsilon, cap.delta)
    asked = drawn(price.events, most.order)
    return (
        share_of(asked.divergence, most.divergence),
        share_of(float(asked.delta), float(most.delta)),
    )


def number_that_fit(prices: Sequence[Booking], cap: Cap, price: Booking) -> int:
    """How many such runs fit, by doubling and bisection: if a number of runs fits, so do fewer."""
    if not fits([*prices, price], cap):
        return 0
    low, high = 1, 2
    while high <= MOST_RUNS and fits([*prices, *[price] * high], cap):
        low, high = high, 2 * high
    high = min(high, MOST_RUNS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits([*prices, *[price] * middle], cap) else (low, middle)
    return low
