"""What an account has spent, whether one more run fits under its cap, and what is left of it.

Analysts choose runs after they have seen earlier releases, so a cap needs a privacy filter, not
composition alone. The first run that an account pays for settles the rule by which its cap is kept,
before anything is released:

- divergence: releases draw from one fixed amount and thresholds' deltas from another
  (`dphh.ledger.exact`), where it is a run of Gaussian releases and thresholds;
- sums: the runs' epsilons add up, and so do their deltas, where it is any other.

Either rule guarantees the cap's (E, D) for any adaptive sequence of requests. A single run needs
neither: its own theorem holds. Caps from before this rule are "composed": what counts is the
composition of the events of all runs, which is (E, D) for requests that were fixed beforehand and
(E, 2 D) for others. The theorems, with their proofs: docs/ledger.md, "What a cap promises".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Literal

from dphh.errors import LedgerError, UsageError
from dphh.ledger.exact import Amounts, allowed, drawn, draws_noise, less_drawn
from dphh.privacy.accounting import Composition, compose
from dphh.privacy.events import EpsilonDeltaEvent, Event, SetUnionEvent, costs_of
from dphh.privacy.gaussian import gaussian_epsilon
from dphh.privacy.set_union import GAUSSIAN_SHARE, NEW_ITEMS_SHARE
from dphh.rows.period import ALWAYS, Spans
from dphh.wording.lines import plural
from dphh.wording.options import check_choice

#: The rule by which a cap is kept; "open" until the first run settles it.
Kept = Literal["open", "divergence", "sums", "composed"]

#: The rules that an owner may choose.
SETTLED_BY_OWNERS: tuple[Kept, ...] = ("open", "divergence", "sums")

#: How far the composition of a run's events may exceed its claim: a bound on rounding errors.
_ROUNDING = 1e-9
_FOUR_DIGITS_DOWN = Context(prec=4, rounding=ROUND_DOWN)


@dataclass(frozen=True)
class Budget:
    """A pair (epsilon, delta)."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g}, delta {self.delta:.4g}"


@dataclass(frozen=True)
class Cap(Budget):
    """The (epsilon, delta) that an owner allows, and the rule by which this cap is kept."""

    kept: Kept = "open"

    def __str__(self) -> str:
        return super().__str__()


@dataclass(frozen=True)
class Booking:
    """The privacy events of one run, and the epsilon and delta that its mechanism's theorem
    proves."""

    events: tuple[Event, ...]
    epsilon: float
    delta: float
    #: For a settled run: the events that it drew, if it did not draw all of them.
    drew: tuple[Event, ...] | None = None
    #: For a corpus with periods: the periods that the run reads, and the most of them that one
    #: person can be in.
    read: Spans = ALWAYS
    of_a_person: int = 1

    def __post_init__(self) -> None:
        costs_of((*self.events, *(self.drew or ())))  # a cap of sums looks at claims alone


@dataclass(frozen=True)
class GivenBack:
    """What settled runs reserved but did not draw, as shares of a cap's noise and of its delta."""

    runs: int
    of_noise: float
    of_thresholds: float

    def __str__(self) -> str:
        return (
            f"{plural(self.runs, 'run')} used less than reserved, so that "
            f"{_percent_given_back(self.of_noise)} of the cap's noise and "
            f"{_percent_given_back(self.of_thresholds)} of its thresholds can be used again"
        )


def _percent_given_back(share: float) -> str:
    """A share in percent with one decimal; a positive share that rounds to 0.0% is "less than
    0.1%"."""
    return "less than 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def percent(share: float) -> str:
    """A share of a cap in whole percent; rounding never makes a partial share 0% or 100%."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{share:.0%}" if share <= 100 else "more than 10,000%"


def checked_budget(epsilon: float, delta: float) -> Budget:
    """Check a budget: epsilon finite and at least 0, delta at least 0 and below 1."""
    epsilon, delta = float(epsilon), float(delta)  # their repr is then the decimal people wrote
    if not 0 <= epsilon < math.inf:
        raise UsageError(f"epsilon must be finite and at least 0, found {epsilon!r}.")
    if not 0 <= delta < 1:
        raise UsageError(f"delta must be at least 0 and below 1, found {delta!r}.")
    return Budget(epsilon, delta)


def checked_cap(epsilon: float, delta: float, kept: Kept = "open") -> Cap:
    """Check a cap and its rule; "open" leaves the rule to the first run."""
    budget = checked_budget(epsilon, delta)
    check_choice("kept", kept, SETTLED_BY_OWNERS)
    if kept == "divergence" and budget.delta == 0:
        raise UsageError(
            "kept: found 'divergence' with a cap of delta 0, but it divides the delta between "
            "noise and thresholds; give a delta above 0, or use 'sums'"
        )
    return Cap(budget.epsilon, budget.delta, kept)


def checked_booking(events: Sequence[Event], epsilon: float, delta: float) -> Booking:
    """Check that a run's claimed (epsilon, delta) covers the composition of its events.

    A run whose events do not cost a budget anything is composed as one (epsilon, delta) step.
    """
    claim = checked_budget(epsilon, delta)
    if not any(cost.is_charged for cost in costs_of(events)):
        events = (*events, EpsilonDeltaEvent(claim.epsilon, claim.delta))
    composed = compose(events).delta(claim.epsilon)
    if not composed <= claim.delta * (1 + _ROUNDING) + 1e-300:
        raise UsageError(
            f"The run claims {claim}, but its events have delta {composed:.6g} at that epsilon. "
            "Price the plan again, or claim the cost of its events."
        )
    return Booking(tuple(events), claim.epsilon, claim.delta)


def checked_draw(booked: Sequence[Event], drew: Sequence[Event]) -> tuple[Event, ...]:
    """Check that a run drew no more than it booked, at every order of the Renyi divergence."""
    if not less_drawn(drew, booked):
        raise LedgerError(
            "The run used more than it had reserved, and must not be published. This is a defect "
            "of dphh; please report it, with the plan and without the data."
        )
    return tuple(drew)


def rule_for_first_run(price: Booking, delta: float) -> Kept:
    """The rule by which a cap is kept if its first run has this price."""
    return "divergence" if delta > 0 and draws_noise(price.events) else "sums"


def fits(prices: Sequence[Booking], cap: Cap) -> bool:
    """Whether these runs together, in the order in which they were asked for, keep the cap."""
    if not prices:
        return True
    alone = len(prices) == 1
    if how_cap_is_kept(cap, prices) == "divergence" and not alone:
        most = allowed(cap.epsilon, cap.delta)
        return _amounts_drawn(prices, most).within(most)
    epsilon, delta = _sums_of_claims(prices)
    if epsilon <= _as_fraction(cap.epsilon) and delta <= _as_fraction(cap.delta):
        return True
    if not alone and cap.kept != "composed":
        return False
    return _composition_of(prices).delta(cap.epsilon) <= cap.delta


def promise(cap: Cap) -> str:
    """The guarantee of a cap to each user, as one line of text."""
    whole = f"({cap.epsilon:g}, {cap.delta:g})"
    if cap.kept == "composed":
        return f"{whole}, where no request followed from a release"
    return f"{whole}, whoever asks what in whatever order"


def rule_in_words(cap: Cap) -> str:
    """The rule by which a cap is kept, as one line of text."""
    match cap.kept:
        case "open":
            return "by the rule that fits its first run"
        case "divergence":
            return (
                "noise and thresholds have a part each, the fuller one is shown; epsilons do not "
                "add up"
            )
        case "sums":
            return "epsilons add up, and deltas do"
        case "composed":
            return (
                "as an earlier dphh kept it: (epsilon, 2 delta), and the epsilons of other steps, "
                "where requests follow from releases; `dphh ledger cap` renews it"
            )


def used(prices: Sequence[Booking], cap: Cap) -> float:
    """The share of a cap that its runs have used: the larger of its two amounts' shares; above 1 if
    the runs exceed the cap."""
    if not prices:
        return 0.0
    match how_cap_is_kept(cap, prices):
        case "divergence":
            most = allowed(cap.epsilon, cap.delta)
            took = _amounts_drawn(prices, most)
            shares = [(took.divergence, most.divergence), (float(took.delta), float(most.delta))]
        case "composed":
            shares = [(spent(prices, cap).epsilon, cap.epsilon)]
        case _:
            epsilon, delta = _sums_of_claims(prices)
            shares = [(float(epsilon), cap.epsilon), (float(delta), cap.delta)]
    share = max(share_of(took, whole) for took, whole in shares)
    return min(share, 1.0) if fits(prices, cap) else max(share, 1.0)


def share_of(took: float, whole: float) -> float:
    return took / whole if whole else (0.0 if took == 0 else math.inf)


def spent(prices: Sequence[Booking], cap: Budget | None) -> Budget:
    """The smallest epsilon that holds at the cap's delta; without a cap, at the sum of deltas."""
    epsilon, delta = _sums_of_claims(prices)
    at = cap.delta if cap is not None else min(_rounded_up(delta), 1.0)
    basic = _rounded_up(epsilon) if delta <= _as_fraction(at) or cap is None else math.inf
    if isinstance(cap, Cap) and how_cap_is_kept(cap, prices) == "divergence":
        most = allowed(cap.epsilon, cap.delta)
        prices = [replace(price, events=_charged_events(price, most)) for price in prices]
    return Budget(min(basic, _composition_of(prices).epsilon(at) if prices else 0.0), at)


def left(prices: Sequence[Booking], cap: Cap, delta: float | None = None) -> Budget:
    """The largest epsilon, at most the cap's, of one more run at `delta` that would be granted.

    Under the rule "divergence" the run is assumed to be one of `items`. Without a `delta`, the run
    takes the rest of the cap's delta; under a composed cap whose sums leave nothing, half of the
    delta that the composition leaves.
    """
    if not prices and (delta is None or delta <= cap.delta):
        return Budget(cap.epsilon, cap.delta if delta is None else delta)
    if how_cap_is_kept(cap, prices) == "divergence":
        return _left_of_divergence(prices, cap, delta)
    sum_epsilon, sum_delta = _sums_of_claims(prices)
    if delta is None:
        remaining = _rounded_down(max(_as_fraction(cap.delta) - sum_delta, Fraction(0)))
        if remaining == 0 and cap.kept == "composed":
            remaining = max(cap.delta - _composition_of(prices).delta(cap.epsilon), 0.0) / 2
        delta = remaining
    basic = 0.0
    if sum_delta + _as_fraction(delta) <= _as_fraction(cap.delta):
        basic = _rounded_down(max(_as_fraction(cap.epsilon) - sum_epsilon, Fraction(0)))
    if cap.kept == "composed":
        basic = max(basic, _epsilon_left_by_composition(prices, cap, delta))
    return Budget(min(basic, cap.epsilon), delta)


def refusal(name: str, prices: Sequence[Booking], cap: Cap, asked: Booking, whose: str = "") -> str:
    """The message of a refusal: what was asked, spent and left, and what to do. `whose` names the
    analyst or the periods that the cap is for."""
    more = left(prices, cap, asked.delta)
    if more.epsilon == 0:
        more = left(prices, cap)
    runs = plural(len(prices), "run")
    already = f"{percent(used(prices, cap))} of it, by {runs}"
    with_this = used([*prices, asked], cap)
    already += f"; with this run, {percent(with_this) if with_this > 1 else 'more than 100%'}"
    if more.epsilon > 0:
        epsilon, delta = four_digits_down(more.epsilon), four_digits_down(more.delta)
        of = " of items, ngrams or counts" if how_cap_is_kept(cap, prices) == "divergence" else ""
        rest = f"epsilon {epsilon} for one more run{of} at delta {delta}"
        advice = "Ask for less, or let the account's owner raise its cap."
    else:
        rest, advice = "nothing", "Only the account's owner can allow more, by raising its cap."
    return (
        f"Refused: the run asks for epsilon {asked.epsilon:.6g}, delta {asked.delta:.6g} of the "
        f"account {name!r}{whose}, whose cap is {cap}. Used: {already}. Left: {rest}. "
        f"Nothing was spent now. {advice}"
    )


def _composition_of(prices: Sequence[Booking]) -> Composition:
    return compose([event for price in prices for event in price.events])


def how_cap_is_kept(cap: Cap, prices: Sequence[Booking]) -> Kept:
    return rule_for_first_run(prices[0], cap.delta) if cap.kept == "open" and prices else cap.kept


def _amounts_drawn(prices: Sequence[Booking], most: Amounts) -> Amounts:
    return drawn((event for price in prices for event in _charged_events(price, most)), most.order)


def _charged_events(price: Booking, most: Amounts) -> tuple[Event, ...]:
    """The events that are charged for a run: those that it drew. A run that fits the cap only
    because it is the single one is charged all that it reserved, because no run may follow it
    (docs/ledger.md, "What never ran")."""
    if price.drew is None or not drawn(price.events, most.order).within(most):
        return price.events
    return price.drew


def given_back(prices: Sequence[Booking], cap: Cap) -> GivenBack | None:
    """What booked runs reserved but did not draw; None if that is nothing."""
    if how_cap_is_kept(cap, prices) != "divergence":
        return None
    most = allowed(cap.epsilon, cap.delta)
    less = [price for price in prices if _charged_events(price, most) != price.events]
    if not less:
        return None
    before = drawn((event for price in less for event in price.events), most.order)
    after = _amounts_drawn(less, most)
    return GivenBack(
        len(less),
        max(before.divergence - after.divergence, 0.0) / most.divergence,
        float(max(before.delta - after.delta, Fraction(0)) / most.delta),
    )


def _left_of_divergence(prices: Sequence[Booking], cap: Cap, delta: float | None) -> Budget:
    most = allowed(cap.epsilon, cap.delta)
    rest = _amounts_drawn(prices, most).up_to(most)
    if delta is None:
        delta = float(rest.delta) / NEW_ITEMS_SHARE * (1 - 1e-9)
    if delta == 0 or rest.divergence == 0 or NEW_ITEMS_SHARE * delta > rest.delta:
        return Budget(0.0, delta)
    epsilon = gaussian_epsilon(GAUSSIAN_SHARE * delta, rest.sigma)
    return Budget(min(epsilon, cap.epsilon), delta)


def _epsilon_left_by_composition(prices: Sequence[Booking], cap: Budget, delta: float) -> float:
    """The epsilon that exact composition leaves for one more run, found by bisection of its
    noise."""
    if delta == 0 or cap.delta == 0:
        return 0.0
    before = [event for price in prices for event in price.events]

    def granted(sigma: float) -> bool:
        after = [*before, SetUnionEvent(sigma, NEW_ITEMS_SHARE * delta)]
        return compose(after).delta(cap.epsilon) <= cap.delta

    low, high = 1e-3, 1e9
    if not granted(high):
        return 0.0
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if granted(middle) else (middle, high)
    return gaussian_epsilon(GAUSSIAN_SHARE * delta, high)


def _sums_of_claims(prices: Sequence[Booking]) -> tuple[Fraction, Fraction]:
    epsilon = sum((_as_fraction(price.epsilon) for price in prices), Fraction(0))
    return epsilon, sum((_as_fraction(price.delta) for price in prices), Fraction(0))


def _as_fraction(number: float) -> Fraction:
    """The shortest decimal that equals this float, as an exact fraction."""
    return Fraction(repr(number))


def _rounded_up(number: Fraction) -> float:
    near = float(number)
    return near if _as_fraction(near) >= number else math.nextafter(near, math.inf)


def _rounded_down(number: Fraction) -> float:
    near = float(number)
    return near if _as_fraction(near) <= number else math.nextafter(near, 0.0)


def four_digits_down(number: float) -> str:
    """Four digits, rounded down, so that a request for the shown number is granted."""
    return f"{float(_FOUR_DIGITS_DOWN.create_decimal(repr(number))):.4g}"
