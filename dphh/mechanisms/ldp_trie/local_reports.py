"""How each level of `ldp_trie` randomises, and the epsilons of its reports for different observers.

An observer sees one of three: a user's own messages (local epsilon); all messages, shuffled and
without senders (`epsilons_of_shuffled_messages`); or only how many reports contain each value
(`epsilon_of_sums`), from which alone a release is computed. Theorems and proofs: docs/ldp_trie.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from dphh.errors import UsageError
from dphh.mechanisms.terms import LARGEST_EPSILON
from dphh.udfs.rules.reports import LevelReports, SubsetSelection, subset_selection

# Functions here import `amplification` and `sums` of this folder themselves: these load
# scipy.stats, which takes half a second and which no other verb needs.

#: A search for the largest local epsilon within a limit stops this close to the limit, relatively.
_SEARCH_PRECISION = 4e-3


@dataclass(frozen=True)
class EpsilonLimit:
    """The largest allowed epsilon of a level's sums, if `replaced` reports of one user change."""

    replaced: int
    epsilon: float


@lru_cache(maxsize=256)
def randomisers_by_domain(
    domains: frozenset[int],
    local_epsilon: float,
    sent: LevelReports,
    limit: EpsilonLimit | None = None,
) -> dict[int, SubsetSelection]:
    """A randomiser for each domain, the number of values of a level. The run costs as much as its
    most expensive level, so no level may cost more than the limit or, without a limit, more than
    the level with the most values.

    (In a small domain a report hides less: at level 1 sets would have one value, and cost a user
    1.5 where the other levels cost 0.9.)
    """
    widest = subset_selection(max(domains), local_epsilon)
    if limit is None:
        reports = sent.contributions
        limit = EpsilonLimit(reports, _epsilon_of_sums_roughly(widest, sent, reports))
    return {
        domain: widest
        if domain == widest.domain
        else _randomiser_within_limit(domain, local_epsilon, sent, limit)
        for domain in domains
    }


def _randomiser_within_limit(
    domain: int, local_epsilon: float, sent: LevelReports, limit: EpsilonLimit
) -> SubsetSelection:
    """The randomiser with the least noise within the limit, of sets of the usual size or one more,
    at a smaller local epsilon if necessary."""
    usual = subset_selection(domain, local_epsilon)
    if (found := _epsilon_of_sums_roughly(usual, sent, limit.replaced)) <= limit.epsilon:
        return usual

    def within_limit(size: int) -> SubsetSelection:
        start = local_epsilon
        if size == usual.size:
            start += _step_of_local_epsilon(found, limit.epsilon)
        local = _largest_local_epsilon(domain, size, sent, limit, start, local_epsilon)
        return subset_selection(domain, local, size)

    # Sets of more than half of all values are never better, and the usual size may be the half.
    sizes = [size for size in (usual.size, usual.size + 1) if 2 * size <= domain + 1]
    return min(map(within_limit, sizes), key=lambda found: float(found.variance(sent.reports)))


@lru_cache(maxsize=256)
def local_epsilon_within(limit: EpsilonLimit, most_values: int, sent: LevelReports) -> float:
    """The largest local epsilon with which a level of `most_values` values is within the limit."""
    start = min(8.0, LARGEST_EPSILON)
    return _largest_local_epsilon(most_values, None, sent, limit, start, LARGEST_EPSILON)


def _largest_local_epsilon(
    domain: int,
    size: int | None,
    sent: LevelReports,
    limit: EpsilonLimit,
    start: float,
    most: float,
) -> float:
    """The largest local epsilon, up to `most`, with which reports of `size` values (None: the usual
    number) are within the limit, to within `_SEARCH_PRECISION`. The search begins at `start`.

    The epsilon of sums grows about as e^(local / 2), or at the last measured rate, with jumps where
    the set size changes. A step assumes that growth; if it leaves the interval, the interval is
    halved.
    """
    low, high, growth = 0.0, most * (1 + 1e-9), 0.5
    tried = min(max(start, 1e-3), most)
    before: tuple[float, float] | None = None
    while True:
        randomiser = subset_selection(domain, tried, size)
        found = _epsilon_of_sums_roughly(randomiser, sent, limit.replaced)
        if before is not None and before[0] != tried and found > 0:
            growth = min(max(math.log(before[1] / found) / (before[0] - tried), 0.2), 2.0)
        before = (tried, found) if found > 0 else None
        if found <= limit.epsilon:
            low = tried
            if tried == most or found >= limit.epsilon * (1 - _SEARCH_PRECISION):
                return tried
        else:
            high = tried
        if high - low < 1e-4 * high:
            break
        tried = min(tried + _step_of_local_epsilon(found, limit.epsilon) * 0.5 / growth, most)
        if not low < tried < high:
            tried = (low + high) / 2
    if low == 0.0:
        raise UsageError(
            f"central_epsilon, user_epsilon: found {limit.epsilon:g}, which no local epsilon "
            "reaches with so few reports; give a larger epsilon, or ask more users"
        )
    return low


def _step_of_local_epsilon(found: float, wanted: float) -> float:
    """How much the local epsilon should change if the epsilon of sums grows as e^(local / 2)."""
    return 2 * math.log(wanted * (1 - _SEARCH_PRECISION / 2) / max(found, 1e-300))


def epsilon_of_sums(randomiser: SubsetSelection, sent: LevelReports, replaced: int) -> float:
    """The epsilon of a level's sums for `replaced` reports of one user, all for different values:
    by Theorem B or, if that does not apply, the epsilon of shuffled messages."""
    from dphh.mechanisms.ldp_trie.sums import epsilon_by_theorem_b

    finely = epsilon_by_theorem_b(randomiser, sent, replaced)
    return min(_epsilon_of_sums_roughly(randomiser, sent, replaced), finely)


def _epsilon_of_sums_roughly(
    randomiser: SubsetSelection, sent: LevelReports, replaced: int
) -> float:
    """`epsilon_of_sums` with wider blocks, for searches; an upper bound too."""
    from dphh.mechanisms.ldp_trie.sums import WIDE_BLOCKS, epsilon_by_theorem_b

    found = epsilon_by_theorem_b(randomiser, sent, replaced, WIDE_BLOCKS)
    return found if found < math.inf else _epsilon_of_shuffled_messages(randomiser, sent, replaced)


def epsilons_of_shuffled_messages(
    level_randomisers: Iterable[SubsetSelection], sent: LevelReports
) -> tuple[float, float]:
    """The epsilons of shuffled messages for one report, and for all of a user's reports by group
    privacy: the largest over these levels."""
    one = several = 0.0
    for each in sorted(set(level_randomisers), key=lambda each: each.domain):
        one = max(one, _epsilon_of_shuffled_messages(each, sent, 1, one))
        if (reports := sent.contributions) > 1:
            several = max(several, _epsilon_of_shuffled_messages(each, sent, reports, several))
    return one, max(one, several)


@lru_cache(maxsize=1024)
def _epsilon_of_shuffled_messages(
    randomiser: SubsetSelection, sent: LevelReports, replaced: int, least: float = 0.0
) -> float:
    from dphh.mechanisms.ldp_trie.amplification import blanket_of_subsets, central_epsilon

    blanket = blanket_of_subsets(randomiser)
    return central_epsilon(blanket, sent.reports, sent.delta, replaced, least)
