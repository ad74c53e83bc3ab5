"""What a plan fixes for the levels of LDP TrieHH, at which users send randomised reports."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Literal

from dphh.level import Level
from dphh.privacy.search import bdtrc
from dphh.udfs.rules.reports import SubsetSelection, estimated_holders
from dphh.wording.lines import with_noun

#: Which prefixes are reported for a user who has more of them than reports: a uniform sample, or
#: those with which most of the user's own rows begin.
PrefixSampling = Literal["random", "greedy"]
#: The probability that noise alone brings any value of an `ldp_trie` level to `stands_out`.
STANDS_OUT_BY_CHANCE = 0.05


@dataclass(frozen=True)
class LocalLevel(Level):
    """What a plan fixes for one level of LDP TrieHH: `users` send `contributions` reports each.

    A value is a prefix of the level below and what follows it: one of the characters, or the end.
    `contributions` further values mean "nothing", a different one for each report of a user, so
    that no user reports a value twice. The number of values is fixed here, before any row is read,
    so the set of possible reports does not depend on the data.
    """

    kind: ClassVar[str] = "local"
    shown = ("domain", "p", "q", "noise", "stands_out", "stands_out_share")

    level: int
    #: The number of the trie, where several are grown one after the other, from disjoint users.
    pass_number: int
    #: Users have seats in a secret random order; the level asks the `users` from this seat on.
    first_seat: int
    users: int
    contributions: int
    sampling: PrefixSampling
    #: The maximum number of prefixes from the level below, and the number of characters.
    prefixes: int
    characters: int
    #: A report is a set of `size` values. It contains the user's own value with probability
    #: numerator / 2^64.
    size: int
    numerator: int
    #: At most this many values, those in the most reports, become prefixes of the next level.
    keep: int

    @property
    def domain(self) -> int:
        return self.keepable_values + self.contributions

    @property
    def keepable_values(self) -> int:
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
        """The standard error, in reports, of the estimate for a value that nobody holds."""
        return sqrt(self.mechanism.variance(self.reports))

    @property
    def stands_out(self) -> float:
        """The least estimate, in reports, that noise alone gives to any value of the level with
        probability STANDS_OUT_BY_CHANCE at most."""
        chance = STANDS_OUT_BY_CHANCE / self.keepable_values
        least = bisect_left(
            range(self.reports + 1),
            True,
            key=lambda k: bool(bdtrc(k - 1, self.reports, self.mechanism.q) <= chance),
        )
        return float(estimated_holders(least, self.reports, self.mechanism))

    @property
    def p(self) -> float:
        return self.mechanism.p

    @property
    def q(self) -> float:
        return self.mechanism.q

    @property
    def stands_out_share(self) -> float:
        return self.stands_out / self.reports

    def in_words(self) -> tuple[str, ...]:
        return (
            f"{with_noun(self.users, 'user')} not asked before send "
            f"{with_noun(self.contributions, 'report')} each ({self.sampling} sampling)",
            f"a report holds {self.size:,} of {self.domain:,} values, the user's own with "
            f"probability {self.mechanism.p:.4g}, another with {self.mechanism.q:.4g}; the "
            f"{self.keep:,} that most reports hold go on",
            f"an estimate from {self.stands_out:,.0f} of {self.reports:,} reports on "
            f"({self.stands_out_share:.3%}) stands out: noise alone brings "
            f"any value of the level there with probability {STANDS_OUT_BY_CHANCE:g} at most",
        )
