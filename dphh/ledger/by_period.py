"""Caps of a corpus whose unit is a user in one period: one for each period, one for a person.

A run draws from the cap of each period that it reads, and from no other, because its input does not
depend on units of other periods. The cap of a person, which is optional, covers all runs of all
periods, since a person may be in all of them. A run over several periods costs a person as much as
several units. The theorems, with proofs: docs/periods.md.

A corpus whose unit is a user is treated as a corpus with one period that never ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dphh.errors import BudgetRefused
from dphh.ledger.budget import Booking, Budget, Cap, fits, left, refusal, spent
from dphh.rows.period import ALWAYS, PeriodColumn, Spans, how_many, merged
from dphh.together import SAID, Together, as_one_step, cost_of_separate_runs


class Piece(NamedTuple):
    """Consecutive periods that the same runs read, and the prices of these runs."""

    first: int
    last: int
    prices: list[Booking]

    def name(self, period: PeriodColumn) -> str:
        """The name of these periods; empty if they have no first or no last one."""
        if self.first <= ALWAYS[0][0] or self.last >= ALWAYS[0][1]:
            return ""
        return ", ".join(period.names(((self.first, self.last),)))


class CapToFit(NamedTuple):
    """A cap, its earlier runs, and the price of a new run that must fit it."""

    #: Words that follow the account's name in messages, such as " in 2026-W47".
    of: str
    cap: Cap
    prices: list[Booking]
    #: The new run's price; None if the run promises nothing to those whom the cap protects.
    price: Booking | None

    @property
    def allows(self) -> bool:
        return self.price is not None and fits([*self.prices, self.price], self.cap)

    def refusal(self, name: str, asked: Booking) -> str:
        if self.price is None:
            return (
                f"Refused: the run reads {_describe_periods(asked)} at once, and the account "
                f"{name!r} caps what a person may lose over all periods ({self.cap}). Who is in "
                "several periods "
                "of one run is promised too little for any cap to hold. Nothing was spent. Read "
                "one period at a time (periods=, --periods): such runs compose."
            )
        return refusal(name, self.prices, self.cap, self.price, self.of)


def caps_to_fit(
    period: PeriodColumn | None,
    cap: Cap | None,
    prices: Sequence[Booking],
    person: Cap | None,
    of_person: Sequence[Booking],
    asked: Booking,
) -> list[CapToFit]:
    """The caps that a run must fit to be granted: one for each group of periods, and the
    person's."""
    found = []
    if cap is not None:
        for piece in pieces(prices, asked.read):
            name = "" if period is None else piece.name(period)
            found.append(CapToFit(f" in {name}" if name else "", cap, piece.prices, asked))
    if person is not None:
        before = [price_for_person(price) for price in of_person]
        lost = None in before  # nothing is left that could be kept
        whole = [price for price in before if price is not None]
        price = None if lost else price_for_person(asked)
        found.append(CapToFit(", of a person over all periods", person, whole, price))
    return found


def pieces(prices: Sequence[Booking], asked: Spans) -> list[Piece]:
    """Divide the requested periods at the first and last periods of earlier runs. Of the pieces
    that the same runs read, only one is returned, because the same holds for all."""
    found: dict[tuple[int, ...], Piece] = {}
    for runs, piece in _all_pieces(prices, asked):
        found.setdefault(runs, piece)
    return list(found.values())


def _all_pieces(prices: Sequence[Booking], asked: Spans) -> Iterable[tuple[tuple[int, ...], Piece]]:
    """Each piece, with the places of its runs among `prices`."""
    cuts = {cut for price in prices for first, last in price.read for cut in (first, last + 1)}
    for first, last in asked:
        starts = sorted({first, *(cut for cut in cuts if first < cut <= last)})
        for start, following in zip(starts, [*starts[1:], last + 1], strict=True):
            runs = tuple(n for n, price in enumerate(prices) if _reads_period(price.read, start))
            yield runs, Piece(start, following - 1, [prices[n] for n in runs])


def fullest(prices: Sequence[Booking], cap: Cap | None, asked: Spans = ALWAYS) -> Piece:
    """The periods, among these, with the least budget left for one more run."""
    known: dict[tuple[Booking, ...], tuple[float, float]] = {}

    def room(piece: Piece) -> tuple[float, float]:
        if (alike := _whenever(piece)) not in known:
            more = 0.0 if cap is None else left(piece.prices, cap).epsilon
            known[alike] = more, -spent(piece.prices, cap).epsilon
        return known[alike]

    return min(pieces(prices, asked), key=room)


def without_room(prices: Sequence[Booking], cap: Cap | None, asked: Spans = ALWAYS) -> Spans:
    """The periods, among these, of which no run may follow, because nothing is left of their
    cap."""
    if cap is None:
        return ()
    known: dict[tuple[Booking, ...], bool] = {}
    found = []
    for _, piece in _all_pieces(prices, asked):
        if (alike := _whenever(piece)) not in known:
            known[alike] = left(piece.prices, cap).epsilon == 0
        if known[alike]:
            found.append((piece.first, piece.last))
    return merged(found)


def _whenever(piece: Piece) -> tuple[Booking, ...]:
    """The piece's prices without their periods: pieces that are alike have the same left."""
    return tuple(replace(price, read=ALWAYS, of_a_person=1) for price in piece.prices)


def names_of(period: PeriodColumn | None, spans: Spans) -> list[str]:
    """The names of these periods; empty if they are all periods, or if there are none."""
    if period is None or not spans or spans[0][0] <= ALWAYS[0][0] or spans[-1][1] >= ALWAYS[0][1]:
        return []
    return period.names(spans)


def price_for_person(price: Booking) -> Booking | None:
    """The price of a run for a person who is in all periods that it reads; None if the run promises
    nothing to such a person."""
    if price.of_a_person == 1:
        return price
    step = as_one_step(price.events, price.epsilon, price.delta, price.of_a_person)
    return None if step is None else Booking((step,), step.epsilon, step.delta)


@dataclass(frozen=True)
class PersonBudget:
    """The cap of a person over all periods, and what is spent and left of it."""

    cap: Cap
    #: None if a run over several periods promises nothing to a person who is in all of them.
    spent: Budget | None
    left: Budget


def of_a_person(cap: Cap | None, prices: Sequence[Booking]) -> PersonBudget | None:
    if cap is None:
        return None
    each = [price_for_person(price) for price in prices]
    whole = [price for price in each if price is not None]
    if len(whole) < len(each):
        return PersonBudget(cap, None, Budget(0.0, 0.0))
    return PersonBudget(cap, spent(whole, cap), left(whole, cap))


def together(piece: Piece, prices: Sequence[Booking]) -> tuple[Together, ...]:
    """The total cost of the runs for a user in k periods with as many runs as this one, and, by
    exact composition, for a user in all periods that were read."""
    events = tuple(event for price in piece.prices for event in (price.drew or price.events))
    epsilon = sum(price.epsilon for price in piece.prices)
    delta = sum(price.delta for price in piece.prices)
    alike = [cost_of_separate_runs(events, epsilon, delta, k) for k in SAID] if piece.prices else []
    return (*alike, *_spent_over_all_periods(prices))


def _spent_over_all_periods(prices: Sequence[Booking]) -> Iterable[Together]:
    if not prices:
        return
    number = how_many(merged([span for price in prices for span in price.read]))
    each = [price_for_person(price) for price in prices]
    whole = [price for price in each if price is not None]
    if len(whole) < len(each):
        yield Together(number, None, None)
        return
    events = tuple(event for price in whole for event in (price.drew or price.events))
    found = cost_of_separate_runs(
        events, sum(price.epsilon for price in whole), sum(price.delta for price in whole), 1,
        exactly=True,
    )  # fmt: skip
    yield replace(found, periods=number)


def refuse_first(met: Iterable[CapToFit], name: str, asked: Booking) -> None:
    for each in met:
        if not each.allows:
            raise BudgetRefused(each.refusal(name, asked))


def _reads_period(read: Spans, number: int) -> bool:
    return any(first <= number <= last for first, last in read)


def _describe_periods(asked: Booking) -> str:
    number = how_many(asked.read)
    return "all periods" if asked.read == ALWAYS else f"{number:,} periods"
