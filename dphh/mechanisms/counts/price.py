"""`counts`: how many users hold each of a list of public items, with intervals.

For each user with m of the n items: add 1 to each if m <= K, else add w(m) < 1 to each, and what
each lost by that to a loss. Release all n counts and the losses as one Gaussian vector of L2
sensitivity C = sqrt(min(K, n)). From these, compute [low, high] for each item's number of users,
which includes what bounding removed (`dphh.privacy.counts` has the proof, `udfs/rules/counts.py`
has w).

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. Theorem: the Gaussian
mechanism with its exact curve (Balle & Wang 2018), both directions. The list is public, every item
of it is released whether or not any user holds it, and there is no threshold: the curve takes all
of delta.

K is given, or the run chooses it. Then an earlier Gaussian release, of HELD_SHARE of 1/sigma^2, is
the histogram of how many items users hold, to which a user adds 1; K follows from its noised bins,
and the counts from what is left: an adaptive composition (Dong, Roth & Su 2019), in both
directions.

Of a list of FEWEST_WEIGHED counts or more, a release before these, of ROUGH_SHARE, has rough
counts, to which a user adds a vector of norm 1. From them follows a factor f for each count,
largest where it is small: a user adds f there, and m is the sum of f^2. So a count has 1 / f of the
noise, and K is the squared norm of a user.

With groups, n is the number of pairs of item and group, and m how many of them a user holds: a user
in several groups counts in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from dphh.columns import checked_groups
from dphh.counting import CountsLevel
from dphh.errors import UsageError
from dphh.mechanisms.terms import (
    ADJACENCY,
    BUDGET_HELP,
    FINDING_PROBABILITY,
    NOISE_TABLE_NOTE,
    UNIT,
    arithmetic_delta,
    check_budget,
    checked_arithmetic_delta,
)
from dphh.price import Finds, Price, Privacy
from dphh.privacy.counts import FEW_KEYS, MOST_KEYS, counts_grid_bits, sigma_on_grid
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.udfs.noise.table import rounded_gaussian
from dphh.wording.options import check_whole


class ReleaseLike(Protocol):
    """A release: a table and the manifest that explains it."""

    @property
    def table(self) -> Any: ...

    @property
    def manifest(self) -> dict[str, Any]: ...


#: What names items: a run id, a folder or a text file; a release; or the items themselves, each a
#: text or a list of its tokens.
ItemsOption = str | Path | ReleaseLike | Sequence[str | Sequence[str]]
HELP = {
    "of": "A release, or a file with one item a line.",
    "max_held": "A user who holds more items counts less in each. Without it, the run chooses.",
    "top": "The most items to take from a release.",
    "min_length": "The fewest tokens of an item.",
    "by": "The column of groups to count within.",
    "groups": "Names of groups, with commas; the rest is 'other'.",
    "confidence": "Chance that an interval contains the true count.",
    "simultaneous": "The confidence is for all intervals at once.",
    **BUDGET_HELP,
}
THEOREM = (
    "Gaussian mechanism on the counts of public items, with the exact Gaussian curve (Balle & Wang "
    "2018): a user's vector, including the report of what bounding removed, has an L2 norm of at "
    "most sqrt(max_held), in integers; both directions"
)
CHOICE_THEOREM = (
    "; max_held follows from an earlier Gaussian release, a histogram of how many items users hold "
    "(adaptive composition, Dong, Roth & Su 2019)"
)
WEIGHED_THEOREM = (
    "; so do the weights of items, from one before it, of rough counts, each user's of norm 1"
)
#: The share of 1/sigma^2 for the histogram by which the run chooses `max_held`, and for the rough
#: counts by which it weighs.
HELD_SHARE, ROUGH_SHARE = 0.03, 0.03
#: Of so many counts, up to so many, rarer ones have less noise, if the noise of the rough counts is
#: at most so many users. Fewer would gain nothing; more would fill the manifest.
FEWEST_WEIGHED, MOST_WEIGHED, MOST_ROUGH_NOISE = 40, 100_000, 1_000
#: What a plan takes `max_held` to be, where the run chooses it.
PLANNED_HELD = 30


def price_counts(
    *,
    of: ItemsOption,
    epsilon: float,
    delta: float,
    top: int | None = None,
    min_length: int = 1,
    max_held: int | None = None,
    by: str | None = None,
    groups: str | Sequence[str] = (),
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> Price:
    """How many users hold each of given items, with intervals.

    `of` is a release, its folder or its run id; or a list, each item a text, read as a row of the
    corpus, or a list of its tokens; or a text file with one item a line. A user who holds more than
    `max_held` of them counts for less of each, and `high` allows for that; without it, the run
    chooses it by a noised histogram of how many users hold, for a small share of the budget. `by`
    and `groups` count within these values of a column, and within all others and NULL together as
    "other".
    """
    check_budget(epsilon, delta)
    items = checked_items(of, top, min_length)
    if max_held is not None:
        check_whole(
            "max_held", max_held, advice="; nearly all users should hold fewer listed items"
        )
    declared = checked_groups(by, groups)
    epsilon, delta = float(epsilon), float(delta)
    in_groups = len(declared) + 1 if by is not None else 1
    keys = len(items) * in_groups
    if keys > MOST_KEYS:
        raise UsageError(
            f"of, groups: found {keys:,} counts; give fewer items or groups, for at most "
            f"{MOST_KEYS:,} counts"
        )
    spare = checked_arithmetic_delta(arithmetic_delta(2 * MOST_KEYS, epsilon), epsilon, delta)
    sigma = gaussian_sigma(epsilon, delta - spare)
    shares, notes = [1.0], ["counts and what bounding removed"]
    if max_held is None and keys > FEW_KEYS:
        shares, notes = [HELD_SHARE, 1 - HELD_SHARE], ["how much users hold", *notes]
        is_weighed = FEWEST_WEIGHED <= keys <= MOST_WEIGHED
        if is_weighed and sigma <= MOST_ROUGH_NOISE * sqrt(ROUGH_SHARE):
            shares = [ROUGH_SHARE, HELD_SHARE, 1 - HELD_SHARE - ROUGH_SHARE]
            notes = ["rough counts, by which rarer ones get less noise", *notes]
    *before, of_counts = split_sigma(sigma, shares) if len(shares) > 1 else [sigma]
    most = min(max_held or PLANNED_HELD, keys)
    how = confidence, simultaneous
    level = CountsLevel(of_counts, keys, most, *how, groups_of_item=in_groups)
    if before:
        counts_grid_bits(before[-1])  # refuses too much noise
        level = replace(level, held_sigma=ceil(before[-1]))
    if len(before) > 1:
        bits = counts_grid_bits(before[0])
        level = replace(level, rough_sigma=sigma_on_grid(before[0], 1, bits), rough_bits=bits)
    events = [
        GaussianEvent(each, note=note)
        for each, note in zip([*before, of_counts], notes, strict=True)
    ]
    return Price(
        verb="counts",
        method="gaussian",
        parameters=(
            ("of", items),
            ("epsilon", epsilon),
            ("delta", delta),
            ("max_held", max_held),
            ("by", by),
            ("groups", declared),
            ("confidence", float(confidence)),
            ("simultaneous", simultaneous),
        ),
        levels=(level,),
        privacy=Privacy(
            epsilon=epsilon,
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=THEOREM
            + (CHOICE_THEOREM if level.held_sigma else "")
            + (WEIGHED_THEOREM if level.rough_sigma else ""),
            delta_shares=(("Gaussian curve", delta - spare), (NOISE_TABLE_NOTE, spare)),
        ),
        finds=users_needed_by_interval(level),
        events=(*events, DeltaEvent(spare, note=NOISE_TABLE_NOTE)),
    )


def users_needed_by_interval(level: CountsLevel) -> Finds:
    """How many users an item needs for its interval to begin above 0 with FINDING_PROBABILITY; or
    at `min_users` or above, even where it is the only one."""
    below, least = level.margins(Fraction(1, level.keys)).below, max(level.min_users, 1)
    what = f"an item's interval begins at {least:,} users or above"
    note = "fewer are enough where many items of the list are shown"
    if not level.min_users:
        what = "an item's interval lies above 0"
        note = "every item of the list is released, whether or not any user holds it"
        if level.held_sigma:
            note += f"; if the run chooses max_held={level.max_items}"
    if level.max_items < level.keys and not level.held_sigma:
        note += (
            f"; users who hold more than {level.max_items:,} of these count for less in each, and "
            "intervals reach further up by it: where many do, leave max_held out"
        )
    # The noised weight that the interval begins `below` under is likely to be this much off.
    luck = rounded_gaussian(level.sigma_grid).largest_with_tail_at_least(FINDING_PROBABILITY)
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=max(1, least - 1 + ceil((below + 1 - luck) / level.weighing.unit)),
        what=what,
        note=note,
    )


def checked_items(
    of: ItemsOption, top: int | None = None, min_length: int = 1, option: str = "of"
) -> tuple[tuple[str, ...], ...]:
    """The distinct items that an option gives, as tokens: the first `top`, sorted, so that the same
    items make the same request."""
    check_whole("top", 1 if top is None else top)
    check_whole("min_length", min_length)
    if not _is_list(of):
        raise UsageError(
            f"{option}: found a {type(of).__name__}; give a release (not its plan, but what run() "
            "returns), or a list of items, each a list of its tokens"
        )
    items: dict[tuple[str, ...], None] = {}
    for place, item in enumerate(of, 1):
        tokens = tuple(item) if _is_list(item) else ()
        if not tokens or not all(isinstance(token, str) and token for token in tokens):
            raise UsageError(
                f"{option}: number {place} of the list is not an item; give each as a list of its "
                "tokens, none of them empty, such as ['new', 'york']"
            )
        if len(tokens) >= min_length:
            items[tokens] = None
    if not items:
        raise UsageError(
            f"{option}: found no items; give a list of items, each a list of its tokens, or a "
            "release"
        )
    return tuple(sorted([*items][:top]))


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
