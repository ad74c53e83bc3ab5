"""`trie`: sequences, grown level by level from sampled votes. TrieHH.

Zhu, Kairouz, McMahan, Sun & Li 2020, Algorithms 1 to 3. Every user has one sequence for the whole
run. At level i = 1..L a sample of the users is asked; a sampled user whose sequence's first i - 1
tokens are in the trie votes for its first i tokens (its end is a token of its own kind); prefixes
with theta votes or more are added to the trie. There is no noise: the sampling is the randomness,
and vote counts are never released.

The sample: every user tosses a new coin of probability p at every level, where the paper draws a
fixed number of users (its theorem holds in one direction: docs/trie.md). Unit: a user. Adjacency:
add or remove one user. Theorem: the path accountant (docs/trie.md), both directions; theta and p
are chosen to find the rarest sequences that (epsilon, delta) allows.

counts=c. The trie is grown for (1 - c) (epsilon, delta). The grown trie is public then, and the
counts of its leaves follow as a Gaussian release with the least noise for which both together are
(epsilon, delta)-DP (`of_found.py`). A user's row counts for at most one leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ldexp
from typing import ClassVar, Literal, get_args

from dphh.errors import UsageError
from dphh.level import Level
from dphh.mechanisms.counts.of_found import CountsOptions, counts_event_within, found_counts_of
from dphh.mechanisms.terms import (
    ADJACENCY,
    BUDGET_HELP,
    FINDING_PROBABILITY,
    NOISE_TABLE_NOTE,
    UNIT,
    check_budget,
    check_max_items,
    checked_arithmetic_delta,
)
from dphh.mechanisms.trie.path import (
    RATE_BITS,
    choose_theta_and_p,
    path_guarantee,
    rate_rounded_down,
    users_needed,
)
from dphh.price import Finds, Price, Privacy
from dphh.privacy.events import DeltaEvent, EpsilonDeltaEvent, Event
from dphh.wording.options import check_choice, check_whole

HELP = {
    "max_length": "Most tokens of a sequence, its end as one of them.",
    "unit": "For whole items: characters in a token.",
    "choice": "Which sequence votes: drawn at random, or most-frequent.",
    **CountsOptions.HELP,
    "counts": "Share of the budget for counting users; else none.",
    "max_items": "With counts: items a user fully counts in. [10]",
    **BUDGET_HELP,
    "theta": "Votes that a prefix needs; goes with p.",
    "p": "Chance of a vote at a level; goes with theta.",
}
PATH_THEOREM = (
    "path accountant for TrieHH with Bernoulli sampling at every level "
    "(docs/trie.md); both directions"
)


#: How `trie` chooses, once a run, one sequence of a user who has several.
SequenceChoice = Literal["drawn", "most-frequent"]


@dataclass(frozen=True)
class VoteLevel(Level):
    """What a plan fixes for one level of TrieHH, at which each user votes with probability p."""

    kind: ClassVar[str] = "vote"
    shown = ("p",)

    level: int
    #: p = numerator / 2^64, both in the price and in the draws.
    numerator: int
    theta: int

    @property
    def p(self) -> float:
        return self.numerator / 2.0**64

    def in_words(self) -> tuple[str, ...]:
        return (f"each user votes with probability {self.p:.4g}; {self.theta} votes are enough",)


def price_trie(
    *,
    epsilon: float,
    delta: float,
    max_length: int,
    unit: int = 1,
    choice: SequenceChoice = "drawn",
    theta: int | None = None,
    p: float | None = None,
    counts: float | None = None,
    by: str | None = None,
    groups: str | Sequence[str] = (),
    max_items: int | None = None,
) -> Price:
    """Sequences, grown level by level from sampled votes.

    This is TrieHH. A corpus of whole items is read as sequences of `unit` characters; words,
    characters and lists are sequences already. Of a user with several rows one sequence is used for
    the run, "drawn" in proportion to its frequency among the user's rows, or the "most-frequent".
    The path accountant is tight in both directions and chooses `theta` and `p`, unless both are
    given.

    With `counts`, such as 0.3, that share of the budget counts how many users hold each found
    sequence, and each beginning at which the trie stops, with intervals.
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    advice = ", the end of a sequence included: 10 for words of 9 letters"
    check_whole("max_length", max_length, most=1000, advice=advice)
    check_choice("choice", choice, get_args(SequenceChoice))
    counting = CountsOptions.from_options(counts, by, groups)
    if max_items is None:
        counted = 10  # few users hold more of the sequences that were found
    elif counting.share:
        check_max_items(counted := max_items)
    else:
        raise UsageError(
            "max_items: applies only to counts=; in the trie itself each user has one sequence. "
            "Give counts=, or leave max_items out"
        )
    spare = checked_arithmetic_delta(counting.arithmetic_delta(epsilon), epsilon, delta)
    growing = (1 - counting.share) * epsilon, (1 - counting.share) * delta
    votes, rate = _checked_theta_and_p(*growing, max_length, theta, p)
    events: tuple[Event, ...] = (EpsilonDeltaEvent(*growing, note="TrieHH, path accountant"),)
    delta_shares: tuple[tuple[str, float], ...] = ()
    if counting.share:
        table = DeltaEvent(spare, note=NOISE_TABLE_NOTE)
        events = (*events, counts_event_within([*events, table], epsilon, delta), table)
        delta_shares = (
            (f"growing the trie, which takes epsilon {growing[0]:.4g}", growing[1]),
            ("the Gaussian curve of the counts", delta - growing[1] - spare),
            (table.note, spare),
        )
    return Price(
        verb="trie",
        method="triehh",
        parameters=(
            ("epsilon", epsilon),
            ("delta", delta),
            ("max_length", max_length),
            ("unit", unit),
            ("choice", choice),
            ("theta", theta),
            ("p", p),
            *counting.parameters,
            ("max_items", max_items),
        ),
        levels=tuple(
            VoteLevel(level, int(ldexp(rate, RATE_BITS)), votes)
            for level in range(1, max_length + 1)
        ),
        privacy=Privacy(
            epsilon=epsilon,
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=PATH_THEOREM + counting.theorem(),
            delta_shares=delta_shares,
            caveats=_ITEMS_ADVICE,
        ),
        finds=Finds(
            float(FINDING_PROBABILITY),
            users_needed(rate, votes, max_length),
            note=f"for a sequence of {max_length} tokens, its end as one of them, that shares no "
            "prefix with others",
        ),
        events=events,
        counting=found_counts_of(events, counted, counting, beginnings=True),
    )


def _checked_theta_and_p(
    epsilon: float, delta: float, max_length: int, theta: int | None, p: float | None
) -> tuple[int, float]:
    """theta and p, which is rounded down: those given, refused if they cost more than (epsilon,
    delta), or the best ones."""
    if (theta is None) != (p is None):
        raise UsageError("theta, p: found only one of them; give both, or neither")
    if theta is None or p is None:
        return choose_theta_and_p(epsilon, delta, max_length)
    if not isinstance(p, float) or not 2.0**-RATE_BITS <= p < 1:
        raise UsageError(f"p: found {p!r}; give a sampling rate from 2^-64 to below 1, such as 0.2")
    p = rate_rounded_down(p)
    spent_epsilon, spent_delta = path_guarantee(epsilon, p, theta, max_length)
    if spent_epsilon > epsilon or spent_delta > delta:
        raise UsageError(
            f"theta, p: ({theta}, {p:g}) over {max_length} levels costs "
            f"({spent_epsilon:.4g}, {spent_delta:.3g}), more than the ({epsilon:g}, {delta:g}) "
            "available; give a larger theta or a smaller p, or leave both out"
        )
    return theta, p


_ITEMS_ADVICE = (
    "for single items in a central table, `items` finds rarer ones at the same epsilon and takes "
    "less of a cap; `trie` follows federated collection",
)
