"""The forecast ladder attacked, whole: what all noised tables of all rounds tell of one user.

The attacker knows everybody else's texts and the user's own, sees every noised weight that the
engine holds (more than it ever hands out), and adds up the evidence, a log-likelihood ratio, round
by round, with weights and shares that follow from what came before. By docs/ngrams.md that is
never more than one Gaussian mechanism of the priced mu shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np
import pytest
from scipy.stats import chi2

from dphh.mechanisms.ngrams.forecast.climb import FirstRound, Passed, begun
from dphh.mechanisms.ngrams.ladder.classes import valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import Integers, first_rung
from dphh.privacy.forecast_rounds import bins, list_weight, plain_weight, unit_for
from dphh.privacy.gaussian import gaussian_delta
from tests.audit.measure import DAILY, between
from tests.conftest import full
from tests.forecast.in_memory import SYSTEM, InMemory, Positions, climb
from tests.forecast.rounds_in_arrays import Rule, TwoRounds

GRID = 2**13
WORDS, LEVELS, MU, LEFT = 5, 3, 1.0, 0.8
MASSES = np.array([40.0, 30.0, 20.0, 10.0, 300.0])
LONG = "a list longer than any other but one"
#: Who joins: somebody else holds just the same, so that all that the user adds to is noised anyhow.
JOINING = {
    "one gram": [0, 1],
    LONG: [*range(WORDS)] * 9,
    "three grams": [2, 0, 2, 0],
    "words alone": [3],
}
PAIRS = [[i, j, 4 - i] for i in range(WORDS) for j in range(WORDS)] * 2
TEXTS = [*PAIRS, *JOINING.values()]


def positions(texts: list[list[int]]) -> Positions:
    user = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return Positions.of_texts(user, user, np.concatenate([np.array(text) for text in texts]))


class Watched(TwoRounds):
    """An engine on neighbours: runs on one of them, and knows what both add up to."""

    def __init__(self, joining: list[int], there: bool, noise: float = 1.0) -> None:
        self.sides = [InMemory(positions(TEXTS)), InMemory(positions([*TEXTS, joining]))]
        self.there, self.noise = there, noise
        #: Of each round: the inner product of noise and what the user adds, both in sigmas; and
        #: the squared norm of the latter.
        self.evidence: list[tuple[float, float]] = []
        super().__init__(self._add_up, SYSTEM, "test")

    def _add_up(self, rule: Rule) -> tuple[Integers, Integers]:
        self.without, self.within = (
            dict(zip(*(part.tolist() for part in side._add_up(rule)), strict=True))
            for side in self.sides
        )
        added = self.within if self.there else self.without
        return np.array([*added], dtype=np.int64), np.array([*added.values()], dtype=np.int64)

    def _noised(self, keys: Integers, sums: Integers, what: str) -> Integers:
        """The planted bug: a part of the noise alone."""
        noise = super()._noised(keys, 0 * sums, what)
        return sums + (noise * self.noise).astype(np.int64)

    def first_round(self, *asked) -> FirstRound:  # type: ignore[no-untyped-def]
        seen = super().first_round(*asked)
        noised = dict(zip((-1 - np.arange(len(seen.lists))).tolist(), seen.lists, strict=True))
        self._witness(noised | dict(zip(self._keys.tolist(), self._first, strict=True)))
        return seen

    def second_round(self, weights: Integers, unit: int) -> Integers:
        negatives = super().second_round(weights, unit)
        self._witness(dict(zip(self._keys.tolist(), self._second, strict=True)))
        return negatives

    def passed(self, thresholds: Integers) -> Passed:
        passed = super().passed(thresholds)
        for side in self.sides:
            side.move_to(passed)
        return passed

    def _witness(self, noised: dict[int, int]) -> None:
        moved = {key: add - self.without.get(key, 0) for key, add in self.within.items()}
        by = {key: part / GRID for key, part in moved.items() if part}
        base = self.within if self.there else self.without
        inner = sum((noised[key] - base.get(key, 0)) / GRID * part for key, part in by.items())
        self.evidence.append((float(inner), sum(part**2 for part in by.values())))


@dataclass
class Evidence:
    """Of many runs: noise along the user, by round that they move; and the whole ratio."""

    noise: np.ndarray
    spent: np.ndarray
    ratio: np.ndarray


def collected(joining: list[int], there: bool, runs: int, noise: float = 1.0) -> Evidence:
    along, spent, ratio = [], [], []
    for _ in range(runs):
        engine = Watched(joining, there, noise)
        for _ in climb(begun(WORDS, MASSES, LEFT, LEVELS, MU, 0.5, GRID), engine):
            pass
        rounds = np.array(engine.evidence)
        some = rounds[:, 1] > 0
        along.extend(rounds[some, 0] / rounds[some, 1] ** 0.5)
        spent.append(rounds[:, 1].sum())
        ratio.append(rounds[:, 0].sum() + (0.5 if there else -0.5) * rounds[:, 1].sum())
    return Evidence(np.array(along), np.array(spent), np.array(ratio))


def audit_events(
    mu: float, runs: int, with_user: Callable[[float], int], without: Callable[[float], int],
    cuts: list[float],
) -> None:  # fmt: skip
    """P - e^eps Q <= delta(eps) of the Gaussian of mu, both ways, for events `above a cut`."""
    for cut in cuts:
        one, other = (between(seen(cut), runs, DAILY) for seen in (with_user, without))
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            exact = gaussian_delta(epsilon, 1 / mu)
            assert one[0] - exp(epsilon) * other[1] <= exact, "more is shown than is claimed"
            assert (1 - other[1]) - exp(epsilon) * (1 - one[0]) <= exact, "more is shown, leaving"


@pytest.mark.parametrize("who", JOINING)
def test_all_rounds_of_all_levels_show_no_more_than_is_priced(who: str) -> None:
    runs = 400 if full() else 15 if who == LONG else 8
    mu = MU * LEFT**0.5
    there, not_there = (collected(JOINING[who], side, runs) for side in (True, False))
    for side in (there, not_there):
        assert (side.spent <= mu**2 * (1 + 1e-9)).all(), "a user moves more than was priced"
        spread = (side.noise**2).sum()
        if len(side.noise):
            assert spread >= chi2.ppf(DAILY, len(side.noise)), "less noise than was priced"
    if who == LONG:
        assert there.spent.max() > 0.9 * mu**2, "the audit hardly looks at what is spent"
    audit_events(
        mu,
        runs,
        lambda cut: int((there.ratio > cut).sum()),
        lambda cut: int((not_there.ratio > cut).sum()),
        [-0.5, 0.0, 0.5, 1.0],
    )


def test_too_little_noise_would_be_seen() -> None:
    less = collected(JOINING[LONG], False, 80, noise=0.6).noise
    assert (less**2).sum() < chi2.ppf(DAILY, len(less))


# A gram that the user alone holds: without them it is drawn lazily, and only what goes out tells.


def seen_alone(there: bool, unit: int, runs: int) -> np.ndarray:
    """The bin of the one gram of its class, and whether round 2 left it above 0."""
    masses = np.array([1e5, 1.0, 1.0, 1.0])
    valid = valid_classes(first_rung(4), masses, np.array([masses.sum()]))
    group = int(valid.of(np.array([0]))[0])
    assert valid.sizes[group] == 1
    law = bins(GRID)
    found = []

    def added(rule: Rule) -> tuple[Integers, Integers]:
        engine = InMemory(positions([[1, 2], [3, 3], *([[0, 0]] if there else [])]))
        return engine._add_up(rule)

    for _ in range(runs):
        rounds = TwoRounds(added, SYSTEM, "test")
        seen = rounds.first_round(2, valid, law, unit)
        negatives = rounds.second_round(np.full(seen.counts.shape, 64), unit)
        column = int(np.flatnonzero(seen.counts[group])[0])
        found.append(column + (0.5 if negatives[group].sum() == 0 else 0.0))
    return np.array(found)


def test_a_gram_of_one_user_shows_no_more_than_its_noise() -> None:
    sigma, runs = 1.5, 3_000 if full() else 150
    unit = unit_for(sigma, GRID)
    there, not_there = (seen_alone(side, unit, runs) for side in (True, False))
    norm = plain_weight(unit, 1) ** 2 + list_weight(unit) ** 2 + unit**2
    for above in (0.0, 0.5):  # in any case, and where round 2 left it above 0
        audit_events(
            norm**0.5 / GRID,
            runs,
            lambda cut, above=above: int(((there >= cut) & (there % 1 >= above)).sum()),  # type: ignore[misc]
            lambda cut, above=above: int(((not_there >= cut) & (not_there % 1 >= above)).sum()),  # type: ignore[misc]
            [0.0, 2.0, 4.0, 6.0],
        )
    assert there.mean() > not_there.mean(), "the audit sees nothing"
