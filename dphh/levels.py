"""What a plan fixes for one level, before any row is read: noise, bounds, thresholds."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any, ClassVar, Literal, Protocol

from dphh.columns import OTHER
from dphh.devices.reports.round import Sampling
from dphh.errors import UsageError
from dphh.privacy.coin_reports import Form
from dphh.privacy.counts import (
    Ends,
    Weighing,
    checked_confidence,
    counts_bits,
    ends,
    sigma_on_grid,
)
from dphh.privacy.special import bdtrc
from dphh.privacy.subset_selection import SubsetSelection, estimate

Pruning = Literal["both", "single"]
#: How a user of several sequences comes to the one that is theirs for a run of `trie`.
Choice = Literal["drawn", "most-frequent"]
#: Whether `ldp_trie` draws every report, or how many reports hold each value.
Mode = Literal["messages", "aggregate"]
#: How often noise alone may bring any value of a level of `ldp_trie` to what stands out.
BY_CHANCE = 0.05


class Level(Protocol):
    """One level of a plan. `kind` names the level query that runs it."""

    kind: ClassVar[str]

    @property
    def level(self) -> int: ...

    def to_json(self) -> dict[str, Any]: ...


class _Level:
    """A level as JSON: its kind, its fields, and what follows from them, where it is `shown`."""

    kind: ClassVar[str]
    shown: ClassVar[tuple[str, ...]] = ()

    def to_json(self: Any) -> dict[str, Any]:
        said = {**asdict(self), **{name: getattr(self, name) for name in self.shown}}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
        return {"kind": self.kind, **plain}


class _OnGrid(_Level):
    """Noise and threshold on the integer grid where 2^grid_bits is one user."""

    grid_bits: int
    sigma_grid: int

    @property
    def sigma(self) -> float:
        """Noise in users: the standard deviation, in weights of a user who holds one item."""
        return self.sigma_grid / 2.0**self.grid_bits

    def _in_users(self, grid: int) -> float:
        return grid / 2.0**self.grid_bits


@dataclass(frozen=True)
class SetUnionLevel(_OnGrid):
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
        """In users: so many, holding nothing else, would carry an item over without noise."""
        return self._in_users(self.threshold_grid)


@dataclass(frozen=True)
class WeighedLevel(SetUnionLevel):
    """A later round of a set union: what a user gives to an item follows from what earlier rounds'
    noise left of it. Its threshold covers any weights."""

    kind: ClassVar[str] = "weighed"


@dataclass(frozen=True)
class PrunedLevel(_OnGrid):
    """A level of DPNE above the first: valid grams only, so its threshold hides nobody.

    The threshold keeps spurious grams few. It follows from the released sets below, so a plan
    leaves it open, and a run fills in `threshold_grid` and `valid`.
    """

    kind: ClassVar[str] = "pruned"
    shown = ("sigma", "threshold")

    level: int
    max_items: int
    grid_bits: int
    sigma_grid: int
    #: eta: at most this share of the level below's number is expected to be spurious here.
    spurious: float
    pruning: Pruning
    threshold_grid: int | None = None
    #: |V_k|, how many grams the released level below makes valid.
    valid: int | None = None

    @property
    def threshold(self) -> float | None:
        return None if self.threshold_grid is None else self._in_users(self.threshold_grid)


@dataclass(frozen=True)
class CountsLevel(_OnGrid):
    """How many users hold each of given keys: one Gaussian vector, no threshold."""

    kind: ClassVar[str] = "counts"
    shown = ("sigma", "half_width")

    level: int
    #: n, the counts: items, times groups where there are any.
    keys: int
    #: K: who holds more keys counts for less than one user of each.
    max_items: int
    grid_bits: int
    sigma_grid: int
    #: Noise over the L2 norm sqrt(K) of a user: what is priced. What is drawn is no less.
    relative_sigma: float
    confidence: float
    simultaneous: bool
    #: The noised sums of what bounding took, an octave each; a plan leaves it open.
    lost_grid: tuple[int, ...] | None = None
    #: Whether keys are what sequences begin with, or are as a whole, and not what stands in texts.
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
        """The level at this noise over the L2 norm of a user."""
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
        """How far intervals reach from a noised count."""
        together = self.keys if self.simultaneous else 1
        return ends(self.sigma_grid, self.confidence, self.weighing.octaves, together)

    @property
    def half_width(self) -> float:
        """Of an interval, in users, before what bounding may have taken."""
        return self._in_users(max(self.reach.below, self.reach.above))


@dataclass(frozen=True)
class FoundCounts:
    """How what a run finds is counted: as `CountsLevel`, of as many keys as will be found."""

    #: Noise over the L2 norm of a user: what is priced.
    relative_sigma: float
    #: K, or as many as are found, if that is less.
    max_items: int
    confidence: float = 0.95
    #: Of tries: how many users hold a sequence that begins so, or is it.
    beginnings: bool = False
    #: The column of the groups that are counted within, and those of its values; all others are one
    #: group more.
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
        """Of the groups; of all there are, None alone."""
        return (None,) if self.by is None else (*self.groups, OTHER)

    def level(self, keys: int) -> CountsLevel:
        return CountsLevel.of(
            self.relative_sigma, keys, self.max_items, self.confidence, False, self.beginnings
        )

    @property
    def widest(self) -> CountsLevel:
        """With more found than a user counts for whole: no other has more noise."""
        return self.level(2 * self.max_items)

    def to_json(self) -> dict[str, Any]:
        said = {**asdict(self), "groups": list(self.groups)}
        if self.by is None:  # as before there were groups
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
    """A level of the forecast ladder above the first: two rounds, by what is released below.

    A plan leaves open how levels share the noise's budget, and a run fills it in.
    """

    kind: ClassVar[str] = "forecast"
    shown = ("pruning",)

    level: int
    #: Noise that all rounds of all levels come to together, in users.
    total_sigma: float
    #: Noise of each round, in units of a grid on which a user has what the round's share buys.
    sigma_grid: int
    #: At most this share of the level below's number is expected to be spurious here.
    spurious: float
    #: |V_k|, how many grams the released level below makes valid.
    valid: int | None = None
    #: Noise of the two rounds, in users.
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
    #: eta: of the listed words that stand out in round 1, at most this share is expected to be
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
    """One level of TrieHH: each user votes with probability p; theta votes make a prefix grow."""

    kind: ClassVar[str] = "vote"
    shown = ("p",)

    level: int
    #: p = numerator / 2^64, exactly what is priced and what is drawn.
    numerator: int
    theta: int

    @property
    def p(self) -> float:
        return self.numerator / 2.0**64


@dataclass(frozen=True)
class BatchLevel(_Level):
    """One level of TrieHH as the papers have it: `batch` of `users`, drawn without replacement."""

    kind: ClassVar[str] = "batch"

    level: int
    users: int
    batch: int
    theta: int


@dataclass(frozen=True)
class LocalLevel(_Level):
    """One level of LDP TrieHH: each of `users` sends `contributions` randomised reports.

    A value is a prefix of the level below and what comes next: one of the characters, or the end.
    `nothings` more say "nothing", a different one for each of a user's reports, so that no user
    reports a value twice; by coins (which is how counts alone are drawn) there is no such value.
    (Plans of before had one, for all of a user's reports.) How many values there are is fixed here,
    before any row is read, so that what a report can be tells nothing.
    """

    kind: ClassVar[str] = "local"
    #: What plans say that were made before they had these fields.
    before: ClassVar[dict[str, Any]] = {"nothings": 1, "form": "subsets"}
    shown = ("domain", "p", "q", "noise", "stands_out", "stands_out_share")

    level: int
    #: Several tries are grown one after the other, from different users: which one this is of.
    pass_number: int
    #: Users sit in a secret random order; the next `users` after this seat are asked.
    first_seat: int
    users: int
    contributions: int
    sampling: Sampling
    mode: Mode
    #: How many prefixes of the level below there may be, and how many characters may come next.
    prefixes: int
    characters: int
    nothings: int
    form: Form
    #: A report is a set of `size` values (with coins, on average); the user's own is in it with
    #: probability numerator / 2^64.
    size: int
    numerator: int
    #: The values that most reports hold go on, so many at most.
    keep: int

    @property
    def domain(self) -> int:
        return self.values + self.nothings

    @property
    def values(self) -> int:
        """What can be kept: all but "nothing"."""
        return self.prefixes * (self.characters + 1)

    @property
    def mechanism(self) -> SubsetSelection:
        return SubsetSelection(self.domain, self.size, self.numerator)

    @property
    def reports(self) -> int:
        return self.users * self.contributions

    @property
    def noise(self) -> float:
        """The standard error of the estimate for a value that nobody holds, in reports."""
        return sqrt(self.mechanism.variance(self.reports))

    @property
    def stands_out(self) -> float:
        """The least estimate, in reports, that noise alone brings none of the level's values to,
        with a probability of 1 - BY_CHANCE."""
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
