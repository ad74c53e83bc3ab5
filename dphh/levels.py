"""What a plan fixes for one level, before any row is read: noise, bounds, thresholds."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any, ClassVar, Literal, Protocol

from dphh.columns import OTHER
from dphh.errors import UsageError
from dphh.privacy.coin_reports import Form, Sampling
from dphh.privacy.counts import (
    Ends,
    Weighing,
    checked_confidence,
    counts_bits,
    ends,
    sigma_on_grid,
)
from dphh.privacy.following import Grid
from dphh.privacy.special import bdtrc
from dphh.privacy.subset_selection import SubsetSelection, estimate

Pruning = Literal["both", "single"]
#: How `trie` chooses the one sequence of a user who has several, once a run.
Choice = Literal["drawn", "most-frequent"]
#: Whether `ldp_trie` draws every report, or only the number of reports that contain each value.
Mode = Literal["messages", "aggregate"]
#: The probability that noise alone brings any value of an `ldp_trie` level to `stands_out`.
BY_CHANCE = 0.05


class Level(Protocol):
    """One level of a plan. `kind` names the level query that runs it."""

    kind: ClassVar[str]

    @property
    def level(self) -> int: ...

    def to_json(self) -> dict[str, Any]: ...


class _Level:
    """A level as JSON: its kind, its fields, and the derived properties named in `shown`."""

    kind: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()

    def to_json(self: Any) -> dict[str, Any]:
        said = {**asdict(self), **{name: getattr(self, name) for name in self.shown}}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
        return {"kind": self.kind, **plain}


class _LevelOnGrid(_Level):
    """Noise and threshold on the integer grid where 2^grid_bits is one user."""

    grid_bits: int
    sigma_grid: int

    @property
    def sigma(self) -> float:
        """The noise's standard deviation in users: in units of a one-item user's weight."""
        return self.sigma_grid / 2.0**self.grid_bits

    def _grid_to_users(self, grid: int) -> float:
        return grid / 2.0**self.grid_bits


@dataclass(frozen=True)
class SetUnionLevel(_LevelOnGrid):
    """One level of the weighted Gaussian policy."""

    kind: ClassVar[str] = "set_union"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    threshold_grid: int
    #: DP-SIPS runs several rounds over the same level.
    round: int = 1

    @property
    def threshold(self) -> float:
        """In users: without noise, this many users who hold only this item reach the threshold."""
        return self._grid_to_users(self.threshold_grid)

    @property
    def grid(self) -> Grid:
        return Grid(self.sigma_grid, self.grid_bits)


@dataclass(frozen=True)
class WeighedLevel(SetUnionLevel):
    """A later round of a set union: users weigh items by the noised weights of earlier rounds.
    Its threshold is valid for any weights."""

    kind: ClassVar[str] = "weighed"


#: If at least this many items reach the first round's threshold, rounds follow.
CHOICE_COMMON = 3


@dataclass(frozen=True)
class ChoiceLevel(SetUnionLevel):
    """A first round of `items`, which releases nothing: how many items reach its threshold chooses
    between an `AloneLevel` and rounds."""

    kind: ClassVar[str] = "choice"


@dataclass(frozen=True)
class AloneLevel(SetUnionLevel):
    """The one round of `items` that takes the place of rounds where few items are popular."""

    kind: ClassVar[str] = "alone"


@dataclass(frozen=True)
class PrunedLevel(_LevelOnGrid):
    """A level of DPNE above the first. Only valid grams are noised, so privacy needs no threshold.

    The threshold limits the number of spurious grams. It depends on the released sets below: it is
    None in a plan, and a run fills in `threshold_grid` and `valid`.
    """

    kind: ClassVar[str] = "pruned"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    #: eta: expected spurious grams here, at most, over the number released at the level below.
    spurious: float
    pruning: Pruning
    threshold_grid: int | None = None
    #: |V_k|: how many grams are valid, given the released level below.
    valid: int | None = None

    @property
    def threshold(self) -> float | None:
        return None if self.threshold_grid is None else self._grid_to_users(self.threshold_grid)


@dataclass(frozen=True)
class CountsLevel(_LevelOnGrid):
    """How many users hold each of a given list of keys: one Gaussian vector, no threshold."""

    kind: ClassVar[str] = "counts"
    shown = ("sigma", "half_width")

    level: int
    #: n, the number of counts: items times groups.
    keys: int
    #: K: a user who holds more keys adds less than one user to each.
    max_items: int
    grid_bits: int
    sigma_grid: int
    #: Sigma over a user's L2 norm sqrt(K), as priced. The noise that is drawn has at least this.
    relative_sigma: float
    confidence: float
    simultaneous: bool
    #: The noised sums of what bounding removed, one for each octave; None in a plan.
    lost_grid: tuple[int, ...] | None = None
    #: True: a key matches the beginning of a sequence, or all of it. False: any run of a text.
    beginnings: bool = False

    @classmethod
    def of(
        cls,
        relative_sigma: float,
        keys: int,
        max_items: int,
        confidence: float,
        simultaneous: bool,
        beginnings: bool = False,
    ) -> CountsLevel:
        """The level whose noise is `relative_sigma` times a user's L2 norm."""
        most = min(max_items, keys)
        bits = counts_bits(relative_sigma * sqrt(most), keys, most)
        return cls(
            level=1,
            keys=keys,
            max_items=most,
            grid_bits=bits,
            sigma_grid=sigma_on_grid(relative_sigma, most, bits),
            relative_sigma=relative_sigma,
            confidence=checked_confidence(confidence),
            simultaneous=simultaneous,
            beginnings=beginnings,
        )

    @property
    def weighing(self) -> Weighing:
        return Weighing(self.keys, self.max_items, self.grid_bits)

    @property
    def reach(self) -> Ends:
        """How far an interval extends below and above a noised count."""
        together = self.keys if self.simultaneous else 1
        return ends(self.sigma_grid, self.confidence, self.weighing.octaves, together)

    @property
    def half_width(self) -> float:
        """Half an interval's width in users, not including what bounding may have removed."""
        return self._grid_to_users(max(self.reach.below, self.reach.above))


@dataclass(frozen=True)
class FoundCounts:
    """How a run counts the users of what it found: the `CountsLevel` for the keys it will find."""

    #: Sigma over a user's L2 norm, as priced.
    relative_sigma: float
    #: K, or the number of keys found, if that is less.
    max_items: int
    confidence: float = 0.95
    #: For tries: count users with a sequence that begins with the key, or is the key.
    beginnings: bool = False
    #: The column of groups, and its declared values; all other values form one more group.
    by: str | None = None
    groups: tuple[str, ...] = ()
    #: What is found and whose interval begins below so many users is left out.
    min_users: int = 0

    @property
    def passes_below(self) -> float:
        """How often, at most, what fewer than `min_users` users hold is not left out."""
        return (1 - self.confidence) / 2

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of the groups; (None,) where there are no groups."""
        return (None,) if self.by is None else (*self.groups, OTHER)

    def level(self, keys: int) -> CountsLevel:
        return CountsLevel.of(
            self.relative_sigma, keys, self.max_items, self.confidence, False, self.beginnings
        )

    @property
    def widest(self) -> CountsLevel:
        """The level with 2 K keys. No other number of keys has more noise."""
        return self.level(2 * self.max_items)

    def to_json(self) -> dict[str, Any]:
        said = {**asdict(self), "groups": list(self.groups)}
        if self.by is None:  # the format of plans that were made before groups existed
            del said["by"], said["groups"]
        if not self.min_users:
            del said["min_users"]
        return {**said, "sigma": self.widest.sigma, "half_width": self.widest.half_width}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> FoundCounts:
        said = {each.name: found[each.name] for each in fields(cls) if each.name in found}
        return cls(**{**said, "groups": tuple(said.get("groups", ()))})


@dataclass(frozen=True)
class ForecastLevel(_Level):
    """A level of the forecast ladder above the first: two rounds, planned from the level below.

    How levels share the noise's budget is open in a plan; a run fills it in.
    """

    kind: ClassVar[str] = "forecast"
    shown = ("pruning",)

    level: int
    #: The sigma, in users, of one release that costs as much as all rounds of all levels together.
    total_sigma: float
    #: The sigma of each round, on a grid where a user's norm is what the round's share allows.
    sigma_grid: int
    #: Expected spurious grams here, at most, over the number released at the level below.
    spurious: float
    #: |V_k|: how many grams are valid, given the released level below.
    valid: int | None = None
    #: The sigmas of the two rounds, in users.
    first_sigma: float | None = None
    second_sigma: float | None = None

    @property
    def pruning(self) -> Pruning:
        return "both"


@dataclass(frozen=True)
class ListedWordsLevel(_Level):
    """Level 1 of the forecast ladder with a prior: two rounds over the words of a public list, each
    of which has its noise whether anybody holds it or not, and over other words, which have
    thresholds. Both kinds share a user's norm (docs/prior-proof.md)."""

    kind: ClassVar[str] = "listed_words"
    shown = ("first_sigma", "second_sigma")

    level: int
    #: How many words the list has.
    listed: int
    #: Of other words, how many a user counts for.
    max_items: int
    #: Noise that all rounds of all levels come to together, in users.
    total_sigma: float
    sigma_grid: int
    #: A user's norm in each round, in grid units; and what other words must reach.
    first_unit: int
    second_unit: int
    first_threshold_grid: int
    second_threshold_grid: int
    #: eta: of the listed words that round 1 lets expect, at most this share is expected to be
    #: spurious in the release, or one word.
    spurious: float
    #: b, what that comes to: a plan leaves it open, and a run fills it in.
    spurious_words: float | None = None

    @property
    def first_sigma(self) -> float:
        """Noise of the rounds, in users."""
        return self.sigma_grid / self.first_unit

    @property
    def second_sigma(self) -> float:
        return self.sigma_grid / self.second_unit

    @property
    def second_threshold(self) -> float:
        return self.second_threshold_grid / self.second_unit


@dataclass(frozen=True)
class VoteLevel(_Level):
    """One level of TrieHH: each user votes with probability p; a prefix with theta votes grows."""

    kind: ClassVar[str] = "vote"
    shown = ("p",)

    level: int
    #: p = numerator / 2^64, both in the price and in the draws.
    numerator: int
    theta: int

    @property
    def p(self) -> float:
        return self.numerator / 2.0**64


@dataclass(frozen=True)
class BatchLevel(_Level):
    """One level of TrieHH as in the papers: `batch` of `users`, sampled without replacement."""

    kind: ClassVar[str] = "batch"

    level: int
    users: int
    batch: int
    theta: int


@dataclass(frozen=True)
class LocalLevel(_Level):
    """One level of LDP TrieHH: each of `users` sends `contributions` randomised reports.

    A value is a prefix of the level below and what follows it: one of the characters, or the end.
    `nothings` further values mean "nothing", a different one for each report of a user, so that no
    user reports a value twice. The form "coins" (and mode "aggregate") has no such value; older
    plans had one for all reports of a user. The number of values is fixed here, before any row is
    read, so the set of possible reports does not depend on the data.
    """

    kind: ClassVar[str] = "local"
    #: The values of these fields in plans that were made before the fields existed.
    before: ClassVar[dict[str, Any]] = {"nothings": 1, "form": "subsets"}
    shown = ("domain", "p", "q", "noise", "stands_out", "stands_out_share")

    level: int
    #: Several tries are grown one after the other, from disjoint users: the trie's number.
    pass_number: int
    #: Users have seats in a secret random order; the level asks the `users` from this seat on.
    first_seat: int
    users: int
    contributions: int
    sampling: Sampling
    mode: Mode
    #: The maximum number of prefixes from the level below, and the number of characters.
    prefixes: int
    characters: int
    nothings: int
    form: Form
    #: A report is a set of `size` values (with coins, on average). It contains the user's own value
    #: with probability numerator / 2^64.
    size: int
    numerator: int
    #: At most this many values, those in the most reports, become prefixes of the next level.
    keep: int

    @property
    def domain(self) -> int:
        return self.values + self.nothings

    @property
    def values(self) -> int:
        """The number of values that can be kept: all but "nothing"."""
        return self.prefixes * (self.characters + 1)

    @property
    def mechanism(self) -> SubsetSelection:
        return SubsetSelection(self.domain, self.size, self.numerator)

    @property
    def reports(self) -> int:
        return self.users * self.contributions

    @property
    def noise(self) -> float:
        """The standard error of the estimate for a value that no report is for, in reports."""
        return sqrt(self.mechanism.variance(self.reports))

    @property
    def stands_out(self) -> float:
        """The least estimate, in reports, that with probability 1 - BY_CHANCE noise alone brings
        none of the level's values to."""
        values, other = self.values, self.mechanism.q
        counts = range(self.reports + 1)
        least = bisect_left(
            counts,
            True,
            key=lambda k: bool(bdtrc(k - 1, self.reports, other) <= BY_CHANCE / values),
        )
        return float(estimate(least, self.reports, self.mechanism))

    @property
    def p(self) -> float:
        return self.mechanism.p

    @property
    def q(self) -> float:
        return self.mechanism.q

    @property
    def stands_out_share(self) -> float:
        return self.stands_out / self.reports


KINDS = {
    level.kind: level
    for level in (
        SetUnionLevel,
        WeighedLevel,
        ChoiceLevel,
        AloneLevel,
        PrunedLevel,
        CountsLevel,
        ForecastLevel,
        ListedWordsLevel,
        VoteLevel,
        BatchLevel,
        LocalLevel,
    )
}


def level_from_json(found: dict[str, Any]) -> Level:
    kind = KINDS.get(found["kind"])
    if kind is None:
        raise UsageError(
            f"plan: found a level of kind {found['kind']!r}; this dphh knows {', '.join(KINDS)}"
        )
    said = {**getattr(kind, "before", {}), **found}
    return kind(**{field.name: said[field.name] for field in fields(kind)})
