"""What a plan fixes for one level, before any row is read: noise, bounds, thresholds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar


class Level:
    """One level of a plan: a frozen dataclass in a file of this folder, with a `kind` of its own.

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


class LevelOnGrid(Level):
    """Noise and threshold on the integer grid where 2^grid_bits is one user."""

    grid_bits: int
    sigma_grid: int

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in users: in units of a one-item user's weight."""
        return self.sigma_grid / 2.0**self.grid_bits

    def _grid_to_users(self, grid: int) -> float:
        return grid / 2.0**self.grid_bits
