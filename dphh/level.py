"""What a plan fixes for one level, before any row is read: noise, bounds, thresholds."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from dphh.privacy.search import ndtr_of_few
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import rounded_gaussian


class Level:
    """One level of a plan: a frozen dataclass in its mechanism's `levels.py`, with its own `kind`.

    As JSON it is its kind, its fields, and the derived properties named in `shown`.
    """

    kind: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()

    level: int

    def in_words(self) -> tuple[str, ...]:
        """What the level does, in phrases for the plan's `--details`."""
        raise NotImplementedError

    def to_json(self: Any) -> dict[str, Any]:
        said = {**asdict(self), **{name: getattr(self, name) for name in self.shown}}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
        return {"kind": self.kind, **plain}


class Noise(Protocol):
    """The noise of a level, on the integers."""

    def tail_lower_bound(self, k: int) -> Fraction:
        """A lower bound on P(noise >= k), for every integer k."""
        ...


class LevelOnGrid(Level):
    """Noise and threshold on the integer grid where 2^grid_bits is one user."""

    grid_bits: int
    sigma_grid: int

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in users: in units of a one-item user's weight."""
        return self.sigma_grid / 2.0**self.grid_bits

    @property
    def noise(self) -> Noise:
        """The noise of a sum of weights."""
        return rounded_gaussian(self.sigma_grid)

    def chances_to_miss(self: Any, weights: Integers) -> Floats:
        """How likely a sum of each of these weights stays below the threshold, about."""
        return ndtr_of_few((self.threshold_grid - 0.5 - weights) / self.sigma_grid)

    def _grid_to_users(self, grid: int) -> float:
        return grid / 2.0**self.grid_bits
