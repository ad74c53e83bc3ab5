"""The exact composition of several events, rounded up.

Each event is represented by a pair of distributions that dominates it, and the pairs are composed:

- Gaussian releases compose to one Gaussian, 1/sigma^2 = sum 1/sigma_k^2;
- an (epsilon, delta)-DP step has infinite privacy loss with probability delta, and is randomised
  response otherwise: loss +epsilon with probability e^epsilon / (1 + e^epsilon), else -epsilon
  (Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015);
- a (0, delta)-DP step is the case epsilon = 0.

With L the summed loss of the randomised responses and H the curve of the one Gaussian,

    delta(epsilon) = d + (1 - d) E[H(epsilon - L)],    d = 1 - prod (1 - delta_j),

since given L = l the pair is e^-l-weighted: sup_S P(S) - e^epsilon Q(S) is H(epsilon - l) there.
Without a Gaussian, H(epsilon) = max(0, 1 - e^epsilon). The events may be chosen adaptively, one
after the other; their sigmas, epsilons and deltas must not depend on the data.

A set union is a Gaussian release and a (0, delta)-DP step. If it comes first, and all other events
are of these two kinds, no user pays both in full: the composition is the maximum over the share x
of a user's kept items that are new, of a Gaussian of sigma / sqrt(1 - x) and an infinite loss of
x delta (docs/items.md). A later set union pays for both: its x may depend on the outcomes of
earlier releases (docs/composition.md).

Where a Gaussian release of mu = 1/sigma_0 comes first, and a set union or rounds follow, as it
shows (`ChosenUnionEvent`), that expectation is computed: with M(epsilon) the maximum over x of the
set union's composition with all later events, and over the rounds' composition with them,

    delta(epsilon) = E[M(epsilon - L)],    L ~ N(mu^2 / 2, mu^2), the loss of the first release.

M falls, so a cell of L counts with its upper end (the proof: docs/items.md, method "auto").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import pairwise

import numpy as np

from dphh.privacy.events import ChosenUnionEvent, Cost, Event, SetUnionEvent, cost_of, costs_of
from dphh.privacy.gaussian import (
    ROUNDING_MARGIN,
    compose_sigmas,
    gaussian_delta,
    gaussian_deltas,
    smallest_epsilon,
)
from dphh.privacy.losses import MOST_GRID_POINTS, losses_on_grid
from dphh.privacy.search import float_at_least, gammaln, log_expit, ndtr_of_few
from dphh.udfs.arrays import Floats

# Up to this many sums of losses are kept exactly; more are rounded up to a grid.
_MOST_EXACT_LOSSES = 2**14
_SMALLEST_NORMAL_FLOAT = float(np.finfo(np.float64).tiny)
# The share of a user's items that are new, from 0 to 1, is divided into intervals, which end at
# these shares. In each, new items cost as at its upper end, the other items as at its lower end.
_ENDS_OF_NEW_ITEM_SHARES = tuple((k / 64) ** 2 for k in range(65))
# The standard normal is divided into cells, which end at these numbers. The probability beyond the
# last one is less than the least float.
_NORMAL_CELL_ENDS = np.concatenate(
    [np.arange(-60, 101) / 10, [11.0, 12.0, 14.0, 17.0, 21.0, 27.0, 38.5]]
)


@dataclass(frozen=True)
class Composition:
    """The composed cost of events: one Gaussian, an infinite loss, and randomised responses."""

    #: The standard deviation of the one Gaussian; infinite if nothing Gaussian was released.
    sigma: float
    #: The probability of an infinite loss: d in the module's docstring.
    infinite_loss: float
    #: Pairs of an epsilon and how many randomised responses have it.
    responses: tuple[tuple[float, int], ...] = ()
    #: If the first event is a set union: the events composed for each interval of the share of new
    #: items; the most costly one counts.
    by_new_share: tuple[Composition, ...] = ()
    #: The sigma of a first Gaussian release that chose between a set union and rounds; infinite if
    #: there was none.
    first_sigma: float = math.inf

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon, rounded up."""
        if self.by_new_share and self.first_sigma < math.inf and math.isfinite(epsilon):
            return self._delta_after_first_release(epsilon)
        if self.by_new_share:
            return max(some.delta(epsilon) for some in self.by_new_share)
        if math.isinf(epsilon):
            return self.infinite_loss if epsilon > 0 else 1.0
        finite = gaussian_delta(epsilon - self._largest_response_loss, self.sigma)
        if self.responses and finite > 0:
            losses, probabilities = self._response_losses
            mean = float(probabilities @ gaussian_deltas(epsilon - losses, self.sigma))
            # The rounding error of the probabilities grows with the number of events.
            slack = 1e-12 * (1 + sum(count for _, count in self.responses))
            finite = min(finite, mean * (1 + slack) + _SMALLEST_NORMAL_FLOAT)
        return min(_probability_of_either(self.infinite_loss, finite), 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at this delta, rounded up; infinite if there is none."""
        return _smallest_epsilon(self, delta)

    def _delta_after_first_release(self, epsilon: float) -> float:
        """The delta where a first release chose what follows: the mean, over that release's losses,
        of the largest delta of all that can follow."""
        mu = 1 / self.first_sigma
        losses = mu * _NORMAL_CELL_ENDS + mu * mu / 2
        left = epsilon - losses - 2.0**-40 * (abs(epsilon) + np.abs(losses))
        most = np.zeros(len(left))
        for some in self.by_new_share:
            curve = gaussian_deltas(left, some.sigma)
            most = np.maximum(most, some.infinite_loss + (1 - some.infinite_loss) * curve)
        above = ndtr_of_few(-_NORMAL_CELL_ENDS)
        cells = -np.diff(above, prepend=1.0)
        return min(
            float(cells @ most) * (1 + 1e-9) + float(above[-1]) + _SMALLEST_NORMAL_FLOAT, 1.0
        )

    @cached_property
    def _largest_response_loss(self) -> float:
        """The largest loss of all randomised responses: their epsilons' sum, rounded up."""
        exact = sum((Fraction(epsilon) * count for epsilon, count in self.responses), Fraction(0))
        return float_at_least(exact)

    @cached_property
    def _response_losses(self) -> tuple[Floats, Floats]:
        """The sums that the randomised responses' losses can have, and their probabilities under
        the data with the user; on a grid (`dphh.privacy.losses`) if the sums are many."""
        repeated = [_losses_of_equal_responses(*each) for each in self.responses]
        if math.prod(count + 1 for _, count in self.responses) <= _MOST_EXACT_LOSSES:
            sums, chances = np.zeros(1), np.ones(1)
            for losses, probabilities in repeated:
                sums = _next_floats(np.add.outer(sums, losses).ravel())
                chances = np.multiply.outer(chances, probabilities).ravel()
            return sums, chances
        step = max(2 * self._largest_response_loss / MOST_GRID_POINTS, 1e-12)
        parts = (losses_on_grid(chances, losses, 0.0, step, 0.0) for losses, chances in repeated)
        whole = reduce(lambda one, two: one.followed_by(two, most_cut_per_tail=0.0), parts)
        return _next_floats(whole.values), whole.chances * (1 + whole.relative_error)


@lru_cache(maxsize=256)  # a call takes a tenth of a second or more, and the ledger repeats calls
def _smallest_epsilon(composed: Composition, delta: float) -> float:
    if composed.by_new_share and composed.first_sigma == math.inf:
        return _largest_epsilon(composed.by_new_share, delta)
    if delta < composed.infinite_loss:
        return math.inf
    if delta == composed.infinite_loss < 1 and composed.sigma < math.inf:
        return math.inf  # a Gaussian has a positive delta at every epsilon
    return smallest_epsilon(composed.delta, delta)


def _largest_epsilon(compositions: Sequence[Composition], delta: float) -> float:
    """The largest epsilon of any composition at this delta. That of the composition with the
    largest delta is computed first, which often suffices."""
    epsilon = 0.0
    for _ in compositions:
        deltas = [some.delta(epsilon) for some in compositions]
        if max(deltas) <= delta or math.isinf(epsilon):
            return epsilon
        epsilon = max(epsilon, compositions[deltas.index(max(deltas))].epsilon(delta))
    return max(some.epsilon(delta) for some in compositions)


def compose(events: Iterable[Event]) -> Composition:
    """The exact composition of events, in the order in which they were run."""
    charged = [event for event in events if cost_of(event).is_charged]
    whole = _compose_costs(costs_of(charged))
    if not charged or whole.responses:
        return whole
    first, rest = charged[0], _compose_costs(costs_of(charged[1:]))
    if isinstance(first, SetUnionEvent):
        return replace(whole, by_new_share=_compose_by_new_share(first.sigma, first.delta, rest))
    if isinstance(first, ChosenUnionEvent):
        union = _compose_by_new_share(first.sigma, first.delta, rest)
        rounds = _with_gaussian_and_delta(first.rounds_sigma, first.rounds_delta, rest)
        return replace(whole, by_new_share=(*union, rounds), first_sigma=first.before)
    return whole


def _compose_by_new_share(sigma: float, delta: float, rest: Composition) -> tuple[Composition, ...]:
    """A set union composed with the rest, for each interval of a user's share of new items."""
    return tuple(
        _with_gaussian_and_delta(
            sigma / math.sqrt(1 - low) * (1 - ROUNDING_MARGIN if low else 1),
            min(high * delta * (1 + ROUNDING_MARGIN), 1.0),
            rest,
        )
        for low, high in pairwise((0.0, *_ENDS_OF_NEW_ITEM_SHARES))
    )


def _with_gaussian_and_delta(sigma: float, delta: float, rest: Composition) -> Composition:
    return Composition(
        compose_sigmas([sigma, rest.sigma]), _probability_of_either(delta, rest.infinite_loss)
    )


def _compose_costs(costs: Iterable[Cost]) -> Composition:
    sigmas: list[float] = []
    infinite_loss = 0.0
    responses: Counter[float] = Counter()
    for cost in costs:
        if cost.sigma is not None:
            sigmas.append(float(cost.sigma))
        if cost.delta is not None:
            infinite_loss = _probability_of_either(infinite_loss, cost.delta)
        if cost.response_epsilon is not None and cost.response_epsilon > 0:
            responses[float(cost.response_epsilon)] += 1
    counted = tuple(sorted(responses.items()))
    return Composition(compose_sigmas(sigmas), infinite_loss, counted)


def _probability_of_either(first: float, second: float) -> float:
    """1 - (1 - first)(1 - second), rounded up; exact if one of them is 0."""
    if first == 0 or second == 0:
        return float(first or second)
    return min(math.nextafter(first + (1 - first) * second, math.inf), 1.0)


def _losses_of_equal_responses(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """The sums that the losses of `count` randomised responses of one epsilon can have, and their
    probabilities: a binomial number of responses has the loss +epsilon, the others -epsilon.

    Computed in logarithms, so that the rare loss keeps its precision at a large epsilon.
    """
    ups = np.arange(count + 1, dtype=np.float64)
    downs = count - ups
    ways = gammaln(count + 1) - gammaln(ups + 1) - gammaln(downs + 1)
    logarithms = ways + ups * log_expit(epsilon) + downs * log_expit(-epsilon)
    return _next_floats(epsilon * (ups - downs)), np.exp(logarithms)


def _next_floats(values: Floats) -> Floats:
    """The next larger floats: more than the rounding error of one product or sum."""
    return np.asarray(np.nextafter(values, np.inf), dtype=np.float64)
