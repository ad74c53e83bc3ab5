"""Translates the events of a run for dp_accounting, to be composed with other systems' events.

They hold for the unit and the adjacency that the plan states. A Gaussian stays one. The epsilon
of an (epsilon, delta) step is a discrete Laplace of sensitivity 1, whose losses are epsilon and
-epsilon, as randomised response's are. The deltas of all steps are one event: with that probability
a user's rows are released with next to no noise. The joint events of set union are bounded by their
Gaussian and their delta, both in full, so a plan of `items` may cost less than its events.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import Any

from dphh.errors import UsageError
from dphh.privacy.events import Event, costs_of

#: A sigma that hides next to nothing at sensitivity 1: 1e-8 is the probability of a loss below 38.
_NEGLIGIBLE_NOISE = 1 / 16


def dp_event(events: Iterable[Event]) -> Any:
    """A `dp_accounting.ComposedDpEvent` of all events for which a budget is charged."""
    try:
        from dp_accounting import dp_event as theirs
    except ModuleNotFoundError:
        raise UsageError(
            "dp_event: the package dp_accounting is not installed: pip install dp-accounting"
        ) from None
    costs = costs_of(events)
    if any(cost.one_direction_epsilon is not None for cost in costs):
        raise UsageError(
            "dp_event: this plan's bound is known in one direction only, and dp_accounting has no "
            "event for that; choose accounting='path'"
        )
    found = [theirs.GaussianDpEvent(cost.sigma) for cost in costs if cost.sigma is not None]
    found += [
        theirs.DiscreteLaplaceDpEvent(noise_parameter=cost.response_epsilon, sensitivity=1)
        for cost in costs
        if cost.response_epsilon is not None
    ]
    delta = fsum(cost.delta for cost in costs if cost.delta is not None)
    if delta > 0:
        found.append(theirs.PoissonSampledDpEvent(delta, theirs.GaussianDpEvent(_NEGLIGIBLE_NOISE)))
    return theirs.ComposedDpEvent(found)
