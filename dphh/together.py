"""The guarantee of (user, period) privacy for a user who is in several periods.

Two cases, which must not be taken for one another (docs/periods.md):

- *released apart*, each period by a run of its own: the runs compose, exactly and adaptively, and k
  of them come to far less than k times one;
- *in one run* over several periods: the user is k units of it, whose rows may all say the same, so
  sensitivity grows k-fold and nothing composes. There (epsilon, delta) becomes
  (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)), which soon says nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, Event, OneDirectionEvent, costs_of
from dphh.rows.period import ALWAYS, PeriodColumn, Spans, checked_spans, how_many, parsed_period

#: Of how many periods it is always said what they come to together.
SAID = (1, 4, 52)
#: More than a few products and exponentials lose.
_ROUND_UP = 1 + 2.0**-40


@dataclass(frozen=True)
class Together:
    """The (epsilon, delta) for k periods of one user; None if nothing is guaranteed."""

    periods: int
    epsilon: float | None
    delta: float | None

    def __str__(self) -> str:
        if self.epsilon is None or self.delta is None:
            return f"{self.periods:,}: nothing"
        return f"{self.periods:,}: ({_epsilon_rounded_up(self.epsilon)}, {self.delta:.3g})"


@dataclass(frozen=True)
class PeriodGuarantees:
    """The periods that a guarantee covers, and what it means for a user in several of them."""

    period: PeriodColumn
    #: Those that a run reads; None where it reads all.
    read: Spans | None
    apart: tuple[Together, ...]
    at_once: tuple[Together, ...]

    @property
    def only(self) -> int | None:
        """The period, if it is one alone."""
        if self.read is None or how_many(self.read) != 1:
            return None
        return self.read[0][0]

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that are always shown with the guarantee."""
        noun = self.period.noun
        said = [
            f"NOT a promise to a person as a whole: wherever a user is said, the rows of one user "
            f"in one {noun} are meant. Of a user who is in k periods, each released by a run of "
            f"its own like this one, k = {_listed_in_words(self.apart)}: the exact composition"
        ]
        if self.at_once:
            which = "all periods" if self.read is None else f"{how_many(self.read):,} periods"
            said.append(
                f"this run reads {which} at once, and does not hide who is in several of them: "
                f"what one user alone says in each may be released. Of a user in k periods that it "
                f"reads, k = {_listed_in_words(self.at_once)}. Run one period at a time to have "
                "them compose"
            )
        return tuple(said)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.period.to_json(),
            "read": None if self.read is None else [list(span) for span in self.read],
            "named": None if self.read is None else self.period.names(self.read),
            "a_user_in_runs_apart": [asdict(each) for each in self.apart],
            "a_user_in_this_run": [asdict(each) for each in self.at_once],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> PeriodGuarantees:
        period = parsed_period({part: found[part] for part in ("column", "by", "zone")})
        assert period is not None
        return cls(
            period,
            checked_spans(found["read"]),
            tuple(Together(**each) for each in found["a_user_in_runs_apart"]),
            tuple(Together(**each) for each in found["a_user_in_this_run"]),
        )


def period_guarantees(
    period: PeriodColumn,
    read: Spans | None,
    events: tuple[Event, ...],
    epsilon: float,
    delta: float,
) -> PeriodGuarantees:
    """The guarantees for users in several periods. `epsilon`, `delta`: the claimed cost for one
    unit."""
    number = how_many(ALWAYS if read is None else read)
    several = sorted({k for k in (*SAID, number) if 1 < k <= number and k < how_many(ALWAYS)})
    return PeriodGuarantees(
        period,
        read,
        tuple(cost_of_separate_runs(events, epsilon, delta, k) for k in SAID),
        tuple(_together_in_one_run(epsilon, delta, k) for k in several),
    )


def of_periods_in(privacy: Mapping[str, Any]) -> PeriodGuarantees | None:
    """The guarantees from a manifest's privacy statement; None if the unit is a whole user."""
    found = privacy.get("of_periods")
    return None if found is None else PeriodGuarantees.from_json(found)


@lru_cache(maxsize=256)
def cost_of_separate_runs(
    events: tuple[Event, ...],
    epsilon: float,
    delta: float,
    periods: int,
    *,
    exactly: bool = False,
) -> Together:
    """The cost of these events in each of k periods, by composition at k times delta. For one
    period it is the claimed cost, unless the exact one is requested (`exactly`)."""
    if periods == 1 and not exactly:
        return Together(1, epsilon, delta)
    in_all = delta * periods * _ROUND_UP
    charged = any(cost.is_charged for cost in costs_of(events))
    steps = events if charged else (EpsilonDeltaEvent(epsilon, delta),)
    found = math.inf if in_all >= 1 else compose(steps * periods).epsilon(in_all)
    if in_all < 1 and epsilon * periods < found:  # as any steps of such claims
        found = epsilon * periods * _ROUND_UP
    return Together(periods, *((None, None) if math.isinf(found) else (found, in_all)))


def _together_in_one_run(epsilon: float, delta: float, periods: int) -> Together:
    found = in_one_run(epsilon, delta, periods)
    return Together(periods, *((None, None) if found is None else found))


def in_one_run(epsilon: float, delta: float, periods: int) -> tuple[float, float] | None:
    """The cost of one run for a user who is in `periods` of its periods, by group privacy; None if
    nothing is guaranteed.

    Of neighbours x0, ..., xk, each a unit apart: P0(S) <= e^epsilon P1(S) + delta <= ... <=
    e^(k epsilon) Pk(S) + delta (1 + e^epsilon + ... + e^((k-1) epsilon)).
    """
    if periods == 1:
        return epsilon, delta
    exact = Fraction(repr(epsilon)) * periods
    whole = float(exact)
    if Fraction(repr(whole)) < exact:
        whole = math.nextafter(whole, math.inf)
    if whole > 700:
        return None
    steps = periods if epsilon == 0 else math.expm1(whole) / math.expm1(epsilon)
    in_all = delta * steps * _ROUND_UP
    return (whole, in_all) if in_all < 1 else None


def as_one_step(
    events: tuple[Event, ...], epsilon: float, delta: float, periods: int
) -> EpsilonDeltaEvent | OneDirectionEvent | None:
    """The same as one event for a whole user, to be composed with others; None if nothing is
    guaranteed."""
    if (found := in_one_run(epsilon, delta, periods)) is None:
        return None
    note = f"one run over {periods:,} periods, for a user who is in all of them"
    if any(cost.certain is not None for cost in costs_of(events)):
        return OneDirectionEvent(*found, note=note)
    return EpsilonDeltaEvent(*found, note=note)


def _listed_in_words(each: tuple[Together, ...]) -> str:
    return ", ".join(map(str, each))


def _epsilon_rounded_up(epsilon: float) -> str:
    """Four digits, never rounded down."""
    digits = 3 - math.floor(math.log10(epsilon)) if epsilon > 0 else 0
    return f"{math.ceil(round(epsilon * 10.0**digits, 6)) / 10.0**digits:.4g}"
