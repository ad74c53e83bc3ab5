"""Single items that many users hold, by differentially private set union (DPSU).

Weighted Gaussian policy (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020; Algorithm 5 of
the DPNE paper). For each user with items W: keep at most D0 of them, U; add 1/sqrt(|U|) to H[u]
for each u in U. Release { u : H[u] + N(0, sigma^2) > rho }.

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. Theorem: H restricted
to the items that others hold is a Gaussian mechanism (Balle & Wang 2018) of L2 sensitivity
sqrt(1 - x), where x is the share of new items among the user's; new items pass rho with probability
at most x delta_new, by noise independent of the rest. No user pays for both in full, so both may
take nearly all of delta, where the papers give each one half. Both directions: docs/items.md.

DP-SIPS (Swanberg, Desfontaines & Haney 2023). R rounds; round i spends a share f_i of mu^2 and of
delta, later rounds more; items that a round released are removed from every user, who then spreads
the same norm over the rest. The Gaussian releases compose to one, with one half of delta, and the
thresholds' deltas to the other half, because a user's share of new items in a later round may
depend on earlier releases (a Gaussian filter beside a filter of deltas: docs/composition.md).

"adaptive": after DP-SIPS. From the second round on, users give more to items near the threshold,
according to the noised weights of all earlier rounds, released or not
(`dphh.udfs.rules.reweighing`). The thresholds of these rounds hold for any weights
(`dphh.privacy.any_weights`). If the first round finds almost nothing, one round replaces the
others, within both of their amounts. What is not
released stays in the engine. The proof: docs/items.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions, found_counts_of
from dphh.mechanisms.set_union.joint import price_choice, price_one_round
from dphh.mechanisms.set_union.levels import (
    ChoiceLevel,
    OneRoundAfterChoice,
    ReweighedLevel,
    SetUnionLevel,
)
from dphh.mechanisms.set_union.rounds import (
    ADAPTIVE_SHARES,
    ROUNDS,
    SIPS_SHARES,
    price_rounds,
)
from dphh.mechanisms.terms import ADJACENCY, FINDING_PROBABILITY, UNIT
from dphh.price import Finds, Price, Privacy
from dphh.privacy.set_union import users_needed
from dphh.udfs.noise.table import rounded_gaussian

Method = Literal["auto", "gaussian", "sips", "adaptive"]
SET_UNION_METHODS = get_args(Method)


def price_set_union(
    epsilon: float, delta: float, max_items: int, method: Method, counting: CountsOptions
) -> Price:
    if method == "auto":
        try:
            levels, events, shared_out = price_choice(epsilon, delta, max_items, counting)
        except UsageError:  # the budget is too small to spend a part of it on a choice
            method = "gaussian"
    if method == "gaussian":
        levels, events, shared_out = price_one_round(epsilon, delta, max_items, counting)
    elif method != "auto":
        reweighed = method == "adaptive"
        shares, bounds = ADAPTIVE_SHARES if reweighed else SIPS_SHARES, [max_items] * ROUNDS
        levels, events, shared_out = price_rounds(
            epsilon, delta, shares, bounds, counting, reweighed
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
            theorem=THEOREMS[method] + counting.theorem,
            delta_shares=shared_out,
        ),
        finds=users_needed_for_items(levels, max_items),
        events=events,
        counting=found_counts_of(events, max_items, counting),
    )


THEOREMS = {
    "auto": (
        "a first round of the weighted Gaussian policy of DPSU (Gopi et al. 2020) chooses between "
        "one round, which prices new items and other items jointly, and rounds whose weights "
        "follow earlier ones (after DP-SIPS: Swanberg, Desfontaines & Haney 2023); the cost is the "
        "mean, over what the first round may show, of the larger of the two choices' costs (proof: "
        "docs/items.md), with the exact Gaussian curve (Balle & Wang 2018); both directions"
    ),
    "gaussian": (
        "weighted Gaussian policy of DPSU (Gopi et al. 2020), with new items and other items "
        "priced jointly (after Wilkins, Kifer, Zhang & Karrer 2024; proof for weights: "
        "docs/items.md), with the exact Gaussian curve (Balle & Wang 2018) and integer thresholds "
        "from the rounded Gaussian's own tail; both directions"
    ),
    "sips": (
        "DP-SIPS (Swanberg, Desfontaines & Haney 2023): rounds of the weighted Gaussian policy, "
        "their Gaussian releases composed exactly and their thresholds beside them (proof: "
        "docs/composition.md, after Smith & Thakurta 2022); both directions"
    ),
    "adaptive": (
        "rounds after DP-SIPS (Swanberg, Desfontaines & Haney 2023), with weights that follow "
        "earlier rounds' noised weights: each round a Gaussian release, given what was seen "
        "before, with a threshold that covers any weights of new items (proof: docs/items.md); "
        "the Gaussian releases composed exactly and the thresholds beside them, the later rounds "
        "chosen after the first, within both amounts set aside for them (proof: "
        "docs/composition.md, after Smith & Thakurta 2022); both directions"
    ),
}


def users_needed_for_items(levels: Sequence[SetUnionLevel], max_items: int) -> Finds:
    """How many users an item needs to be found, whichever way a run goes. Of a way's rounds, the
    one that needs the fewest users decides; the others only find more."""

    def needed(items_held: int) -> int:
        return max(
            min(
                users_needed(
                    rounded_gaussian(level.sigma_grid),
                    level.grid_bits,
                    level.threshold_grid,
                    items_held,
                    FINDING_PROBABILITY,
                )
                for level in some
            )
            for some in possible_runs(levels)
        )

    ladder = [held for held in (1, 3, 10, 30, 100, 300, 1000) if held < max_items]
    by_held = tuple((held, needed(held)) for held in [*ladder, max_items])
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
