"""Which priced events a run used: levels that never ran and unused shares cost nothing.

Which levels run, and at which noise, depends on earlier releases only. The levels that ran state
their own events (docs/ledger.md, "What never ran").
"""

from __future__ import annotations

from collections.abc import Sequence

from dphh.levels.level import Level
from dphh.levels.ngrams import ForecastLevel, ListedWordsLevel, PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.ngrams.forecast.price import new_other_words
from dphh.mechanisms.set_union.rounds import new_delta
from dphh.price import Price
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent, Role

#: Methods in which each level has its own events and may be left out.
STEPWISE = ("dpne", "forecast", "sips", "adaptive")


def drawn_events(price: Price, ran: Sequence[Level], counted: bool) -> tuple[Event, ...]:
    """The events of the levels that drew noise; all priced events if every level did.

    counted: whether the run counted any found items, if counting was asked for.
    """
    drew = [level for level in ran if _drew_noise(level)]
    priced = tuple(event for event in price.events if counted or event.role is not Role.COUNTS)
    if price.method not in STEPWISE or len(drew) == len(price.levels):
        return priced
    stay = tuple(event for event in priced if event.role is not Role.LEVEL)
    if stay == priced:  # a price that was read back from JSON does not keep the events' roles
        return priced
    return (*(event for level in drew for event in _events_of_level(level)), *stay)


def _drew_noise(level: Level) -> bool:
    """Whether the level drew anything: it did not if earlier releases left no valid gram."""
    match level:
        case PrunedLevel(valid=valid) | ForecastLevel(valid=valid):
            return bool(valid)
    return True


def _events_of_level(level: Level) -> tuple[Event, ...]:
    match level:
        case SetUnionLevel():
            said = f"level {level.level}, round {level.round}"
            return (
                GaussianEvent(level.sigma, f"weighted Gaussian, {said}"),
                DeltaEvent(new_delta(level), f"new items over the threshold, {said}"),
            )
        case PrunedLevel():
            return (GaussianEvent(level.sigma, f"weighted Gaussian, level {level.level}"),)
        case ListedWordsLevel():
            new = new_other_words(level)
            sigmas = level.first_sigma, level.second_sigma
            return tuple(
                event
                for number, (sigma, delta) in enumerate(zip(sigmas, new, strict=True), start=1)
                for event in (
                    GaussianEvent(sigma, f"round {number}, level 1"),
                    DeltaEvent(delta, f"new words over the threshold, round {number}"),
                )
            )
        case ForecastLevel(first_sigma=float(first), second_sigma=float(second)):
            return (
                GaussianEvent(first, f"round 1, level {level.level}"),
                GaussianEvent(second, f"round 2, level {level.level}"),
            )
    raise AssertionError(f"a level of kind {level.kind} draws no events of its own")
