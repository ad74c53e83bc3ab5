"""What an account has spent, whether one more run fits under its cap, and what is left of it.

Analysts choose runs after they have seen earlier releases, so a cap needs a privacy filter, not
composition alone. An account has one rule, which should be chosen before anything is released:

- divergence: releases use two amounts that the cap fixes, and neither can be exchanged for the
  other: the sum of the Renyi divergences, of one fixed order, of all Gaussian releases and all
  steps with an epsilon of their own; and the sum of the deltas of all thresholds. For accounts of
  items, ngrams and counts;
- sums: the runs' epsilons add up, and so do their deltas; for accounts of trie and ldp_trie.

Either rule guarantees the cap's (E, D) for any adaptive sequence of requests. A single run needs
neither: its own theorem holds. The theorems, with their proofs: docs/composition.md, "What a cap's
rules add up".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

from dphh.errors import UsageError
from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, Event, costs_of
from dphh.privacy.gaussian import gaussian_epsilon
from dphh.privacy.search import least_whole
from dphh.privacy.set_union import GAUSSIAN_SHARE_OF_DELTA, NEW_ITEMS_SHARE_OF_DELTA
from dphh.wording.options import check_choice

#: The rule of a cap: how the costs of several runs are added up.
Rule = Literal["divergence", "sums"]
RULES: tuple[Rule, ...] = get_args(Rule)

#: How many more runs fit under a cap is counted up to this number.
MOST_RUNS_LEFT = 10_000
#: The relative amount by which the events of a run may exceed its claimed delta: rounding errors.
_CLAIM_TOLERANCE = 1e-9
#: A bound on the relative rounding error of a few logarithms, products and sums.
_ROUNDING_ERROR = 2.0**-44


@dataclass(frozen=True)
class Budget:
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"

    @property
    def may_have(self) -> str:
        """What a run may have, rounded down, so that a request for the shown numbers is granted."""
        down = Context(prec=4, rounding=ROUND_DOWN).create_decimal
        epsilon, delta = (float(down(repr(number))) for number in (self.epsilon, self.delta))
        return f"may have epsilon {epsilon:.4g} at delta {delta:.4g}"


@dataclass(frozen=True)
class Cap(Budget):
    """The (epsilon, delta) that an owner allows, and the rule that adds up runs' costs under it."""

    rule: Rule


@dataclass(frozen=True)
class Booking:
    """The privacy events of one run, and the epsilon and delta that its theorem proves."""

    events: tuple[Event, ...]
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        costs_of(self.events)  # refuses events without a price, also under the rule "sums"


def part_of(share: float, whole: str = "") -> str:
    """A share of a cap as text, such as "25%" and "25% of the cap": whole percent, never 0% or 100%
    for a partial share. More than the whole: "1.5 times the cap", rounded up."""
    if share > 1:
        times = f"{math.ceil(10 * share) / 10:g}" if share <= 100 else "more than 100"
        return f"{times} times {whole or 'as much as it allows'}"
    percent = f"{share:.0%}"
    if 0 < share < 0.01:
        percent = "less than 1%"
    elif 0.99 < share < 1:
        percent = "more than 99%"
    return f"{percent} of {whole}" if whole else percent


def checked_budget(epsilon: float, delta: float) -> Budget:
    """Check a budget: epsilon finite and at least 0, delta at least 0 and below 1."""
    epsilon, delta = float(epsilon), float(delta)  # so that repr() gives the decimal as written
    if not 0 <= epsilon < math.inf:
        raise UsageError(f"epsilon must be finite and at least 0, found {epsilon!r}.")
    if not 0 <= delta < 1:
        raise UsageError(f"delta must be at least 0 and below 1, found {delta!r}.")
    return Budget(epsilon, delta)


def checked_cap(epsilon: float, delta: float, rule: Rule | None = None) -> Cap:
    """Check a cap and its rule. Without a rule it is "divergence", and at delta 0 "sums"."""
    budget = checked_budget(epsilon, delta)
    rule = rule or default_rule(budget.delta)
    check_choice("rule", rule, RULES)
    if rule == "divergence" and budget.delta == 0:
        raise UsageError(
            "rule: found 'divergence' with a cap of delta 0, but this rule divides the delta "
            "between noise and thresholds; give a delta above 0, or use 'sums'"
        )
    return Cap(budget.epsilon, budget.delta, rule)


def default_rule(delta: float) -> Rule:
    return "divergence" if delta > 0 else "sums"


def checked_booking(events: Sequence[Event], epsilon: float, delta: float) -> Booking:
    """Check that a run's claimed (epsilon, delta) covers the composition of its events.

    If no event costs anything, the claim itself is added as an event.
    """
    claim = checked_budget(epsilon, delta)
    events = events_booked(events, claim)
    composed = compose(events).delta(claim.epsilon)
    if not composed <= claim.delta * (1 + _CLAIM_TOLERANCE) + 1e-300:
        raise UsageError(
            f"The run claims {claim}, but its events have delta {composed:.6g} at that epsilon. "
            "Price the plan again, or claim the cost of its events."
        )
    return Booking(events, claim.epsilon, claim.delta)


def events_booked(events: Sequence[Event], claim: Budget) -> tuple[Event, ...]:
    if any(cost.is_charged for cost in costs_of(events)):
        return tuple(events)
    return (*events, EpsilonDeltaEvent(claim.epsilon, claim.delta))


def fits(bookings: Sequence[Booking], cap: Cap) -> bool:
    """Whether these runs together stay within the cap."""
    most = allowed(cap)
    used = amounts_of(bookings, most.order)
    if used.loss <= most.loss and used.delta <= most.delta:
        return True
    if len(bookings) > 1:
        return False
    (booking,) = bookings  # for a single run its own theorem holds
    claimed = booking.epsilon <= cap.epsilon and booking.delta <= cap.delta
    return claimed or compose(booking.events).delta(cap.epsilon) <= cap.delta


def share_used(bookings: Sequence[Booking], cap: Cap) -> float:
    """The share of a cap that these runs use: the larger of those of its loss and of its delta. At
    most 1 if the runs fit, at least 1 if they do not."""
    share = max(parts_used(bookings, cap))
    return min(share, 1.0) if fits(bookings, cap) else max(share, 1.0)


def parts_used(bookings: Sequence[Booking], cap: Cap) -> tuple[float, float]:
    """The shares of a cap's loss, and of its delta, that these runs use."""
    most = allowed(cap)
    used = amounts_of(bookings, most.order)
    return _ratio(used.loss, most.loss), _ratio(used.delta, most.delta)


def number_that_fit(bookings: Sequence[Booking], cap: Cap, booking: Booking) -> int:
    """How many more runs of this cost fit: if k runs fit, k - 1 fit."""

    def are_too_many(runs: int) -> bool:
        return runs > MOST_RUNS_LEFT or not fits([*bookings, *[booking] * runs], cap)

    return least_whole(are_too_many, above=0) - 1


def left(bookings: Sequence[Booking], cap: Cap, delta: float | None = None) -> Budget:
    """The largest epsilon, at most the cap's, of one more run at `delta` that would be granted.

    Under the rule "divergence" the run is assumed to be one of `items`. Without a `delta`, the run
    takes the rest of the cap's delta.
    """
    if not bookings and (delta is None or delta <= cap.delta):
        return Budget(cap.epsilon, cap.delta if delta is None else delta)
    most = allowed(cap)
    used = amounts_of(bookings, most.order)
    loss_left = max(most.loss - used.loss, Fraction(0))
    delta_left = max(most.delta - used.delta, Fraction(0))
    share = Fraction(1 if most.order is None else NEW_ITEMS_SHARE_OF_DELTA * (1 + _CLAIM_TOLERANCE))
    if delta is None:
        delta = _float_at_most(delta_left / share)
    if share * _as_fraction(delta) > delta_left:
        return Budget(0.0, delta)
    if most.order is None:
        epsilon = _float_at_most(loss_left)
    elif delta == 0 or loss_left == 0:
        epsilon = 0.0
    else:
        sigma = math.sqrt(most.order / 2 / loss_left)
        epsilon = gaussian_epsilon(GAUSSIAN_SHARE_OF_DELTA * delta, sigma)
    return Budget(min(epsilon, cap.epsilon), delta)


def refusal(label: str, bookings: Sequence[Booking], cap: Cap, asked: Booking) -> str:
    """The text of a refusal: what is asked, used and left. Slow: it searches for what is left."""
    more = left(bookings, cap, asked.delta)
    if more.epsilon == 0:
        more = left(bookings, cap)
    rest = f"one more run {more.may_have}" if more.epsilon > 0 else "nothing is left"
    return (
        f"Refused: epsilon {asked.epsilon:g}, delta {asked.delta:g} would exceed the cap of "
        f"{label}: {cap}, of which {part_of(share_used(bookings, cap))} is used; {rest}. "
        "Nothing was spent"
    )


def _ratio(used: Fraction | float, whole: Fraction | float) -> float:
    return float(used) / float(whole) if whole else (0.0 if used == 0 else math.inf)


def _events(bookings: Iterable[Booking]) -> list[Event]:
    return [event for booking in bookings for event in booking.events]


def _as_fraction(number: float) -> Fraction:
    """The shortest decimal that equals this float, as an exact fraction."""
    return Fraction(repr(number))


def _float_at_most(number: Fraction | float) -> float:
    near = float(number)
    return near if _as_fraction(near) <= number else math.nextafter(near, 0.0)


@dataclass(frozen=True)
class LossAndDelta:
    """The two amounts of a cap's rule, loss and delta: what a cap allows, or what runs use."""

    #: Under the rule "divergence" the order of the divergences; under "sums" None.
    order: float | None
    #: Under "divergence" the sum of the Renyi divergences; under "sums" that of the runs' epsilons.
    loss: Fraction | float
    #: Under "divergence" the sum of the thresholds' deltas; under "sums" that of the runs' deltas.
    delta: Fraction


@lru_cache(maxsize=64)
def allowed(cap: Cap) -> LossAndDelta:
    """The two amounts that a cap allows; divergences at the order that allows the least noise.

    With the loss B and the delta d, d + (1 - d) R <= the cap's delta, where R is the delta of the
    divergence B at epsilon: e^((order - 1) (B - epsilon)) (1 - 1/order)^order / (order - 1).
    """
    if cap.rule == "sums":
        return LossAndDelta(None, _as_fraction(cap.epsilon), _as_fraction(cap.delta))
    # Thresholds get the same share of a cap's delta as they get of a run's, so that k runs of
    # (epsilon, delta) / k fit a cap of (epsilon, delta).
    for_thresholds = NEW_ITEMS_SHARE_OF_DELTA * cap.delta
    rest = cap.delta - for_thresholds
    if rest < 1e-290:
        return LossAndDelta(2.0, 0.0, Fraction(cap.delta))

    def allowed_divergence(order: float) -> float:
        gained = math.log(rest) + math.log(order - 1) - order * math.log1p(-1 / order)
        return cap.epsilon + gained / (order - 1)

    # A few orders to choose from: which is best must not depend on the last digits of a search.
    orders = (1 + 2 ** (eighths / 8) for eighths in range(-80, 321))
    order = max(orders, key=lambda order: allowed_divergence(order) / order)
    slack = _ROUNDING_ERROR * (cap.epsilon + (1 + abs(math.log(rest))) / (order - 1))
    loss = max(allowed_divergence(order) - slack, 0.0)
    return LossAndDelta(order, loss, Fraction(for_thresholds))


def amounts_of(bookings: Sequence[Booking], order: float | None) -> LossAndDelta:
    """The two amounts that these runs use, rounded up. Without an `order`, by the rule "sums"."""
    if order is None:
        epsilon = sum(_as_fraction(booking.epsilon) for booking in bookings)
        delta = Fraction(sum(_as_fraction(booking.delta) for booking in bookings))
        return LossAndDelta(None, epsilon, delta)
    divergences: list[float] = []
    delta = Fraction(0)
    for cost in costs_of(_events(bookings)):
        if cost.sigma is not None:
            divergences.append(order / 2 / cost.sigma**2)
        if cost.response_epsilon is not None:
            divergences.append(_divergence_of_randomised_response(cost.response_epsilon, order))
        if cost.delta is not None:
            delta += Fraction(cost.delta)
    return LossAndDelta(order, math.fsum(divergences) * (1 + _ROUNDING_ERROR), delta)


def _divergence_of_randomised_response(epsilon: float, order: float) -> float:
    """The Renyi divergence of randomised response at this order, rounded up: its privacy loss is
    epsilon or, less often, -epsilon."""
    log_p = -math.log1p(math.exp(-epsilon))
    more, less = (order - 1) * epsilon, -order * epsilon
    log_mean = log_p + more + math.log1p(math.exp(less - more))
    return min(epsilon, (log_mean + _ROUNDING_ERROR * (1 + more)) / (order - 1))
