"""Gaussian releases and thresholds, each chosen in the light of what came before: under a bound on
the sum of mu^2 and one on the product of 1 - delta (docs/composition.md), against every strategy on
a grid, all outcomes enumerated."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import norm

from dphh.privacy.accounting import compose
from dphh.privacy.events import DeltaEvent, GaussianEvent
from tests.draws import curve

#: Parts of mu^2, and of log(1 - delta): of one step, or of all so far.
Taken = tuple[int, int]
#: A Gaussian is told by its cell alone. These are the ends of the cells; the first holds most.
ENDS = np.append(np.append(-np.inf, np.linspace(-2, 5, 36)), np.inf)


class Attacker:
    """Chooses each step by what all steps before it gave. `granted`: what may be taken together."""

    def __init__(
        self, mu: float, delta: float, parts: int, granted: Callable[[Taken], bool]
    ) -> None:
        self.granted, self.most_parts = granted, 2 * parts
        self.mus = [mu * math.sqrt(part / parts) for part in range(self.most_parts + 1)]
        self.lost = [
            -math.expm1(part / parts * math.log1p(-delta)) for part in range(self.most_parts + 1)
        ]

    def steps(self, taken: Taken) -> Iterator[Taken]:
        parts = range(self.most_parts + 1)
        return (
            (noise, lost)
            for noise in parts
            for lost in parts
            if (noise or lost) and self.granted((taken[0] + noise, taken[1] + lost))
        )

    def outcomes(self, noise: int) -> tuple[np.ndarray, np.ndarray]:
        """Of a Gaussian of so many parts: each cell's probability and privacy loss."""
        if not noise:
            return np.ones(1), np.zeros(1)
        there, away = np.diff(norm.cdf(ENDS - self.mus[noise])), np.diff(norm.cdf(ENDS))
        return there, np.log(there / away)

    def most(self, epsilon: np.ndarray, steps: int, taken: Taken = (0, 0)) -> np.ndarray:
        """The largest delta at each of these epsilons, by at most so many more steps."""
        best = np.maximum(0, -np.expm1(np.minimum(epsilon, 0)))
        for noise, lost in self.steps(taken) if steps else ():
            probability, loss = self.outcomes(noise)
            then = (taken[0] + noise, taken[1] + lost)
            rest = self.most(np.subtract.outer(epsilon, loss), steps - 1, then) @ probability
            best = np.maximum(best, self.lost[lost] + (1 - self.lost[lost]) * rest)
        return best


CASES = [(1.0, 0.3, 0.002), (0.5, 0.4, 0.05), (3.0, 0.8, 1e-4)]


@pytest.mark.parametrize(("epsilon", "mu", "delta"), CASES)
def test_no_strategy_within_both_sums_passes_what_all_at_once_costs(epsilon, mu, delta):
    attacker = Attacker(mu, delta, 4, lambda taken: max(taken) <= 4)
    bound = compose([GaussianEvent(1 / mu), DeltaEvent(delta)]).delta(epsilon)
    assert 0.97 * bound < attacker.most(np.array(epsilon), 3) <= bound


@pytest.mark.parametrize(("epsilon", "mu", "delta"), CASES)
def test_what_may_be_exchanged_or_exceeded_passes_it(epsilon, mu, delta):
    """A rule that grants whatever has this price, noise for thresholds, is no filter; nor is one
    that lets go what follows a first step."""
    parts = 4
    bound = delta + (1 - delta) * float(curve(epsilon, mu))

    def has_the_price(taken: Taken) -> bool:
        lost = -math.expm1(taken[1] / parts * math.log1p(-delta))
        return lost + (1 - lost) * float(curve(epsilon, mu * math.sqrt(taken[0] / parts))) <= bound

    for granted in (has_the_price, lambda taken: taken[0] <= parts and taken[1] <= parts + 1):
        most = Attacker(mu, delta, parts, granted).most(np.array(epsilon), 2)
        assert most > 1.01 * bound
