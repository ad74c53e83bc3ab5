"""`dphh.schedule`: many runs of one plan under one cap, such as one release a week for a year.

All runs together satisfy the cap, (E, D), for everything that a user ever has in the corpora of
those runs (docs/before-spending.md). The ledger grants runs one after another; this module searches
for the largest epsilon at which it grants all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from html import escape
from math import exp, floor, log, log10, sqrt
from typing import Any, get_args

from dphh.errors import UsageError
from dphh.ledger.budget import (
    Booking,
    Budget,
    Cap,
    checked_booking,
    checked_budget,
    fits,
    rule_for_first_run,
)
from dphh.ledger.exact import allowed, drawn
from dphh.ledger.remaining import number_that_fit, parts
from dphh.plan import Plan
from dphh.price import Price
from dphh.registry import VERBS
from dphh.rows.period import By
from dphh.together import SAID, cost_of_separate_runs
from dphh.wording.lines import plural, wrapped
from dphh.wording.options import check_whole, named_in_words

MOST_TIMES = 10_000
#: Significant digits of an epsilon, rounded down.
_DIGITS = 3


@dataclass(frozen=True)
class Schedule:
    """A number of runs of one plan that together fit a cap."""

    plan: Plan
    times: int
    cap: Budget
    #: The plan that was given, at its own epsilon.
    once: Plan
    #: Where the cap is for a user in one period: how long one is, and the cap of a person.
    every: By | None = None
    cap_person: Budget | None = None

    @property
    def epsilon(self) -> float:
        """The epsilon of each run."""
        return float(self.plan["epsilon"])

    @property
    def delta(self) -> float:
        return float(self.plan["delta"])

    @property
    def lasts(self) -> int | None:
        """The number of periods for which a person's cap suffices; None if there is no such cap, or
        if it suffices for more than MOST_TIMES."""
        if self.cap_person is None:
            return None
        cap = Cap(self.cap_person.epsilon, self.cap_person.delta)
        runs = number_that_fit([], cap, _booking(self.plan.price))
        return None if runs >= MOST_TIMES else runs // self.times

    def __repr__(self) -> str:
        first, *rest = self._lines()
        lines = [line for said in rest for line in wrapped(said, "  ", "    ")]
        return "\n".join([first, *lines])

    def _repr_html_(self) -> str:
        first, *rest = self._lines()
        lines = "".join(f"<p>{escape(line)}</p>" for line in rest)
        return f"<div class='dphh'><p><b>{escape(first)}</b></p>{lines}</div>"

    def _lines(self) -> list[str]:
        each, once = self.plan.finds, self.once.finds
        return [
            f"schedule: {plural(self.times, 'run')} of {self.plan.verb}, each at epsilon "
            f"{self.epsilon:g}, delta {self.delta:.3g}",
            f"in each, {each.what} with probability {each.probability:g} when held by at least "
            f"{each.users:,} users (in the plan alone, at epsilon {self.once['epsilon']:g}: "
            f"{once.users:,})",
            *self._promise_lines(),
            "nothing is reserved: cap the corpus with "
            f"`dphh ledger add NAME CORPUS ... {self._cap_options}`, and run `.plan` each time",
        ]

    @property
    def _cap_options(self) -> str:
        said = f"--epsilon {self.cap.epsilon:g} --delta {self.cap.delta:g}"
        if self.every is not None:
            said = f"--period 'COLUMN by {self.every}' {said}"
        if (person := self.cap_person) is not None:
            said += f" --person-epsilon {person.epsilon:g} --person-delta {person.delta:g}"
        return said

    def _promise_lines(self) -> list[str]:
        if self.every is None:
            return [
                f"all together: {self.cap}, for a user with all that they have in any of the runs, "
                "whoever sees all releases"
            ]
        price = self.plan.price
        epsilon, delta = price.privacy.booked_epsilon, price.privacy.delta
        each = [
            str(
                cost_of_separate_runs(
                    price.events * self.times, epsilon * self.times, delta * self.times, k
                )
            )
            for k in SAID
        ]
        said = [
            f"in each {self.every}: {self.cap}, for a user's rows of that {self.every} alone, NOT "
            f"for a person over all; of a user in k of them k = {', '.join(each)}"
        ]
        if self.cap_person is None:
            said.append("nothing caps a person over all of them: cap_person= does")
        elif self.lasts is None:
            said.append(f"a person over all: {self.cap_person}, which outlasts any plan")
        else:
            said.append(
                f"a person over all: {self.cap_person}, which ends it after "
                f"{plural(self.lasts, self.every)} with runs; schedule(plan, times=N, cap=...) at "
                "that cap is the plan that lasts for N"
            )
        return said


@named_in_words
def schedule(
    plan: Plan,
    *,
    times: int | None = None,
    cap: tuple[float, float] | None = None,
    every: By | None = None,
    cap_period: tuple[float, float] | None = None,
    cap_person: tuple[float, float] | None = None,
) -> Schedule:
    """The plan at the largest epsilon at which `times` runs of it fit a cap of (epsilon, delta).

    dphh.schedule(plan, times=52, cap=(3, 1e-5)).plan is what to run every week. It prices, and
    reserves nothing. The cap is taken to be new; what an account has spent already is not in it.

    Of a corpus whose unit is a user in one period, dphh.schedule(plan, every="week",
    cap_period=(1, 1e-7), cap_person=(8, 1e-6)) says what each week may have, in one run or in so
    many `times`, and after how many weeks the cap of a person ends it (`lasts`).
    """
    if every is not None:
        return _schedule_by_period(plan, times, cap, every, cap_period, cap_person)
    if cap_period is not None or cap_person is not None:
        raise UsageError("cap_period, cap_person: go with every='week' (day, month, quarter, year)")
    if times is None or cap is None:
        raise UsageError("times, cap: say how many runs, and the cap of all, such as (3, 1e-5)")
    return _schedule_within(plan, times, cap)


def _schedule_by_period(
    plan: Plan, times: int | None, cap: object, every: By, cap_period: Any, cap_person: Any
) -> Schedule:
    if every not in get_args(By) or every == "number":
        raise UsageError(f"every: found {every!r}; give day, week, month, quarter or year")
    if cap is not None or cap_period is None:
        raise UsageError("cap_period: the cap of each period goes with every=, in the place of cap")
    whole = None if cap_person is None else checked_budget(*_checked_cap_pair(cap_person))
    within = checked_budget(*_checked_cap_pair(cap_period))
    if whole is not None and (whole.epsilon < within.epsilon or whole.delta < within.delta):
        raise UsageError(
            f"cap_person: found {whole}, less than the cap of one period, {within}; give at least "
            "that"
        )
    found = _schedule_within(plan, 1 if times is None else times, cap_period)
    return replace(found, every=every, cap_person=whole)


def _schedule_within(plan: Plan, times: int, cap: tuple[float, float]) -> Schedule:
    if not isinstance(plan, Plan):
        raise UsageError(f"plan: found a {type(plan).__name__}; give a plan, as dphh.items returns")
    check_whole("times", times, most=MOST_TIMES)
    whole = checked_budget(*_checked_cap_pair(cap))
    options = dict(plan.parameters)
    if not {"epsilon", "delta"} <= options.keys():
        raise UsageError(
            f"plan: found a plan of {plan.verb}, which has the options {', '.join(options)}; only "
            "plans with an epsilon and a delta can be scheduled"
        )
    if whole.epsilon <= 0 or whole.delta <= 0:
        raise UsageError(f"cap: found {cap}; give an epsilon and a delta above 0")
    price_of = _price_function(plan)
    delta = whole.delta / times
    if rule_for_first_run(_booking(plan.price), whole.delta) == "sums":
        price = price_of(_round_down_to_digits(whole.epsilon / times), delta=delta)
        if not _all_fit(price, times, whole):
            raise _error_too_many(times, delta, whole)
        return Schedule(replace(plan, price=price), times, whole, plan)
    price = _largest_price(price_of, delta, times, whole, whole.epsilon / times**0.5)
    if (more := _larger_delta(price, times, whole)) > delta * 1.01:
        with_more = _largest_price(price_of, more, times, whole, price["epsilon"])
        price = max(price, with_more, key=lambda each: each["epsilon"])
    return Schedule(replace(plan, price=price), times, whole, plan)


def _checked_cap_pair(cap: Any) -> tuple[float, float]:
    try:
        epsilon, delta = cap
    except (TypeError, ValueError):
        raise UsageError(f"cap: found {cap!r}; give (epsilon, delta), such as (3, 1e-5)") from None
    return epsilon, delta


def _price_function(plan: Plan) -> Callable[..., Price]:
    options = plan.price.options

    def price_of(epsilon: float, *, delta: float) -> Price:
        return VERBS[plan.verb].price(**{**options, "epsilon": epsilon, "delta": delta})

    return price_of


def _largest_price(
    price_of: Callable[..., Price], delta: float, times: int, whole: Budget, guess: float
) -> Price:
    """The largest epsilon, of few digits, at which all runs fit.

    Pricing takes most of the time. A run's share of a cap's noise grows about as epsilon squared,
    so the secant method on logarithms comes close in two or three steps. `_largest_fitting` goes on
    from there.
    """
    cap = Cap(whole.epsilon, whole.delta)
    price = lru_cache(maxsize=None)(partial(price_of, delta=delta))
    least = _round_down_to_digits(whole.epsilon / times / 4)
    most = _round_down_to_digits(whole.epsilon)
    best, slope, before = _round_down_to_digits(guess), 2.0, None
    for _ in range(6):
        of_noise, _of_delta = parts([], cap, _booking(price(best)))
        over = log(times * of_noise)
        if before is not None and best != before[0]:
            slope = (over - before[1]) / log(best / before[0])
        before = best, over
        best = _round_down_to_digits(min(max(best * exp(-over / max(slope, 0.5)), least), most))
        if best == before[0]:
            break
    found = _largest_fitting(
        lambda epsilon: _all_fit(price(epsilon), times, whole), best, least, most
    )
    if found is None:
        raise _error_too_many(times, delta, whole)
    return price(found)


def _largest_fitting(
    fits: Callable[[float], bool], start: float, least: float, most: float
) -> float | None:
    """The largest number of few digits from `least` to `most` that fits, near `start`; None if
    nothing from `start` down does."""
    best, step, too_large = start, 10.0**-_DIGITS, None
    while not fits(best):
        if best <= least:
            return None
        too_large = best
        best, step = max(_round_down_to_digits(best * (1 - step)), least), min(2 * step, 0.5)
    step = 10.0**-_DIGITS
    while too_large is None:
        more = min(max(_next_digits(best), _round_down_to_digits(best * (1 + step))), most)
        if more <= best:
            return best
        if fits(more):
            best, step = more, 2 * step
        else:
            too_large = more
    while (
        more := max(_next_digits(best), _round_down_to_digits(sqrt(best * too_large)))
    ) < too_large:
        if fits(more):
            best = more
        else:
            too_large = more
    return best


def _error_too_many(times: int, delta: float, whole: Budget) -> UsageError:
    return UsageError(
        f"times, cap: {plural(times, 'run')} at delta {delta:.3g} do not fit a cap of {whole}, "
        "however small their epsilon; plan fewer runs, or give a larger cap"
    )


def _all_fit(price: Price, times: int, whole: Budget) -> bool:
    booking = _booking(price)
    kept = rule_for_first_run(booking, whole.delta)
    return fits([booking] * times, Cap(whole.epsilon, whole.delta, kept))


def _larger_delta(price: Price, times: int, whole: Budget) -> float:
    """The delta of each run at which the thresholds use up the cap's whole delta for thresholds."""
    booking = _booking(price)
    if rule_for_first_run(booking, whole.delta) != "divergence":
        return 0.0
    most = allowed(whole.epsilon, whole.delta)
    taken = float(drawn(booking.events, most.order).delta)
    more = price["delta"] * float(most.delta) / (taken * times) * (1 - 1e-6) if taken else 0.0
    return min(more, whole.delta)  # the thresholds of `counts` need almost none of it


def _booking(price: Price) -> Booking:
    return checked_booking(price.events, price.privacy.booked_epsilon, price.privacy.delta)


def _round_down_to_digits(number: float) -> float:
    """The number rounded down to few significant digits."""
    unit = 10.0 ** (floor(log10(number)) - _DIGITS + 1)
    return float(f"{floor(number / unit * (1 + 1e-12)) * unit:.{_DIGITS}g}")


def _next_digits(number: float) -> float:
    unit = 10.0 ** (floor(log10(number)) - _DIGITS + 1)
    return float(f"{number + unit:.{_DIGITS}g}")
