"""What a run costs, for other libraries' accountants, to be composed with what other systems spend.

Three forms, for neighbours of `Privacy.relation`, which differ in what `Privacy.protects` names:

- `pld`: a privacy loss distribution of dp_accounting. It is made of the plan's own curve, delta as
  a function of epsilon, by Connect the Dots (Doroshenko et al. 2022), which rounds up. The curve
  bounds every pair of neighbours in both orders, so the distribution dominates the run, also
  where it is composed adaptively (Zhu, Dong & Wang 2022). Infinite losses and joint prices are in
  it.
- `dp_event`: an event of dp_accounting for accountants by Renyi divergences, and a delta beside it,
  to be added to what they find: no event of dp_accounting 0.6 has an infinite loss with some
  probability, and a stand-in with a large loss would be no bound at epsilons near that loss. Noise
  and threshold of a joint price are given in full, which is a bound. A step with an epsilon is a
  discrete Laplace, whose losses are those of randomised response; where what a user holds is
  replaced, it is randomised response itself, which accountants of the other relation refuse.
- `privacy_profile`: OpenDP's object for a curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import exp, inf
from typing import Any

import numpy as np

from dphh.errors import UsageError
from dphh.price import Privacy
from dphh.privacy.accounting import Composition, compose
from dphh.privacy.events import Event

#: A distribution ends where its delta is within this of that of infinite losses.
_LEAST_DELTA_OF_FINITE_LOSSES = 1e-15


class Exports:
    """A plan or a release, for accountants of dp_accounting and OpenDP where these are installed.
    What they are told holds for the neighbours of `privacy.relation`."""

    @property
    def privacy(self) -> Privacy:
        raise NotImplementedError

    @property
    def events(self) -> Sequence[Event]:
        raise NotImplementedError

    def pld(self, interval: float = 0.01) -> Any:
        """The whole cost as a `PrivacyLossDistribution` of dp_accounting, whose losses are
        multiples of `interval`. Compose it with those of other systems."""
        made = _installed("dp_accounting.pld.privacy_loss_distribution", "pld")
        points = _installed("dp_accounting.pld.pld_pmf", "pld")
        composed = compose(self.events)
        most = _largest_loss(composed, interval)
        losses = np.arange(-most, most + 1)
        deltas = [composed.delta(float(loss)) for loss in losses * interval]
        falling = np.minimum.accumulate(np.maximum.accumulate(deltas[::-1])[::-1])
        return made.PrivacyLossDistribution(
            points.create_pmf_pessimistic_connect_dots(interval, losses, falling)
        )

    def dp_event(self) -> tuple[Any, float]:
        """A `ComposedDpEvent` of dp_accounting without infinite losses; and their probability, a
        delta to be added to what an accountant by Renyi divergences finds."""
        theirs = _installed("dp_accounting.dp_event", "dp_event")
        composed = compose(self.events)
        found = [theirs.GaussianDpEvent(composed.sigma)] if composed.sigma < inf else []
        for epsilon, count in composed.responses:
            if self.privacy.relation == "replace":
                noise = 2 * exp(-epsilon) / (1 + exp(-epsilon))
                step = theirs.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
            else:
                step = theirs.DiscreteLaplaceDpEvent(noise_parameter=epsilon, sensitivity=1)
            found.append(theirs.SelfComposedDpEvent(step, count))
        return theirs.ComposedDpEvent(found), composed.infinite_loss

    def privacy_profile(self) -> Any:
        """The whole cost as a `PrivacyProfile` of OpenDP: delta by epsilon, epsilon by delta."""
        theirs = _installed("opendp.prelude", "privacy_profile")
        theirs.enable_features("contrib", "honest-but-curious")
        return theirs.new_privacy_profile(compose(self.events).delta)


def _installed(module: str, asked: str) -> Any:
    package = module.split(".", maxsplit=1)[0].replace("_", "-")
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise UsageError(
            f"{asked}: the package {package} is not installed: pip install {package}"
        ) from None


def _largest_loss(composed: Composition, interval: float) -> int:
    """The number of intervals up to a loss that is hardly ever exceeded, unless it is infinite."""
    enough = composed.delta(inf) + _LEAST_DELTA_OF_FINITE_LOSSES
    most = 1
    while composed.delta(most * interval) > enough:
        most *= 2
    return most
