"""What a plan fixes for levels of n-grams: of DPNE, and of the forecast ladder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dphh.level import Level, LevelOnGrid
from dphh.wording.lines import number, with_noun


@dataclass(frozen=True)
class PrunedLevel(LevelOnGrid):
    """What a plan fixes for a level of DPNE above the first: its noise and bounds.

    An n-gram is valid if its first and its last n - 1 tokens were released. Only valid grams get
    noise, so privacy needs no threshold; it limits the spurious grams. It
    depends on the released sets below, so a run fills in `threshold_grid` and `valid`.
    """

    kind: ClassVar[str] = "pruned"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    #: eta: the most expected spurious grams here, divided by the grams released at the level below.
    spurious: float
    threshold_grid: int | None = None
    #: |V_k|: how many grams are valid, given the released level below.
    valid: int | None = None

    @property
    def threshold(self) -> float | None:
        return None if self.threshold_grid is None else self._grid_to_users(self.threshold_grid)

    def in_words(self) -> tuple[str, ...]:
        return (
            f"each user counts for at most {with_noun(self.max_items, 'valid n-gram')}",
            f"noise: {number(self.sigma)} users; the threshold follows from what is released",
        )


@dataclass(frozen=True)
class ForecastLevel(Level):
    """What a plan fixes for a level of the forecast ladder above the first, with three rounds: what
    all rounds of all levels cost together, at most. Each user's purse decides what they spend.
    """

    kind: ClassVar[str] = "forecast"

    level: int
    #: The sigma, in users, of one release that costs as much as all rounds of all levels together.
    total_sigma: float
    #: The sigma in grid units, the same in each round. What a user spends in a round sets the
    #: user's norm instead.
    sigma_grid: int
    #: The most expected spurious grams here, divided by the grams released at the level below.
    spurious: float
    #: |V_k|: how many grams are valid, given the released level below.
    valid: int | None = None

    @property
    def whole(self) -> float:
        """What all rounds of all levels may cost a user together: mu^2, as a squared norm in units
        of the noise's grid."""
        return (self.sigma_grid / self.total_sigma) ** 2

    def in_words(self) -> tuple[str, ...]:
        return (
            "each user counts for all their valid n-grams, in three rounds, and pays for no other",
            f"noise: a share of what all rounds come to together, {number(self.total_sigma)} "
            "users; it and the thresholds follow from what is released",
        )


@dataclass(frozen=True)
class ListedWordsLevel(Level):
    """What a plan fixes for level 1 of the forecast ladder with a prior, with two rounds: noise of
    every word of a public list, held or not, and of other words, which must reach thresholds. Both
    kinds share a user's norm (docs/prior.md)."""

    kind: ClassVar[str] = "listed_words"
    shown = ("first_sigma", "second_sigma")

    level: int
    #: How many words the list has.
    listed: int
    #: A user counts for at most this many words that the list lacks.
    max_items: int
    #: The sigma, in users, of one release that costs as much as all rounds of all levels together.
    total_sigma: float
    sigma_grid: int
    #: A user's norm in each round, in grid units; and the thresholds of words that the list lacks.
    first_unit: int
    second_unit: int
    first_threshold_grid: int
    second_threshold_grid: int
    #: eta: the most expected spurious words, divided by the number of listed words whose release is
    #: expected after round 1; one spurious word is always allowed.
    spurious: float
    #: b: the most expected spurious words. None in a plan, known in a run.
    spurious_words: float | None = None

    @property
    def first_sigma(self) -> float:
        """The sigma of round 1, in users."""
        return self.sigma_grid / self.first_unit

    @property
    def second_sigma(self) -> float:
        return self.sigma_grid / self.second_unit

    @property
    def second_threshold(self) -> float:
        return self.second_threshold_grid / self.second_unit

    def in_words(self) -> tuple[str, ...]:
        return (
            f"each user counts for all their words of a list of {self.listed:,}, and for at most "
            f"{with_noun(self.max_items, 'other word')}, in two rounds",
            f"noise: {number(self.first_sigma)} and {number(self.second_sigma)} users",
            f"threshold of words that the list lacks: {number(self.second_threshold)} users; that "
            "of words of the list follows from what the rounds show",
        )
