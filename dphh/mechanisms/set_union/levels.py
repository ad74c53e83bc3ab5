"""What a plan fixes for the rounds of a set union, in which each user weighs items."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from dphh.level import LevelOnGrid
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.truncated import TruncatedGeometric, truncated_geometric
from dphh.udfs.rules.weights import RoundNoise
from dphh.wording.lines import number, with_noun

#: Several rounds follow a first one if at least this many items reach its threshold; else one. With
#: fewer, no items are common, so removing found items from users gains nothing.
LEAST_ITEMS_FOR_ROUNDS = 3


@dataclass(frozen=True)
class SetUnionLevel(LevelOnGrid):
    """What a plan fixes for one round of a set union: its noise, bound and threshold."""

    kind: ClassVar[str] = "set_union"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    threshold_grid: int
    #: The round's number: DP-SIPS has several rounds on one level.
    round: int = 1

    @property
    def threshold(self) -> float:
        """The threshold in users: this many who hold only one item reach it without noise."""
        return self._grid_to_users(self.threshold_grid)

    @property
    def round_noise(self) -> RoundNoise:
        return RoundNoise(self.sigma_grid, self.grid_bits)

    def in_words(self) -> tuple[str, ...]:
        return (
            f"each user counts for at most {with_noun(self.max_items, 'item')}",
            f"noise: {number(self.sigma)} users (one standard deviation)",
            f"threshold: {number(self.threshold)} users, so {ceil(self.threshold):,} "
            "who hold nothing else carry an item over without noise",
        )


@dataclass(frozen=True)
class ReweighedLevel(SetUnionLevel):
    """What a plan fixes for a later round of a set union, in which users weigh items by the noised
    weights of earlier rounds. Its threshold is valid for any weights."""

    kind: ClassVar[str] = "weighed"


@dataclass(frozen=True)
class SingleLevel(SetUnionLevel):
    """What a plan fixes for optimal selection: its noise is truncated geometric, of the deviation
    `sigma_grid`, rounded up, and its threshold is that noise's reach plus 1. A grid unit is a
    user."""

    kind: ClassVar[str] = "single"

    #: At most e^epsilon, and P(noise = reach): in units of 2^-32 and 2^-64.
    ratio: int = 0
    edge: int = 0

    @property
    def reach(self) -> int:
        return self.threshold_grid - 1

    @property
    def noise(self) -> TruncatedGeometric:
        return truncated_geometric(self.ratio, self.reach, self.edge)

    def chances_to_miss(self, weights: Integers) -> Floats:
        return self.noise.chances_below(self.threshold_grid - weights)

    def in_words(self) -> tuple[str, ...]:
        return (
            "each user counts for one item; a user who holds several, for one of them at random",
            f"noise: never more than {with_noun(self.reach, 'user')} ({number(self.sigma)} is one "
            "standard deviation)",
            f"threshold: {self.threshold_grid:,} users",
        )


@dataclass(frozen=True)
class ChoiceLevel(SetUnionLevel):
    """What a plan fixes for a first round of `items` that releases nothing. The number of items
    that reach its threshold decides whether a `OneRoundAfterChoice` follows or several rounds."""

    kind: ClassVar[str] = "choice"

    def in_words(self) -> tuple[str, ...]:
        return (
            "releases nothing, and decides what follows: several rounds if at least "
            f"{with_noun(LEAST_ITEMS_FOR_ROUNDS, 'item')} reach {number(self.threshold)} users, "
            "else one",
            f"noise: {number(self.sigma)} users (one standard deviation)",
        )


@dataclass(frozen=True)
class OneRoundAfterChoice(SetUnionLevel):
    """What a plan fixes for the one round that follows a `ChoiceLevel` whose threshold few items
    reached. Method "gaussian", with one round and no choice, has a plain `SetUnionLevel`."""

    kind: ClassVar[str] = "alone"
