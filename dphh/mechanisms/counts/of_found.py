"""The option `counts=` of `items`, `ngrams` and `trie`: how many users hold what a run finds.

Let sigma* be the sigma of the composition of all Gaussian releases of a run. The share c of
1/sigma*^2 goes to counts, the rest to finding. What was found is public before it is counted, so
the counts are those of the verb `counts`: of L2 sensitivity sqrt(max_items), with keys that depend
on earlier outputs only.

Privacy. Unit and adjacency are those of the verb. Finding is a Gaussian of (1 - c)/sigma*^2 and the
thresholds' deltas; the counts are a Gaussian of c/sigma*^2. Their adaptive composition (Dong, Roth
& Su 2019) is a Gaussian of 1/sigma*^2 and the same deltas; both directions.

A trie is grown by sampling, not by noise: then growing it takes the share 1 - c of epsilon and
delta, and the counts get the least noise with which both compose to (epsilon, delta).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from dphh.columns import checked_groups
from dphh.counting import FoundCounts
from dphh.errors import UsageError
from dphh.mechanisms.terms import arithmetic_delta
from dphh.price import Parameter
from dphh.privacy.accounting import compose
from dphh.privacy.counts import MOST_KEYS, counts_grid_bits
from dphh.privacy.events import Event, GaussianEvent, cost_of
from dphh.privacy.gaussian import smallest_sigma, split_sigma
from dphh.wording.options import check_whole, is_number

#: The share of the budget for counting what is found, by default: where what finding leaves of
#: users' purses pays for it, and where it is taken from finding.
SHARE_WITHIN_PURSES, SHARE_OF_FINDING = 0.3, 0.1
#: What a ledger says of the event of the counts.
COUNTS_NOTE = "counts of what was found, and what bounding removed"


@dataclass(frozen=True)
class CountsOptions:
    """The options of a verb for counting the users of what it finds. `share`: the part of the
    budget's 1/sigma^2 for the counts; 0 means no counts."""

    share: float = 0.0
    #: The column of the groups to count within, and its declared values.
    by: str | None = None
    groups: tuple[str, ...] = ()
    #: An item is released only if the low end of its interval is at least this number of users;
    #: with groups, in each group separately. 0 leaves no item out.
    min_users: int = 0

    HELP: ClassVar = {
        "counts": "Share of the budget for counting users; 0: a score only.",
        "by": "Count users within the groups of this column.",
        "groups": "Names of groups, with commas; the rest is 'other'.",
    }
    #: The help of `min_users`, for verbs that have this option.
    MIN_USERS_HELP: ClassVar = {"min_users": "Leave out items that may have fewer users."}

    @classmethod
    def from_options(
        cls,
        counts: float | None,
        by: str | None = None,
        groups: str | Sequence[str] = (),
        min_users: int | None = None,
        *,
        default: float = 0.0,
    ) -> CountsOptions:
        """Make it from the options `counts`, `by`, `groups` and `min_users`, or refuse them.
        `default`: the share if `counts` is None."""
        declared = checked_groups(by, groups)
        if min_users is not None:
            check_whole("min_users", min_users, least=2)
        share = default if counts is None else counts
        if not is_number(share) or not (share == 0 or 0.001 <= share <= 0.999):
            raise UsageError(
                f"counts: found {counts!r}; give the share of the budget for counting what is "
                "found, such as 0.3, or 0 for no counts"
            )
        if share == 0:
            for option, value in (("min_users", min_users), ("by", by)):
                if value is not None:
                    remedy = "leave counts=0 out" if default else "give counts=, such as 0.3"
                    raise UsageError(
                        f"{option}: needs counts of what is found, and none are asked for; {remedy}"
                    )
            return cls()
        return cls(float(share), by, declared, min_users or 0)

    @property
    def parameters(self) -> tuple[tuple[str, Parameter], ...]:
        """The options, as a price records them, without `min_users` and `by` that are not used."""
        asked: tuple[tuple[str, Parameter], ...] = (("counts", self.share),)
        if self.min_users:
            asked += (("min_users", self.min_users),)
        return asked if self.by is None else (*asked, ("by", self.by), ("groups", self.groups))

    def theorem(self, *, within_purses: bool = False) -> str:
        """The text that counting adds to a verb's theorem. `within_purses`: what finding leaves of
        users' purses pays for it."""
        how = "with the share `counts` of the same budget"
        if within_purses:
            how = "to which a user adds what the rounds leave of that one budget"
        said = "; users of what is found are counted by a further Gaussian release, "
        return f"{said}{how} (docs/counts.md)" if self.share else ""

    def arithmetic_delta(self, epsilon: float) -> float:
        """The delta for the distance of the counts' noise table from the exact Gaussian."""
        return arithmetic_delta(2 * MOST_KEYS, epsilon) if self.share else 0.0

    def sigma_of_finding(self, total_sigma: float) -> float:
        """The sigma for finding items, if finding and counting compose to `total_sigma`."""
        return split_sigma(total_sigma, [1 - self.share])[0] if self.share else total_sigma

    def sigma_with_counts(self, finding_sigma: float) -> float:
        """The sigma to which finding by this sigma and counting compose."""
        return finding_sigma * sqrt(1 - self.share)

    def counts_events(self, total_sigma: float) -> tuple[Event, ...]:
        """The event of the counts, if any, where finding and counting compose to `total_sigma`."""
        if not self.share:
            return ()
        return (counts_event(split_sigma(total_sigma, [self.share])[0]),)


#: Every user keeps this much of the purse, in finds that are counted.
KEPT_FINDS = 16
#: A user who holds so many finds, more than most users do, is counted in full for each of them by
#: the share `counts` of a whole purse.
FINDS_OF_USER = 40


def counts_within_purses(total_sigma: float, options: CountsOptions) -> FoundCounts | None:
    """How a run counts what it finds by what is left of purses, all of whose Gaussian releases
    together have `total_sigma`."""
    if not options.share:
        return None
    in_full = FINDS_OF_USER / options.share
    kept = max(1, min(KEPT_FINDS, int(in_full / 8)))
    sigma = total_sigma * sqrt(in_full)
    counts_grid_bits(sigma)
    return FoundCounts(
        sigma / sqrt(kept),
        kept,
        within_purses=int(in_full),
        by=options.by,
        groups=options.groups,
        min_users=options.min_users,
    )


def counts_event(sigma: float) -> GaussianEvent:
    return GaussianEvent(sigma, note=COUNTS_NOTE, of_counts=True)


def counts_event_within(
    other_events: Sequence[Event], epsilon: float, delta: float
) -> GaussianEvent:
    """The counts' event with the least noise that composes with the others to (epsilon, delta)."""
    sigma = smallest_sigma(
        lambda sigma: compose([*other_events, counts_event(sigma)]).delta(epsilon), delta
    )
    return counts_event(sigma)


def found_counts_of(
    events: Iterable[Event], max_items: int, options: CountsOptions, *, beginnings: bool = False
) -> FoundCounts | None:
    """How a run counts the users of the items that it finds, with the sigma of the counts' event;
    None without such an event. Refused if the noise would hide every count. `beginnings`: an item
    also counts where it begins a longer sequence."""
    for event in events:
        sigma = cost_of(event).sigma
        if sigma is not None and event.of_counts:
            counting = FoundCounts(
                sigma,
                max_items,
                beginnings=beginnings,
                by=options.by,
                groups=options.groups,
                min_users=options.min_users,
            )
            counts_grid_bits(counting.relative_sigma * sqrt(max_items))
            return counting
    return None
