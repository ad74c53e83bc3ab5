"""`ngrams`: runs of up to `max_n` tokens, by the forecast ladder (`forecast/`), or by DPNE, the
paper's method on which the ladder is built (`dpne.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Literal, get_args

from dphh.errors import UsageError
from dphh.mechanisms.counts.of_found import CountsOptions, found_counts_of
from dphh.mechanisms.ngrams.dpne import THEOREM as DPNE_THEOREM
from dphh.mechanisms.ngrams.dpne import price_dpne, users_needed_for_grams
from dphh.mechanisms.ngrams.forecast.price import (
    THEOREM_WITH_PRIOR,
    THEOREM_WITHOUT_PRIOR,
    price_forecast,
    spurious_words_caveat,
    users_needed_for_words,
)
from dphh.mechanisms.ngrams.levels import Pruning
from dphh.mechanisms.terms import ADJACENCY, BUDGET_HELP, UNIT, check_budget, check_max_items
from dphh.price import Price, Privacy
from dphh.prior import PRIOR_HELP, PriorOption, checked_prior
from dphh.wording.options import check_choice, check_whole

Method = Literal["forecast", "dpne"]
HELP = {
    "max_n": "The longest n-gram, in tokens.",
    "max_items": "The most words that a user counts for.",
    "method": "forecast, or the paper's dpne.",
    "pruning": "For dpne: which ends of a gram must be found.",
    **PRIOR_HELP,
    **CountsOptions.HELP,
    **CountsOptions.MIN_USERS_HELP,
    **BUDGET_HELP,
    "spurious": "The share of finds that may be held by no user.",
    "decay": "For dpne: noise of a length / of the one before.",
    "shares": "For dpne: each length's share of the budget.",
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
    max_items: int | Sequence[int] = 100,
    spurious: float = 0.01,
    method: Method = "forecast",
    pruning: Pruning = "both",
    decay: float = 1.0,
    shares: Sequence[float] | None = None,
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
    paper's, spends it evenly. "forecast" bounds words alone; "dpne" bounds every length by
    `max_items`, one number or one a length.

    With `counts`, such as 0.3, that share of the budget says of what is found how many users hold
    it, with intervals.

    A `prior` is what is known before, of a public text or an earlier release: its words need no
    threshold, and its counts say which of them are likely. It is files or a frame whose column
    `prior_text` is text; files or a frame with columns item and count; or a release, its folder or
    run id. Of a text or a table you declare with `prior_is_public` that nobody in the data
    contributed to it, or that all of it is published anyway; the promise does not cover it.

    "dpne" alone takes the rest. With `pruning`, a longer n-gram is looked at if "both" its ends
    were found, or on a "single" side, its beginning and its last token.
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    check_whole("max_n", max_n, most=LONGEST_NGRAM)
    check_choice("method", method, get_args(Method))
    if method == "forecast":
        _refuse_dpne_options(max_items, pruning, decay, shares)
    elif prior is not None:
        raise UsageError(
            f"prior: goes with method='forecast', the default; method={method!r} takes nothing "
            "from a public text: leave prior out"
        )
    given = checked_prior(prior, prior_text, prior_is_public)
    counting = CountsOptions.from_options(counts, by, groups, min_users)
    bounds = _bounds_by_length(max_items, max_n)
    _check_spurious_and_dpne_options(spurious, pruning, decay, shares, max_n)
    parameters: tuple[tuple[str, Any], ...] = (
        ("max_n", max_n),
        ("epsilon", epsilon),
        ("delta", delta),
        ("max_items", max_items if isinstance(max_items, int) else tuple(max_items)),
        ("spurious", float(spurious)),
        ("method", method),
        *counting.parameters,
        *(() if given is None else (("prior", given.digest),)),
    )
    if method == "forecast":
        theorem = THEOREM_WITHOUT_PRIOR if given is None else THEOREM_WITH_PRIOR
        levels, events, delta_shares = price_forecast(
            epsilon, delta, max_n, bounds[0], float(spurious), counting, given
        )
        found = users_needed_for_words(levels)
    else:
        parameters += (
            ("pruning", pruning),
            ("decay", float(decay)),
            ("shares", None if shares is None else tuple(map(float, shares))),
        )
        theorem = DPNE_THEOREM
        levels, events, delta_shares = price_dpne(
            epsilon, delta, bounds, spurious, pruning, decay, shares, counting
        )
        found = users_needed_for_grams(levels)
    return Price(
        verb="ngrams",
        method=method,
        parameters=parameters,
        levels=levels,
        privacy=Privacy(
            epsilon=epsilon,
            delta=delta,
            unit=UNIT,
            adjacency=ADJACENCY,
            theorem=theorem + counting.theorem,
            delta_shares=delta_shares,
            caveats=() if given is None else (given.caveat, spurious_words_caveat("`spurious`")),
        ),
        finds=found,
        events=events,
        counting=found_counts_of(events, sum(bounds), counting),
        prior=given,
    )


def _bounds_by_length(max_items: int | Sequence[int], max_n: int) -> tuple[int, ...]:
    if isinstance(max_items, int):
        check_max_items(max_items)
        return (max_items,) * max_n
    if not isinstance(max_items, (list, tuple)):
        raise UsageError(
            f"max_items: found {max_items!r}; give a whole number, or a list, one for each length"
        )
    for bound in max_items:
        check_max_items(bound)
    if len(max_items) != max_n:
        raise UsageError(
            f"max_items: found {len(max_items)} numbers for {max_n} lengths; give one number, "
            "or one for each length"
        )
    return tuple(max_items)


def _check_spurious_and_dpne_options(
    spurious: float, pruning: str, decay: float, shares: Sequence[float] | None, max_n: int
) -> None:
    if not _is_number(spurious) or not LEAST_SPURIOUS <= spurious <= 0.5:
        raise UsageError(
            f"spurious: found {spurious!r}; give a share from {LEAST_SPURIOUS:g} to 0.5, "
            "such as 0.01"
        )
    check_choice("pruning", pruning, get_args(Pruning))
    if not _is_number(decay) or not 0.1 <= decay <= 10:
        raise UsageError(
            f"decay: found {decay!r}; give a number from 0.1 to 10: below 1, longer n-grams get "
            "less noise; 1 gives equal shares"
        )
    if shares is None:
        return
    if decay != 1.0:
        raise UsageError("decay, shares: found both; each divides the budget, so give only one")
    if (
        not isinstance(shares, (list, tuple))
        or len(shares) != max_n
        or not all(_is_number(share) and isfinite(share) and share > 0 for share in shares)
    ):
        raise UsageError(
            f"shares: found {shares!r}; give {max_n} positive numbers, one for each length"
        )


def _refuse_dpne_options(
    max_items: int | Sequence[int], pruning: str, decay: float, shares: Sequence[float] | None
) -> None:
    """Refuse options that only DPNE uses, rather than ignore them."""
    asked = {
        "max_items": not isinstance(max_items, int),
        "pruning": pruning != "both",
        "decay": decay != 1.0,
        "shares": shares is not None,
    }
    if any(asked.values()):
        names = ", ".join(name for name, is_asked in asked.items() if is_asked)
        raise UsageError(
            f"{names}: does not apply to method='forecast', the default, which bounds words only "
            "and divides the budget itself; leave it out, or give method='dpne'"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
