"""`counts=` of `items`, `ngrams` and `trie`: how many users hold what a run finds, in one budget.

Let sigma* be the noise that all Gaussian releases of a run come to. Of 1/sigma*^2 the share c goes
to counts, the rest to finding. What is found is public when it is counted, so the counts are those
of `counts`: of L2 sensitivity sqrt(max_items), chosen by earlier outputs alone.

Privacy. Unit and adjacency are the verb's. Finding is a Gaussian of (1 - c)/sigma*^2 and its
thresholds' deltas; the counts are one of c/sigma*^2. Composed adaptively (Dong, Roth & Su 2019)
they are one of 1/sigma*^2 and the same deltas; both directions.

A trie is grown by sampling, not by noise: c is then the share of epsilon and of delta that growing
it leaves alone, and the counts get the least noise that composes with it to the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from dphh.columns import checked_groups
from dphh.errors import UsageError
from dphh.levels import FoundCounts
from dphh.price import Parameter
from dphh.privacy.accounting import compose
from dphh.privacy.counts import MOST_KEYS, counts_bits
from dphh.privacy.events import Event, GaussianEvent, Role, cost_of
from dphh.privacy.gaussian import smallest, split_sigma
from dphh.privacy.set_union import arithmetic_delta

#: What is said of the counts' event, which is found by its role.
NOTE = "counts of what was found, and what bounding took"


@dataclass(frozen=True)
class Counting:
    """How much of a budget's 1/sigma^2 counts what is found; 0 where nothing is counted."""

    share: float = 0.0
    #: The column of the groups to count within, and those of its values that are declared.
    by: str | None = None
    groups: tuple[str, ...] = ()

    HELP: ClassVar = {
        "counts": "Of the budget, for how many users hold what is found; such as 0.3.",
        "by": "With --counts: the column whose values are the groups to count within.",
        "groups": "Its values to count within, with commas between; all others count as 'other'.",
    }

    @classmethod
    def of(
        cls, counts: float | None, by: str | None = None, groups: str | Sequence[str] = ()
    ) -> Counting:
        """As the options `counts`, `by` and `groups` say it."""
        declared = checked_groups(by, groups)
        if counts is None:
            if by is not None:
                raise UsageError(
                    "by: says within what to count what is found, and goes with counts=, the share "
                    "of the budget for that, such as 0.3"
                )
            return cls()
        number = isinstance(counts, (int, float)) and not isinstance(counts, bool)
        if not number or not 0.001 <= counts <= 0.999:
            raise UsageError(
                f"counts: found {counts!r}; give the share of the budget that goes to counts of "
                "what is found, such as 0.3, or leave it out"
            )
        return cls(float(counts), by, declared)

    @property
    def parameters(self) -> tuple[tuple[str, Parameter], ...]:
        """As a price records them. What was not asked for and is newer than ledgers is left out: a
        request of before is the same request."""
        asked: tuple[tuple[str, Parameter], ...] = (("counts", self.share or None),)
        return asked if self.by is None else (*asked, ("by", self.by), ("groups", self.groups))

    @property
    def theorem(self) -> str:
        """What a verb's theorem says more."""
        if not self.share:
            return ""
        return (
            "; what is found is counted by one Gaussian more, of the share `counts` of the same "
            "budget (docs/counts.md)"
        )

    def spare(self, epsilon: float) -> float:
        """What the noise table's distance from the exact Gaussian costs the counts."""
        return arithmetic_delta(2 * MOST_KEYS, epsilon) if self.share else 0.0

    def finding(self, total: float) -> float:
        """The noise that is left to finding."""
        return split_sigma(total, [1 - self.share])[0] if self.share else total

    def events(self, total: float) -> tuple[Event, ...]:
        if not self.share:
            return ()
        return (counts_event(split_sigma(total, [self.share])[0]),)


def counts_event(sigma: float) -> GaussianEvent:
    return GaussianEvent(sigma, NOTE, role=Role.COUNTS)


def counts_beside(others: Sequence[Event], epsilon: float, delta: float) -> GaussianEvent:
    """Counts of the least noise that comes to (epsilon, delta) together with these others."""

    def suffices(sigma: float) -> bool:
        return compose([*others, counts_event(sigma)]).delta(epsilon) <= delta

    enough = 1.0
    while not suffices(enough):
        enough *= 2
    while suffices(enough / 2):
        enough /= 2
    return counts_event(smallest(suffices, enough / 2, enough))


def found_counts(
    events: Iterable[Event], max_items: int, asked: Counting, *, beginnings: bool = False
) -> FoundCounts | None:
    """How what is found is counted, at the noise that these events have for it; refused, where that
    would hide everything."""
    for event in events:
        sigma = cost_of(event).sigma
        if sigma is not None and event.role is Role.COUNTS:
            counting = FoundCounts(
                sigma, max_items, beginnings=beginnings, by=asked.by, groups=asked.groups
            )
            counts_bits(counting.relative_sigma * sqrt(max_items), max_items, max_items)
            return counting
    return None
