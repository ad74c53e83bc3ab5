"""Translates the events of a run for dp_accounting, to be composed with other systems' events.

All Gaussian releases are one. The epsilon of an (epsilon, delta) step is a discrete Laplace of
sensitivity 1, whose losses are epsilon and -epsilon, as randomised response's are. These hold where
neighbours differ by a user who is added or removed. Where what a user holds is replaced, it is
randomised response itself, which accountants of the first relation refuse.

The deltas of all steps stay beside the event, as one number. No event of dp_accounting 0.6 has an
infinite loss with some probability: a stand-in with a large loss would be no bound at epsilons near
that loss, and its Renyi divergence would be taken for the plan's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf
from typing import Any

from dphh.errors import UsageError
from dphh.privacy.accounting import compose
from dphh.privacy.events import Event, LocalEvent


def dp_event(events: Sequence[Event]) -> tuple[Any, float]:
    """A `dp_accounting.ComposedDpEvent` of the events for which a budget is charged, without their
    deltas; and the delta of these together, to be added to what an accountant finds."""
    try:
        from dp_accounting import dp_event as theirs
    except ModuleNotFoundError:
        raise UsageError(
            "dp_event: the package dp_accounting is not installed: pip install dp-accounting"
        ) from None
    composed = compose(events)
    found = [theirs.GaussianDpEvent(composed.sigma)] if composed.sigma < inf else []
    # Reports of users: their neighbours differ by what one of them holds.
    is_replaced = any(isinstance(event, LocalEvent) for event in events)
    for epsilon, count in composed.responses:
        if is_replaced:
            noise = 2 * exp(-epsilon) / (1 + exp(-epsilon))
            step = theirs.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
        else:
            step = theirs.DiscreteLaplaceDpEvent(noise_parameter=epsilon, sensitivity=1)
        found.append(theirs.SelfComposedDpEvent(step, count))
    return theirs.ComposedDpEvent(found), composed.infinite_loss
