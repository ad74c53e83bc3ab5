"""`items`: single items that many users hold. Differentially private set union (DPSU).

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
the same norm over the rest. Rounds compose as Gaussians (Dong, Roth & Su 2019), with one half of
delta, and their thresholds' deltas add up to the other half, because a user's share of new items in
a later round may depend on earlier releases. The later rounds may depend on them too, within their
planned budget (a Gaussian filter: Smith & Thakurta 2022; with thresholds: docs/ledger.md): if the
first round finds almost nothing, one round replaces the others.

"adaptive": DP-SIPS in which, from the second round on, users give more to items near the threshold
according to the noised weights of all earlier rounds, released or not (`dphh.privacy.following`).
The thresholds of these rounds hold for any weights (`dphh.privacy.any_weights`). What is not
released stays in the engine. The proof: docs/items.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isqrt
from typing import Literal, get_args

from dphh.errors import UsageError
from dphh.levels import SetUnionLevel, WeighedLevel
from dphh.mechanisms.counts.of_found import Counting, found_counts
from dphh.mechanisms.terms import (
    ADJACENCY,
    BUDGET_HELP,
    FOUND_WITH,
    UNIT,
    check_budget,
    check_max_items,
    set_aside,
)
from dphh.price import Finds, Price, Privacy
from dphh.privacy.accounting import compose
from dphh.privacy.any_weights import any_weights_delta, any_weights_threshold
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent, Role, SetUnionEvent
from dphh.privacy.gaussian import gaussian_sigma, split_sigma
from dphh.privacy.rounded_gaussian import RoundedGaussian, rounded_gaussian
from dphh.privacy.set_union import (
    arithmetic_delta,
    delta_shares,
    grid_bits,
    new_item_delta,
    new_item_threshold,
    users_needed,
)

Method = Literal["gaussian", "sips", "adaptive"]
METHODS = get_args(Method)
HELP = {
    **BUDGET_HELP,
    "max_items": "The most different items that one user counts for.",
    "method": "gaussian: one round; sips: three, each without the items found before; adaptive: "
    "users also give more to items near the threshold.",
    **Counting.HELP,
    **Counting.MIN_USERS_HELP,
}
#: DP-SIPS gives round i of R a share in proportion to decay^(R - 1 - i). The paper uses 0.3;
#: docs/items.md has the measurements for this value.
SIPS_ROUNDS, SIPS_DECAY = 3, 0.15
#: If the first round finds fewer items than this, no items are common, so removing them from users
#: gains nothing, and one round spends the rest of the budget instead of several.
SIPS_COMMON = 5


def price_items(
    *,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    method: Method = "gaussian",
    counts: float | None = None,
    by: str | None = None,
    groups: str | Sequence[str] = (),
    min_users: int | None = None,
) -> Price:
    """Single items that many users hold (differentially private set union).

    max_items: how many different items one user may count for; about what a typical user holds.
    method: "gaussian", the weighted Gaussian policy; "sips", three rounds of it, each freeing the
    users of what is found already, better where users hold many popular items; "adaptive", the
    same, where users give more to what earlier rounds' noise shows near the threshold, better
    still there. counts: the share of the budget, such as 0.3, that says of what is found how many
    users hold it, with intervals; by, groups: within these values of a column, and within all
    others together as "other"; min_users: without what fewer hold, by the low end of its interval.
    """
    check_budget(epsilon, delta)
    check_max_items(max_items)
    epsilon, delta = float(epsilon), float(delta)  # the same request is the same in the ledger
    if method not in METHODS:
        raise UsageError(f"method: found {method!r}; give one of {', '.join(METHODS)}")
    counting = Counting.of(counts, by, groups, min_users)
    if method == "gaussian":
        levels, events, shared_out = price_union(epsilon, delta, max_items, counting)
    else:
        shares = sips_shares()
        levels, events, shared_out = price_rounds(
            epsilon, delta, shares, [max_items] * len(shares), counting, method == "adaptive"
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
        finds=finds(levels, max_items, ALIKE if method == "adaptive" else ""),
        events=events,
        counting=found_counts(events, max_items, counting),
    )


THEOREMS = {
    "gaussian": (
        "weighted Gaussian policy of DPSU (Gopi et al. 2020), new items and others' priced jointly "
        "(after Wilkins, Kifer, Zhang & Karrer 2024; proof for weights: docs/items.md), with the "
        "exact Gaussian curve (Balle & Wang 2018) and integer thresholds from the rounded "
        "Gaussian's own tail; both directions"
    ),
    "sips": (
        "DP-SIPS (Swanberg, Desfontaines & Haney 2023): rounds of the weighted Gaussian policy, "
        "composed exactly as Gaussians (Dong, Roth & Su 2019), thresholds' deltas added, the later "
        "rounds chosen by the first within what they were to have (Smith & Thakurta 2022; "
        "docs/ledger.md); both directions"
    ),
    "adaptive": (
        "DP-SIPS (Swanberg, Desfontaines & Haney 2023) with weights that follow earlier rounds' "
        "noised weights: each round a Gaussian release, given what was seen before, with a "
        "threshold that covers any weights of new items (proof: docs/items.md), composed exactly "
        "as Gaussians (Dong, Roth & Su 2019), thresholds' deltas added, the later rounds chosen by "
        "the first within what they were to have (Smith & Thakurta 2022; docs/ledger.md); both "
        "directions"
    ),
}


#: The addition to `finds` for method "adaptive".
ALIKE = "; if they hold other items too, those are assumed as near the threshold"


def sips_shares(rounds: int = SIPS_ROUNDS) -> tuple[float, ...]:
    parts = [SIPS_DECAY ** (rounds - 1 - i) for i in range(rounds)]
    return tuple(part / sum(parts) for part in parts)


def round_alone(rounds: Sequence[SetUnionLevel]) -> SetUnionLevel:
    """One round that replaces these, within their budget of 1/sigma^2 and delta. Its weights are
    equal, because if nothing is common, the first round's noised weights say almost nothing."""
    first = rounds[0]
    told = sum(Fraction(1, level.sigma_grid**2) for level in rounds)
    noise = rounded_gaussian(isqrt(ceil(1 / told) - 1) + 1)  # the least with 1 / sigma^2 <= told
    delta = sum(new_delta(level) for level in rounds)
    bits, max_items = first.grid_bits, first.max_items
    threshold = new_item_threshold(noise, bits, max_items, delta)
    return SetUnionLevel(first.level, max_items, bits, noise.sigma, threshold, first.round)


def _threshold(
    kind: type[SetUnionLevel], noise: RoundedGaussian, bits: int, max_items: int, delta: float
) -> int:
    """A level's threshold; it must hold for any weights if they depend on earlier rounds."""
    if kind is WeighedLevel:
        return any_weights_threshold(noise, 2**bits, max_items, delta)
    return new_item_threshold(noise, bits, max_items, delta)


def new_delta(level: SetUnionLevel) -> float:
    """The delta that a level's threshold costs."""
    noise = rounded_gaussian(level.sigma_grid)
    if isinstance(level, WeighedLevel):
        unit = 2**level.grid_bits
        return any_weights_delta(noise, unit, level.max_items, level.threshold_grid)
    return new_item_delta(noise, level.grid_bits, level.max_items, level.threshold_grid)


Rounds = tuple[tuple[SetUnionLevel, ...], tuple[Event, ...], tuple[tuple[str, float], ...]]


def price_union(epsilon: float, delta: float, max_items: int, counting: Counting) -> Rounds:
    """One round, priced jointly: its level, the events it costs, and how delta is divided."""
    spare = arithmetic_delta(max_items, epsilon) + counting.spare(epsilon)
    spare = set_aside(spare, epsilon, delta)
    for_curve, for_new = _delta_shares(epsilon, delta, spare, counting)
    total = gaussian_sigma(epsilon, for_curve * delta - spare)
    sigma = counting.finding(total)
    bits = grid_bits(sigma, max_items)
    sigma_grid = ceil(sigma * 2**bits)
    noise = rounded_gaussian(sigma_grid)
    level = SetUnionLevel(
        level=1,
        max_items=max_items,
        grid_bits=bits,
        sigma_grid=noise.sigma,
        threshold_grid=new_item_threshold(noise, bits, max_items, for_new * delta),
    )
    new = new_item_delta(noise, bits, max_items, level.threshold_grid)
    table = "noise table's distance from the exact Gaussian"
    events = (
        SetUnionEvent(level.sigma, new, "weighted Gaussian and its threshold"),
        *counting.events(total),
        DeltaEvent(spare, table),
    )
    shared_out = (
        ("users without new items: the Gaussian curve", for_curve * delta - spare),
        ("users with only new items: new items over the threshold", for_new * delta),
        (table, spare),
    )
    return (level,), events, shared_out


def _delta_shares(
    epsilon: float, delta: float, spare: float, counting: Counting
) -> tuple[float, float]:
    """The shares of delta for the Gaussian curve and for new items. A user with only new items
    still changes counts, so with counts the usual shares are used only if they fit; else 1/2 each.
    """
    for_curve, for_new = delta_shares(epsilon, delta)
    if counting.share:
        total = gaussian_sigma(epsilon, for_curve * delta - spare)
        found = SetUnionEvent(counting.finding(total), for_new * delta)
        if compose([found, *counting.events(total), DeltaEvent(spare)]).delta(epsilon) > delta:
            return 1 / 2, 1 / 2
    return for_curve, for_new


def price_rounds(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    bounds: Sequence[int],
    counting: Counting,
    weighed: bool = False,
) -> Rounds:
    """The rounds' levels, the events they cost, and how delta is divided.

    weighed: whether the later rounds' weights depend on the earlier ones.
    """
    spare = sum(arithmetic_delta(bound, epsilon) for bound in bounds) + counting.spare(epsilon)
    spare = set_aside(spare, epsilon, delta)
    total = gaussian_sigma(epsilon, delta / 2 - spare)
    sigmas = split_sigma(counting.finding(total), shares)
    bits = grid_bits(max(sigmas), max(bounds))
    levels = []
    events: list[Event] = []
    for index, (sigma, share, max_items) in enumerate(
        zip(sigmas, shares, bounds, strict=True), start=1
    ):
        noise = rounded_gaussian(ceil(sigma * 2**bits))
        kind = WeighedLevel if weighed and index > 1 else SetUnionLevel
        level = kind(
            level=1,
            max_items=max_items,
            grid_bits=bits,
            sigma_grid=noise.sigma,
            threshold_grid=_threshold(kind, noise, bits, max_items, share * delta / 2),
            round=index,
        )
        levels.append(level)
        new = new_delta(level)
        events += [
            GaussianEvent(level.sigma, f"weighted Gaussian, round {index}", role=Role.LEVEL),
            DeltaEvent(new, f"new items over the threshold, round {index}", role=Role.LEVEL),
        ]
    events += counting.events(total)
    events.append(DeltaEvent(spare, "noise table's distance from the exact Gaussian"))
    shared_out = (
        ("Gaussian curve", delta / 2 - spare),
        ("new items over the threshold", delta / 2),
        ("noise table's distance from the exact Gaussian", spare),
    )
    return tuple(levels), tuple(events), shared_out


def finds(levels: Sequence[SetUnionLevel], max_items: int, said: str = "") -> Finds:
    """What is found, by the round that needs the fewest users; other rounds only add to it."""

    def needed(held: int) -> int:
        return min(
            users_needed(
                rounded_gaussian(level.sigma_grid),
                level.grid_bits,
                level.threshold_grid,
                held,
                FOUND_WITH,
            )
            for level in levels
        )

    ladder = [held for held in (1, 3, 10, 30, 100, 300, 1000) if held < max_items]
    by_held = tuple((held, needed(held)) for held in [*ladder, max_items])
    return Finds(
        probability=float(FOUND_WITH),
        users=by_held[0][1],
        users_by_held=by_held,
        note=f"a user of more than {max_items:,} items counts for {max_items:,} of them{said}",
    )
