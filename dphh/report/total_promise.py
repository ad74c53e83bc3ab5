"""What several releases promise together to a user whose data are in all of them."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.privacy.accounting import compose
from dphh.privacy.events import EpsilonDeltaEvent, Event, costs_of, events_from_json
from dphh.report.promise import promised
from dphh.report.released import Released


def total_promise(releases: Sequence[Released]) -> tuple[float, float] | None:
    """(epsilon, delta), if the releases say what they drew and no price followed from a release."""
    steps: list[Event] = []
    epsilon = delta = 0.0
    for each in releases:
        if "events" not in each.manifest:
            return None
        events = events_from_json(each.manifest["events"])
        own = promised(each.privacy), float(each.privacy["delta"])
        charged = any(cost.is_charged for cost in costs_of(events))
        steps += events if charged else [EpsilonDeltaEvent(*own)]
        epsilon, delta = epsilon + own[0], delta + own[1]
    return None if delta >= 1 else (min(compose(steps).epsilon(delta), epsilon), delta)
