"""What a plan fixes for one level, before any row is read: noise, bounds, thresholds."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, ClassVar

from dphh.errors import UsageError
from dphh.folders import import_folder

#: Each kind of level by its name in JSON.
KINDS: dict[str, type[Level]] = {}


class Level:
    """One level of a plan: a frozen dataclass in a file of this folder, with a `kind` of its own.

    As JSON it is its kind, its fields, and the derived properties named in `shown`.
    """

    kind: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()

    level: int

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    def in_words(self) -> tuple[str, ...]:
        """The level's bounds, noise and thresholds, in sentences for people."""
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


def level_from_json(found: dict[str, Any]) -> Level:
    import_folder("dphh.levels")
    kind: Any = KINDS.get(found["kind"])
    if kind is None:
        raise UsageError(
            f"plan: found a level of kind {found['kind']!r}; this dphh knows "
            f"{', '.join(sorted(KINDS))}"
        )
    level: Level = kind(**{field.name: found[field.name] for field in fields(kind)})
    return level
