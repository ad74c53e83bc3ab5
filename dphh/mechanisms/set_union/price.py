"""Single items that many users hold, by differentially private set union (DPSU).

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. Both directions. Each
method has its algorithm and its theorem in its own file (`methods.py`); the proofs are in
docs/items.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions, found_counts_of
from dphh.mechanisms.set_union.levels import (
    ChoiceLevel,
    OneRoundAfterChoice,
    ReweighedLevel,
    SetUnionLevel,
)
from dphh.mechanisms.set_union.methods import METHODS
from dphh.mechanisms.set_union.rounds import RoundsAndCost
from dphh.mechanisms.terms import ADJACENCY, FINDING_PROBABILITY, UNIT, users_needed
from dphh.price import Finds, Price, Privacy
from dphh.wording.options import check_choice


def price_set_union(
    epsilon: float, delta: float, max_items: int, method: str, counting: CountsOptions
) -> Price:
    check_choice("method", method, [*METHODS])
    method, (levels, events, shared_out) = _method_and_price(
        method, (epsilon, delta, max_items, counting)
    )
    return Price(
        verb="items",
        method=method,
        parameters=(
            ("epsilon", epsilon),
            ("delta", delta),
            ("max_items", max_items),
            ("method", method),
            *counting.parameters,
        ),
        levels=levels,
        privacy=Privacy(
            epsilon=epsilon,
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=METHODS[method].theorem + counting.theorem,
            delta_shares=shared_out,
        ),
        finds=users_needed_for_items(levels, max_items),
        events=events,
        counting=found_counts_of(events, max_items, counting),
    )


def _method_and_price(
    method: str, asked: tuple[float, float, int, CountsOptions]
) -> tuple[str, RoundsAndCost]:
    """What "auto" takes follows from public parameters; "gaussian", where their budget is too small
    for it. Any other method is itself."""
    if method != "auto":
        return method, METHODS[method].price(*asked)
    _, _, max_items, _ = asked
    method = "single" if max_items == 1 else "auto"
    try:
        return method, METHODS[method].price(*asked)
    except UsageError:
        return "gaussian", METHODS["gaussian"].price(*asked)


def users_needed_for_items(levels: Sequence[SetUnionLevel], max_items: int) -> Finds:
    """How many users an item needs to be found, whichever way a run goes. Of a way's rounds, the
    one that needs the fewest users decides; the others only find more."""

    ways = [possible_runs(levels)]
    ladder = [held for held in (1, 3, 10, 30, 100, 300, 1000) if held < max_items]
    by_held = tuple((held, users_needed(ways, [held])) for held in [*ladder, max_items])
    note = f"a user of more than {max_items:,} items counts for {max_items:,} of them"
    if any(isinstance(level, ReweighedLevel) for level in levels):
        note += "; a holder's other items are assumed to be as near the threshold as this one"
    return Finds(
        probability=float(FINDING_PROBABILITY),
        users=by_held[0][1],
        users_by_held=by_held,
        note=note,
    )


def possible_runs(levels: Sequence[SetUnionLevel]) -> list[list[SetUnionLevel]]:
    """For each way that a run may go, one round or several: its levels that release items."""
    released = [level for level in levels if not isinstance(level, ChoiceLevel)]
    rounds = [level for level in released if not isinstance(level, OneRoundAfterChoice)]
    alone = [level for level in released if level not in rounds]
    return [some for some in (alone, rounds) if some]
