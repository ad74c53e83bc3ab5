"""`ngrams`: runs of up to `max_n` tokens, by the forecast ladder (`forecast/`), or by DPNE, the
paper's method on which the ladder is built (`dpne.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import (
    SHARE_OF_FINDING,
    SHARE_WITHIN_PURSES,
    CountsOptions,
    counts_within_purses,
    found_counts_of,
)
from dphh.mechanisms.ngrams.dpne import THEOREM as DPNE_THEOREM
from dphh.mechanisms.ngrams.dpne import price_dpne, users_needed_for_grams
from dphh.mechanisms.ngrams.forecast.price import (
    THEOREM_WITH_PRIOR,
    THEOREM_WITHOUT_PRIOR,
    price_forecast,
    spurious_words_caveat,
    users_needed_for_words,
)
from dphh.mechanisms.ngrams.levels import ForecastLevel
from dphh.mechanisms.terms import (
    ADJACENCY,
    BUDGET_HELP,
    UNIT,
    check_budget,
    check_max_items,
    checked_by_hand,
    checked_prior,
    stated_epsilon,
)
from dphh.price import Price, Privacy
from dphh.prior import PRIOR_HELP, PriorOption
from dphh.wording.options import check_choice, check_whole, is_number

Method = Literal["forecast", "dpne"]
HELP = {
    "max_n": "The longest n-gram, in tokens.",
    "max_items": "The most words that a user counts for.",
    "method": "forecast, or the paper's dpne.",
    **PRIOR_HELP,
    **CountsOptions.HELP,
    **CountsOptions.MIN_USERS_HELP,
    **BUDGET_HELP,
    "spurious": "The share of finds that may be held by no user.",
    "shares": "For dpne: each length's share of the budget.",
    "sigma": "For dpne: each length's noise, in users.",
    "threshold": "For dpne: the threshold of words, in users.",
}
LONGEST_NGRAM = 100
#: The least `spurious`. |S_{k-1}| / |V_k| may be as little as 2^-31, and the noise's table still
#: reaches a tail of this times 2^-31.
LEAST_SPURIOUS = 1e-12


def price_ngrams(
    *,
    max_n: int,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    spurious: float = 0.01,
    method: Method = "forecast",
    shares: Sequence[float] | None = None,
    sigma: Sequence[float] | None = None,
    threshold: float | None = None,
    counts: float | None = None,
    by: str | None = None,
    groups: str | Sequence[str] = (),
    min_users: int | None = None,
    prior: PriorOption | None = None,
    prior_text: str | None = None,
    prior_is_public: bool = False,
) -> Price:
    """Runs of up to `max_n` tokens that many users hold.

    "forecast" spends each length's budget where releases so far foretell finds; "dpne", the
    paper's, spends it evenly, or by `shares`, which it alone takes. "forecast" bounds words alone;
    "dpne" bounds every length by `max_items`. It alone takes `sigma`, each length's noise, and
    `threshold`, that of words, both in users: then a plan states the epsilon that they cost at
    delta, and is refused if that is more than `epsilon`.

    `users`, `low` and `high` say how many users hold what is found. `counts` is the share of the
    budget for them: the larger, the narrower the intervals. With 0 there is a score only.

    A `prior` is what is known before, of a public text or an earlier release: its words need no
    threshold, and its counts say which of them are likely. It is files or a frame whose column
    `prior_text` is text; files or a frame with columns item and count; or a release, its folder or
    run id. Of a text or a table you declare with `prior_is_public` that nobody in the data
    contributed to it, or that all of it is published anyway; the promise does not cover it.
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    check_whole("max_n", max_n, most=LONGEST_NGRAM)
    check_choice("method", method, get_args(Method))
    by_hand = checked_by_hand(
        {"shares": shares, "sigma": sigma},
        {"threshold": threshold},
        range(max_n, max_n + 1),
        f"{max_n} positive numbers, one for each length",
    )
    if method == "forecast" and by_hand:
        raise UsageError(
            f"{', '.join(by_hand)}: does not apply to method='forecast', the default, which "
            "divides the budget itself; leave it out, or give method='dpne'"
        )
    if {"shares", "sigma"} <= by_hand.keys():
        raise UsageError("shares, sigma: both say each length's noise; leave one of them out")
    if method == "dpne" and prior is not None:
        raise UsageError(
            f"prior: goes with method='forecast', the default; method={method!r} takes nothing "
            "from a public text: leave prior out"
        )
    given = checked_prior(prior, prior_text, prior_is_public)
    has_purses = method == "forecast" and max_n > 1
    default = SHARE_WITHIN_PURSES if has_purses else SHARE_OF_FINDING
    counting = CountsOptions.from_options(counts, by, groups, min_users, default=default)
    check_max_items(max_items)
    if not is_number(spurious) or not LEAST_SPURIOUS <= spurious <= 0.5:
        raise UsageError(
            f"spurious: found {spurious!r}; give a share from {LEAST_SPURIOUS:g} to 0.5, "
            "such as 0.01"
        )
    parameters: tuple[tuple[str, Any], ...] = (
        ("max_n", max_n),
        ("epsilon", epsilon),
        ("delta", delta),
        ("max_items", max_items),
        ("spurious", float(spurious)),
        ("method", method),
        *counting.parameters,
        *(() if given is None else (("prior", given.digest),)),
    )
    if method == "forecast":
        theorem = THEOREM_WITHOUT_PRIOR if given is None else THEOREM_WITH_PRIOR
        levels, events, delta_shares = price_forecast(
            epsilon, delta, max_n, max_items, float(spurious), counting, given
        )
        found, most_held = users_needed_for_words(levels), max_items
    else:
        parameters += tuple(({"shares": None} | by_hand).items())
        theorem = DPNE_THEOREM
        levels, events, delta_shares = price_dpne(
            epsilon, delta, max_n, max_items, spurious, counting, **by_hand
        )
        found, most_held = users_needed_for_grams(levels), max_n * max_items
    *_, top = levels
    if isinstance(top, ForecastLevel):
        found_counts = counts_within_purses(top.total_sigma, counting)
    else:
        found_counts = found_counts_of(events, most_held, counting)
    return Price(
        verb="ngrams",
        method=method,
        parameters=parameters,
        levels=levels,
        privacy=Privacy(
            epsilon=stated_epsilon(by_hand, events, epsilon, delta),
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=theorem + counting.theorem(within_purses=has_purses),
            delta_shares=delta_shares,
            caveats=() if given is None else (given.caveat, spurious_words_caveat("`spurious`")),
        ),
        finds=found,
        events=events,
        counting=found_counts,
        prior=given,
    )
