"""From how often an event was seen on two neighbours: where delta lies, by exact bounds.

Everything here looks from outside: a release is an outcome, the likelihood ratio of the outcome is
the best test there is between two neighbours (Neyman and Pearson), and how often it exceeds
e^epsilon is counted with and without the user. Bounds are Clopper and Pearson's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from dphh import Corpus, Plan
from dphh.engines import open_host
from dphh.reader.rows import Limits
from dphh.registry import VERBS, run_levels
from dphh.release import Release
from dphh.run import release_of
from dphh.udfs.noise.randomness import RunRandomness, SystemRandomness
from tests.engines.levels import unstored

#: What the table says: one bound in a thousand may fail.
TABLE = 1e-3
#: What a test that runs every day may fail.
DAILY = 1e-9


def between(count: int, trials: int, fails: float) -> tuple[float, float]:
    """Where a probability lies, given how often its event happened; each end fails with `fails`."""
    low = beta.ppf(fails, count, trials - count + 1) if count else 0.0
    high = beta.ppf(1 - fails, count + 1, trials - count) if count < trials else 1.0
    return float(low), float(high)


@dataclass(frozen=True)
class Measured:
    """One verb and method on one pair of neighbours, and the event that tells them apart best."""

    verb: str
    method: str
    neighbours: str
    epsilon: float
    #: What is claimed; None where nothing is claimed in this direction.
    delta: float
    #: What these neighbours come to by arithmetic; None where it was not worked out.
    exact: float | None
    #: How often the event was seen where it is likelier, and on the neighbour.
    seen: int
    trials: int
    against: int
    trials_against: int

    @classmethod
    def of(cls, plan: Plan, neighbours: str, seen: Sequence[int], exact: float | None) -> Measured:
        privacy = plan.privacy
        return cls(plan.verb, plan.method, neighbours, privacy.epsilon, privacy.delta, exact, *seen)

    def bounds(self, fails: float = TABLE) -> tuple[float, float]:
        """Delta at the claimed epsilon, of this event: P - e^epsilon Q, by Clopper and Pearson."""
        p_low, p_high = between(self.seen, self.trials, fails / 2)
        q_low, q_high = between(self.against, self.trials_against, fails / 2)
        factor = exp(self.epsilon)
        return max(0.0, p_low - factor * q_high), max(0.0, p_high - factor * q_low)


#: (engine, a folder of its own, how many times the daily counts) to what was seen.
Cell = Callable[[str, Path, int], Measured]


def counted(likelier: NDArray[np.bool_], against: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """The last four fields of `Measured`."""
    return int(likelier.sum()), len(likelier), int(against.sum()), len(against)


def in_turn(speaks: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """The same of groups of which every other one has the user."""
    return counted(speaks[0::2], speaks[1::2])


def released_once(plan: Plan, corpus: Corpus, engine: str) -> Release:
    """The release of a run by the system's randomness, without a ledger: nobody pays here."""
    randomness = RunRandomness(SystemRandomness())
    randomness.secret_key = SystemRandomness().random_words(4, "the key of a run").tobytes()
    read = VERBS[plan.verb].read(corpus, plan.price)
    threads = 1 if engine == "duckdb" else None
    host = open_host(engine, read, randomness, Limits(threads=threads))
    try:
        found = run_levels(plan.price, host, unstored, lambda _: None)
        return release_of(found, plan.price, read, host, "audit", randomness)
    finally:
        host.close()


def scores(release: Release, column: str = "score") -> dict[str, float]:
    table = release.to_arrow()
    return dict(zip(table["item"].to_pylist(), table[column].to_pylist(), strict=True))
