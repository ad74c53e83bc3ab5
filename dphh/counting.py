"""What a plan fixes for counting users, before any row is read: the users of given public keys, or
of what all other levels found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from dphh.columns import OTHER_GROUP
from dphh.level import LevelOnGrid
from dphh.privacy.counts import (
    IntervalMargins,
    checked_confidence,
    chosen_bound,
    counts_grid_bits,
    factors_of_sizes,
    interval_margins,
    sigma_on_grid,
)
from dphh.udfs.arrays import Integers
from dphh.udfs.rules.counts import HeldHistogram, RoughWeights, Weighing
from dphh.wording.lines import number


def meaning_of_intervals(confidence: float, simultaneous: bool, min_users: int) -> str:
    """What a confidence means: of each interval, of all at once, or of those that were chosen."""
    if min_users:
        return (
            "of the intervals shown, also of those of each length and group alone, at most "
            f"{100 * (1 - confidence):.3g}% are expected to miss the true number"
        )
    if simultaneous:
        return f"all intervals hold the true numbers at once with probability {confidence:g}"
    return f"each interval holds the true number with probability {confidence:g}"


@dataclass(frozen=True)
class Family:
    """Counts of which `kept` were shown of `counted`: of items of a length, of a group, of all."""

    counted: int
    kept: int
    #: How many tokens their items have; None of counts of all lengths.
    length: int | None = None
    #: The group within which they count; None of counts of all groups.
    group: str | None = None


@dataclass(frozen=True)
class CountsLevel(LevelOnGrid):
    """What a plan fixes for counting the users of each listed key: its noise; no threshold."""

    kind: ClassVar[str] = "counts"
    shown = ("sigma", "half_width", "means")

    #: Sigma divided by a user's L2 norm sqrt(K), as priced. The drawn noise has at least this.
    relative_sigma: float
    #: n, the number of counts: items times groups.
    keys: int
    #: K: a user who holds more keys, or of a larger sum of squared factors, adds less than one user
    #: to each.
    max_items: int
    confidence: float
    simultaneous: bool
    #: Both follow from relative_sigma and K.
    grid_bits: int = field(init=False)
    sigma_grid: int = field(init=False)
    level: int = 1
    #: In how many groups each item is counted.
    groups_of_item: int = 1
    #: The noised losses: what bounding removed. None in a plan.
    lost_grid: tuple[int, ...] | None = None
    #: True: a key must be the beginning of a sequence, or all of it. False: any run of tokens.
    beginnings: bool = False
    #: A count is shown only if its interval begins at so many users or above; 0 leaves none out.
    min_users: int = 0
    #: With `min_users`: how many were shown of which, as intervals follow from it. None in a plan.
    families: tuple[Family, ...] | None = None
    #: Sigma of the noise of rough counts, by which the run chooses factors, and the bits of their
    #: grid. 0: all factors are 1.
    rough_sigma: int = 0
    rough_bits: int = 0
    #: The noised rough counts. None in a plan, and if all factors are 1.
    rough_grid: tuple[int, ...] | None = None
    #: Sigma of the noise of a histogram of how many keys users hold, by which the run chooses K; of
    #: a plan, `max_items` is then an example. 0: K was given.
    held_sigma: int = 0
    #: The noised histogram (`HeldHistogram`). None in a plan, and if K was given.
    held_grid: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        bits = counts_grid_bits(self.relative_sigma * sqrt(self.max_items))
        sigma_grid = sigma_on_grid(self.relative_sigma, self.max_items, bits)
        vars(self).update(grid_bits=bits, sigma_grid=sigma_grid)

    def to_json(self) -> dict[str, Any]:
        said = super().to_json()
        if not self.min_users:
            del said["min_users"], said["families"]
        for chosen in ("rough", "held"):
            if not said[f"{chosen}_sigma"]:
                said = {name: x for name, x in said.items() if not name.startswith(chosen)}
        return said

    def chosen_by(self, held: Integers) -> CountsLevel:
        """The level with the K that follows from the noised histogram."""
        most = chosen_bound(held, self.weighing, self.relative_sigma)
        return replace(self, max_items=most, held_grid=tuple(held.tolist()))

    def weighed_by(self, rough: Integers) -> CountsLevel:
        """The level with the factors that follow from the noised rough counts."""
        return replace(self, rough_grid=tuple(rough.tolist()))

    @cached_property
    def factors(self) -> tuple[int, ...]:
        if self.rough_grid is None:
            return ()
        return factors_of_sizes(np.array(self.rough_grid), self.rough_sigma)

    @property
    def weighing(self) -> Weighing:
        most, bits = self.max_items, self.grid_bits
        return Weighing(self.keys, most, bits, self.groups_of_item, self.factors)

    @property
    def rough_weights(self) -> RoughWeights:
        return RoughWeights(self.keys, self.rough_bits)

    @property
    def histogram(self) -> HeldHistogram:
        return HeldHistogram(self.weighing)

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in users; where factors differ, the mean of all counts."""
        return super().sigma * float(np.mean(1 / self.weighing.factor))

    def margins(self, shown: Fraction = Fraction(1)) -> IntervalMargins:
        """How far an interval extends below and above a noised count; with `min_users`, if this
        share of all counts is shown."""
        keys_at_once = self.keys if self.simultaneous else 1
        return interval_margins(
            self.sigma_grid,
            self.confidence,
            self.weighing.losses,
            keys_at_once,
            shown if self.min_users else None,
        )

    @property
    def means(self) -> str:
        return meaning_of_intervals(self.confidence, self.simultaneous, self.min_users)

    @property
    def half_width(self) -> float:
        """How far an interval reaches down, in users, and up where no user is bounded; where
        factors differ, the mean of all counts."""
        return self.margins().below * self.sigma / self.sigma_grid

    def in_words(self) -> tuple[str, ...]:
        whole = f"each user counts as one for up to {self.max_items:,} of {self.keys:,} counts"
        if self.held_sigma and self.held_grid is None:
            whole = (
                f"each user counts as one for up to K of {self.keys:,} counts; the run chooses K "
                f"by a noised histogram of how many users hold; here K is {self.max_items:,}"
            )
        if self.rough_sigma:
            whole += "; rarer items get less noise, by an earlier rough count"
        shares = ", ".join(
            f"{self.half_width / count:.2%} of {count:,}" for count in (100, 1_000, 10_000)
        )
        bounded = self.max_items < self.keys
        further = "; high also covers what bounding takes" if bounded else ""
        if self.min_users:
            tenth = number(self._grid_to_users(self.margins(Fraction(1, 10)).below))
            further += f"; {tenth} to the lower side where one of ten is shown"
        return (
            whole + (", and for less of each beyond that" if bounded else ""),
            f"noise: {number(self.sigma)} users (one standard deviation)",
            f"intervals reach {number(self.half_width)} users to either side: {shares}{further}; "
            f"{self.means}",
        )


@dataclass(frozen=True)
class FoundCounts:
    """What a plan fixes for counting what a run finds: a `CountsLevel` for any number of keys."""

    #: Sigma divided by a user's L2 norm, as priced.
    relative_sigma: float
    #: K: a user who holds more found keys adds less than one user to each.
    max_items: int
    #: How many found keys a user can add a whole user to who spends nothing else, if what finding
    #: leaves of users' purses pays for counting; K is then what every user keeps. 0: users have no
    #: purses.
    within_purses: int = 0
    confidence: float = 0.95
    #: For tries: count users with a sequence that begins with the key, or is the key.
    beginnings: bool = False
    #: The column of groups, and its declared values; all other values form one more group.
    by: str | None = None
    groups: tuple[str, ...] = ()
    #: An item that was found is released for a group, or for all users if there are no groups, only
    #: if the low end of its interval there is at least this number of users.
    min_users: int = 0

    @property
    def chance_below_min_users(self) -> float:
        """A bound on the probability that an item of fewer than `min_users` users is released."""
        return (1 - self.confidence) / 2

    @property
    def names(self) -> tuple[str | None, ...]:
        """The groups of each item."""
        return (None,) if self.by is None else (*self.groups, OTHER_GROUP)

    def level(self, items: int) -> CountsLevel:
        keys = items * len(self.names)
        return CountsLevel(
            self.relative_sigma,
            keys,
            min(self.max_items, keys),
            self.confidence,
            simultaneous=False,
            groups_of_item=len(self.names),
            beginnings=self.beginnings,
            min_users=self.min_users,
        )

    @property
    def noisiest_level(self) -> CountsLevel:
        """The level with the most noise of all numbers of items: that with 2 K of them."""
        return self.level(2 * self.max_items)

    def to_json(self) -> dict[str, Any]:
        said = {**asdict(self), "groups": list(self.groups)}
        if self.by is None:  # as in plans made before groups existed
            del said["by"], said["groups"]
        if not self.min_users:
            del said["min_users"]
        if not self.within_purses:
            del said["within_purses"]
        level = self.noisiest_level
        return {**said, "sigma": level.sigma, "half_width": level.half_width}
