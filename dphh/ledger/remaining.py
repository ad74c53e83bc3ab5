"""What lies ahead of an account: which part of its cap a run would take, and how many would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dphh.ledger.budget import Booking, Cap, fits, kept_for, share_of
from dphh.ledger.exact import allowed, drawn

#: More runs than anybody makes; counting ends there.
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Ahead:
    """What a run would meet, of the account that allows least."""

    account: str
    #: Of the cap: the larger of its parts of the cap's two amounts. Above 1, it never fits.
    share: float
    #: How many such runs would still be granted, one after another; at most `MOST_RUNS`.
    runs_left: int


def ahead(name: str, prices: Sequence[Booking], cap: Cap, price: Booking | None) -> Ahead:
    """`price`: None of a run that promises nothing to whom the cap is for."""
    if price is None:
        return Ahead(name, float("inf"), 0)
    return Ahead(name, share(prices, cap, price), how_often(prices, cap, price))


def share(prices: Sequence[Booking], cap: Cap, price: Booking) -> float:
    """A run that fits the cap by being alone takes the whole of it, whatever it would draw."""
    both = parts(prices, cap, price)
    return min(max(both), 1.0) if fits([price], cap) else max(*both, 1.0)


def parts(prices: Sequence[Booking], cap: Cap, price: Booking) -> tuple[float, float]:
    """Of the cap's divergence, or epsilon, and of its delta: what a run would draw of each."""
    kept = kept_for([*prices, price][0], cap.delta) if cap.kept == "open" else cap.kept
    if kept != "divergence":
        return share_of(price.epsilon, cap.epsilon), share_of(price.delta, cap.delta)
    most = allowed(cap.epsilon, cap.delta)
    asked = drawn(price.events, most.order)
    return (
        share_of(asked.divergence, most.divergence),
        share_of(float(asked.delta), float(most.delta)),
    )


def how_often(prices: Sequence[Booking], cap: Cap, price: Booking) -> int:
    """By doubling and bisection: where so many fit, so do fewer."""
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
