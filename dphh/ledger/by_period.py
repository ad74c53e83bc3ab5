"""Caps of a corpus whose unit is a user in one period: one for each period, one for a person.

A run draws from the cap of each period that it reads, and of no other: for a unit of another period
it is handed the same rows with it and without it. The cap of a person, where an owner gives one, is
for all that was drawn over all periods, since a person may be in any of them; a run over several of
them costs a person what it costs several units. The theorems, with proofs: docs/periods.md.

A corpus of any other unit is one period, which is always: nothing here is a special case of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dphh.errors import BudgetRefused
from dphh.ledger.budget import Booking, Budget, Cap, fits, left, refusal, spent
from dphh.unit.period import ALWAYS, Period, Spans, how_many, merged
from dphh.unit.together import SAID, Together, as_one_step, released_apart


class Piece(NamedTuple):
    """Periods that the same runs read, and what these cost."""

    first: int
    last: int
    prices: list[Booking]

    def name(self, period: Period) -> str:
        """Where it has an end on both sides."""
        if self.first <= ALWAYS[0][0] or self.last >= ALWAYS[0][1]:
            return ""
        return ", ".join(period.names(((self.first, self.last),)))


class Met(NamedTuple):
    """A cap as one run meets it."""

    #: Whose, after the account's name.
    of: str
    cap: Cap
    prices: list[Booking]
    #: Of the run: None where nothing is promised to whom the cap is for.
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


def caps_met(
    period: Period | None,
    cap: Cap | None,
    prices: Sequence[Booking],
    person: Cap | None,
    of_person: Sequence[Booking],
    asked: Booking,
) -> list[Met]:
    """All that has to hold for a run to be granted."""
    found = []
    if cap is not None:
        for piece in pieces(prices, asked.read):
            name = "" if period is None else piece.name(period)
            found.append(Met(f" in {name}" if name else "", cap, piece.prices, asked))
    if person is not None:
        before = [for_a_person(price) for price in of_person]
        lost = None in before  # nothing is left that could be kept
        whole = [price for price in before if price is not None]
        price = None if lost else for_a_person(asked)
        found.append(Met(", of a person over all periods", person, whole, price))
    return found


def pieces(prices: Sequence[Booking], asked: Spans) -> list[Piece]:
    """What was asked for, cut where other runs begin or end. Pieces of the same runs are said once:
    what holds for one holds for the others."""
    cuts = {cut for price in prices for first, last in price.read for cut in (first, last + 1)}
    found: dict[tuple[int, ...], Piece] = {}
    for first, last in asked:
        starts = sorted({first, *(cut for cut in cuts if first < cut <= last)})
        for start, following in zip(starts, [*starts[1:], last + 1], strict=True):
            runs = tuple(n for n, price in enumerate(prices) if _reads_period(price.read, start))
            piece = Piece(start, following - 1, [prices[n] for n in runs])
            found.setdefault(runs, piece)
    return list(found.values())


def fullest(prices: Sequence[Booking], cap: Cap | None, asked: Spans = ALWAYS) -> Piece:
    """Of these periods the one in which one more run could have least."""
    known: dict[tuple[Booking, ...], tuple[float, float]] = {}

    def room(piece: Piece) -> tuple[float, float]:
        alike = tuple(replace(price, read=ALWAYS, of_a_person=1) for price in piece.prices)
        if alike not in known:
            more = 0.0 if cap is None else left(piece.prices, cap).epsilon
            known[alike] = more, -spent(piece.prices, cap).epsilon
        return known[alike]

    return min(pieces(prices, asked), key=room)


def for_a_person(price: Booking) -> Booking | None:
    """What a run costs a person who is in all periods that it reads; None where it promises them
    nothing."""
    if price.of_a_person == 1:
        return price
    step = as_one_step(price.events, price.epsilon, price.delta, price.of_a_person)
    return None if step is None else Booking((step,), step.epsilon, step.delta)


@dataclass(frozen=True)
class OfAPerson:
    """What a person over all periods is promised, and what was drawn of it."""

    cap: Cap
    #: None where runs over several periods have left nothing of any promise.
    spent: Budget | None
    left: Budget


def of_a_person(cap: Cap | None, prices: Sequence[Booking]) -> OfAPerson | None:
    if cap is None:
        return None
    each = [for_a_person(price) for price in prices]
    whole = [price for price in each if price is not None]
    if len(whole) < len(each):
        return OfAPerson(cap, None, Budget(0.0, 0.0))
    return OfAPerson(cap, spent(whole, cap), left(whole, cap))


def together(piece: Piece, prices: Sequence[Booking]) -> tuple[Together, ...]:
    """What was drawn, for a user in k periods as full as this one; and in all that were read, by
    the exact composition."""
    events = tuple(event for price in piece.prices for event in (price.drew or price.events))
    epsilon = sum(price.epsilon for price in piece.prices)
    delta = sum(price.delta for price in piece.prices)
    alike = [released_apart(events, epsilon, delta, k) for k in SAID] if piece.prices else []
    return (*alike, *_spent_over_all_periods(prices))


def _spent_over_all_periods(prices: Sequence[Booking]) -> Iterable[Together]:
    if not prices:
        return
    number = how_many(merged([span for price in prices for span in price.read]))
    each = [for_a_person(price) for price in prices]
    whole = [price for price in each if price is not None]
    if len(whole) < len(each):
        yield Together(number, None, None)
        return
    events = tuple(event for price in whole for event in (price.drew or price.events))
    found = released_apart(
        events, sum(price.epsilon for price in whole), sum(price.delta for price in whole), 1,
        exactly=True,
    )  # fmt: skip
    yield replace(found, periods=number)


def refuse_first(met: Iterable[Met], name: str, asked: Booking) -> None:
    for each in met:
        if not each.allows:
            raise BudgetRefused(each.refusal(name, asked))


def _reads_period(read: Spans, number: int) -> bool:
    return any(first <= number <= last for first, last in read)


def _describe_periods(asked: Booking) -> str:
    number = how_many(asked.read)
    return "all periods" if asked.read == ALWAYS else f"{number:,} periods"
