"""`items`: single items, by set union, with a public list of words, or over a known domain.

Nothing is known: differentially private set union (DPSU), by a method of `set_union/methods.py`,
each with its algorithm and theorem in its own file and its proof in docs/items.md. A prior: its
items need no threshold and others keep one, in two rounds with one norm, which is level 1 of
`ngrams` with a prior, alone (docs/prior.md). A domain: every item of it is released with how many
users hold it, which is `counts` (docs/counts.md); no other item is looked at, so nothing needs a
threshold's delta.

Each of these has its own privacy statement, in both directions, in the price that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dphh.counting import CountsLevel
from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import SHARE_OF_FINDING, CountsOptions, found_counts_of
from dphh.mechanisms.counts.price import (
    ItemsOption,
    checked_items,
    price_counts,
    users_needed_by_interval,
)
from dphh.mechanisms.ngrams.forecast.price import (
    FILTER_THEOREM,
    price_forecast,
    spurious_words_caveat,
    users_needed_for_words,
)
from dphh.mechanisms.set_union.levels import (
    ReweighedLevel,
    SetUnionLevel,
    possible_runs,
)
from dphh.mechanisms.set_union.methods import METHODS, Method
from dphh.mechanisms.terms import (
    ADJACENCY,
    BUDGET_HELP,
    FINDING_PROBABILITY,
    MOST_ROUNDS,
    UNIT,
    Priced,
    check_budget,
    check_max_items,
    checked_by_hand,
    checked_prior,
    stated_epsilon,
    users_needed,
)
from dphh.price import Finds, Price, Privacy
from dphh.prior import PRIOR_HELP, PriorOption
from dphh.wording.options import check_choice, check_whole

HELP = {
    "max_items": "The most items that a user counts for.",
    "method": "auto, gaussian, sips, adaptive or single.",
    **PRIOR_HELP,
    "domain": "All items to look at: a file, or a release.",
    **CountsOptions.HELP,
    **CountsOptions.MIN_USERS_HELP,
    **BUDGET_HELP,
    "shares": "For sips: each round's share of the budget.",
    "sigma": "For gaussian: the noise, in users.",
    "threshold": "For gaussian: the threshold, in users.",
}
THEOREM_WITH_PRIOR = (
    "set union with a prior (docs/prior.md): two Gaussian rounds over the items of a list "
    f"and, within the same norm, over other items, which have thresholds, {FILTER_THEOREM}"
)
#: Of the released items of a prior, at most this share is expected to be spurious.
MOST_SPURIOUS_SHARE = 0.01
#: The share for counts beside method "single": with it, counts have the noise that they have beside
#: a Gaussian by SHARE_OF_FINDING.
SHARE_BESIDE_SINGLE = 0.3


def price_items(
    *,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    method: Method = "auto",
    counts: float | None = None,
    by: str | None = None,
    groups: str | Sequence[str] = (),
    min_users: int | None = None,
    prior: PriorOption | None = None,
    prior_text: str | None = None,
    prior_is_public: bool = False,
    domain: ItemsOption | None = None,
    shares: Sequence[float] | None = None,
    sigma: float | None = None,
    threshold: float | None = None,
) -> Price:
    """Single items that many users hold.

    Where users count for one item (`max_items=1`), method "single" has the lowest threshold that
    there can be. Else a first round of very little budget chooses between one round and several.
    `method` names one: "gaussian", the weighted Gaussian policy; "sips", three rounds of it, each
    freeing the users of what is found already, better where users hold many popular items;
    "adaptive", in which users also give more to what earlier rounds' noise shows near the
    threshold, better still there. `max_items` is about what a typical user holds.

    `users`, `low` and `high` say how many users hold what is found. `counts` is the share of the
    budget for them: the larger, the narrower the intervals. With 0 there is a score only.

    A `prior` is what is known before, of a public text or an earlier release: its items need no
    threshold, and its counts say which of them are likely. It is files or a frame whose column
    `prior_text` is text; files or a frame with columns item and count; or a release, its folder or
    run id. Of a text or a table you declare with `prior_is_public` that nobody in the data
    contributed to it, or that all of it is published anyway; the promise does not cover it.

    A `domain` is all items that are looked at, where they are known: a list, a text file with one
    item a line, or a release. Each is released, held or not, with how many users hold it and an
    interval; no part of delta goes to new items. `min_users`, `by` and `groups` then go without
    `counts`.

    By hand, for research: `shares` are those of the rounds of "sips", as many as there are to be;
    `sigma` and `threshold`, in users, those of "gaussian": then a plan states the epsilon that they
    cost at delta, and is refused if that is more than `epsilon`.
    """
    check_choice("method", method, METHODS)
    by_hand = checked_by_hand(
        {"shares": shares},
        {"sigma": sigma, "threshold": threshold},
        range(1, MOST_ROUNDS + 1),
        f"1 to {MOST_ROUNDS} positive numbers, one for each round",
    )
    for option in by_hand:
        if method != (needed := "sips" if option == "shares" else "gaussian"):
            raise UsageError(f"{option}: goes with method={needed!r}, found {method!r}")
    if domain is not None:
        beside = {
            "counts": counts is not None,
            "prior": prior is not None,
            "method": method != "auto",
        }
        if found := [name for name, is_given in beside.items() if is_given]:
            raise UsageError(
                f"{', '.join(found)}: not possible with domain, whose items are all counted in one "
                f"round; leave out {' and '.join(found)}"
            )
        return _price_of_domain(domain, epsilon, delta, max_items, by, groups, min_users)
    if prior is not None and method != "auto":
        raise UsageError(f"prior: cannot be combined with method={method!r}; leave one of them out")
    given = checked_prior(prior, prior_text, prior_is_public)
    check_budget(epsilon, delta)
    check_max_items(max_items)
    is_single = max_items == 1 and method in ("auto", "single") and prior is None
    share = SHARE_BESIDE_SINGLE if is_single else SHARE_OF_FINDING
    counting = CountsOptions.from_options(counts, by, groups, min_users, default=share)
    # As floats, so that 1 and 1.0 are the same request in the ledger.
    asked = float(epsilon), float(delta), max_items, counting
    caveats: tuple[str, ...] = ()
    cost: Priced
    if given is None:
        taken, cost = _method_and_price(method, asked, by_hand)
        theorem, finds = METHODS[taken].theorem, _users_needed(cost.levels, max_items)
        said = ("method", taken), *counting.parameters, *by_hand.items()
    else:
        taken, theorem = "forecast", THEOREM_WITH_PRIOR
        cost = price_forecast(*asked[:2], 1, max_items, MOST_SPURIOUS_SHARE, counting, given)
        caveats = given.caveat, spurious_words_caveat(f"{MOST_SPURIOUS_SHARE:g}")
        finds = replace(users_needed_for_words(cost.levels), users_by_length=())
        said = *counting.parameters, ("prior", given.digest)
    levels, events, delta_shares = cost
    return Price(
        verb="items",
        method=taken,
        parameters=(
            ("epsilon", asked[0]),
            ("delta", asked[1]),
            ("max_items", max_items),
            *said,
        ),
        levels=levels,
        privacy=Privacy(
            epsilon=stated_epsilon(by_hand, events, *asked[:2]),
            delta=asked[1],
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=theorem + counting.theorem(),
            delta_shares=delta_shares,
            caveats=caveats,
        ),
        finds=finds,
        events=events,
        counting=found_counts_of(events, max_items, counting),
        prior=given,
    )


def _method_and_price(
    method: str, asked: tuple[float, float, int, CountsOptions], by_hand: Mapping[str, Any]
) -> tuple[str, Priced]:
    """What "auto" takes follows from public parameters; "gaussian", where their budget is too small
    for it. Any other method is itself."""
    if method != "auto":
        return method, METHODS[method].price(*asked, **by_hand)
    _, _, max_items, _ = asked
    method = "single" if max_items == 1 else "auto"
    try:
        return method, METHODS[method].price(*asked)
    except UsageError:
        return "gaussian", METHODS["gaussian"].price(*asked)


def _users_needed(levels: Sequence[SetUnionLevel], max_items: int) -> Finds:
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


def _price_of_domain(
    domain: ItemsOption,
    epsilon: float,
    delta: float,
    max_items: int,
    by: str | None,
    groups: str | Sequence[str],
    min_users: int | None,
) -> Price:
    if min_users is not None:
        check_whole("min_users", min_users)
    check_max_items(max_items)
    items = checked_items(domain, option="domain")
    counted = price_counts(
        of=items, epsilon=epsilon, delta=delta, max_held=max_items, by=by, groups=groups
    )
    said = dict(counted.parameters)
    (level,) = counted.levels
    assert isinstance(level, CountsLevel)
    if min_users is not None:
        level = replace(level, min_users=min_users)
        counted = replace(counted, levels=(level,), finds=users_needed_by_interval(level))
    return replace(
        counted,
        verb="items",
        method="domain",
        parameters=(
            ("domain", said["of"]),
            *((name, said[name]) for name in ("epsilon", "delta")),
            ("max_items", max_items),
            *((name, said[name]) for name in ("by", "groups")),
            *(() if min_users is None else (("min_users", min_users),)),
        ),
    )
