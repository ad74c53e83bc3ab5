"""`ngrams`: runs of up to T tokens. The forecast ladder (`forecast.py`), or the paper's methods.

DPNE, differentially private n-gram extraction: Kim, Gopi, Kulkarni & Yekhanin 2021, Algorithm 1.
S_1 comes from DPSU (see `items`). Then, for k = 2..T: V_k, the valid k-grams, are those whose
pieces were released; every user i takes the distinct k-grams of their texts that are valid, U_i,
keeps at most Delta_k of them, and adds 1/sqrt(|U_i|) to H_k[u] for each; S_k = { u in V_k : H_k[u]
+ N(0, sigma_k^2) > rho_k }.

Privacy. Unit: a user with all their rows. Adjacency: add or remove one user. Theorem 2.1: level 1
is DPSU at sigma_1, with delta / 2 for new items over rho_1; each further level is a Gaussian
mechanism of L2 sensitivity 1, since V_k is made of released sets and every valid gram takes part,
held by somebody or not (the spurious grams of `dphh.ladder.spurious`). Together they are one
Gaussian of 1/sigma*^2 = sum 1/sigma_k^2 (Dong, Roth & Su 2019), at delta / 2. Both directions.

rho_k for k >= 2 is no matter of privacy: P[noise >= rho_k] <= eta min{1, |S_{k-1}| / |V_k|} keeps
the expected spurious grams of a level below eta |S_{k-1}|. |V_k| is exact (`dphh.ladder.rungs`).

The paper's baselines, plain DPSU on all n-grams at once: `dpsu-all` (all lengths as one set, up to
the sum of Delta_k), `dpsu-even` (a level each, the budget shared out evenly), `dpsu-single` (the
whole budget on the grams of length T alone).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isfinite
from typing import Any, Literal, get_args

from dphh.errors import UsageError
from dphh.levels import Level, PrunedLevel, Pruning, SetUnionLevel
from dphh.mechanisms.counting import Counting, found_counts
from dphh.mechanisms.forecast import THEOREM as FORECAST_THEOREM
from dphh.mechanisms.forecast import finds_words, price_forecast
from dphh.mechanisms.items import (
    ADJACENCY,
    BUDGET_HELP,
    FOUND_WITH,
    UNIT,
    check_budget,
    check_max_items,
    finds,
    price_rounds,
    set_aside,
)
from dphh.price import Finds, Price, Privacy
from dphh.privacy.events import DeltaEvent, Event, GaussianEvent
from dphh.privacy.gaussian import decaying_sigmas, gaussian_sigma, split_sigma
from dphh.privacy.rounded_gaussian import RoundedGaussian, rounded_gaussian
from dphh.privacy.set_union import (
    arithmetic_delta,
    grid_bits,
    new_item_delta,
    new_item_threshold,
    spurious_delta,
    weight,
)

Method = Literal["forecast", "dpne", "dpsu-all", "dpsu-even", "dpsu-single"]
METHODS = get_args(Method)
HELP = {
    **BUDGET_HELP,
    "max_n": "The longest n-gram, in tokens.",
    "max_items": "Words that a user may count for; of the paper's methods, n-grams of one length: "
    "one number, or one a length.",
    "spurious": "Share that nobody need hold.",
    "method": "forecast or dpne: length by length; the others: set union over whole n-grams.",
    "pruning": "Of dpne. What must be released below: all but its first and all but its last word, "
    "or the latter.",
    "decay": "Of dpne. Each length's noise over the one below's.",
    "shares": "Of dpne. Each length's share of the budget, instead of --decay.",
    **Counting.HELP,
}
LONGEST = 100
#: With a share of 1 in 2^31 valid grams on top, the noise's table still reaches so rare a tail.
LEAST_SPURIOUS = 1e-12
#: What a plan assumes of |S_1| where it says what longer grams need: |V_k| <= |S_{k-1}| |S_1|.
ASSUMED_WORDS = 10**6

THEOREMS = {
    "forecast": FORECAST_THEOREM,
    "dpne": (
        "DPNE Theorem 2.1 (Kim et al. 2021): DPSU for words, a Gaussian mechanism over the valid "
        "grams for every longer length, composed exactly (Dong, Roth & Su 2019; Balle & Wang "
        "2018); integer thresholds from the rounded Gaussian's own tail; both directions"
    ),
    "dpsu-all": "one DPSU over the n-grams of all lengths (Gopi et al. 2020); both directions",
    "dpsu-even": (
        "one DPSU a length (Gopi et al. 2020), composed exactly as Gaussians, thresholds' deltas "
        "added; both directions"
    ),
    "dpsu-single": "one DPSU over the n-grams of one length (Gopi et al. 2020); both directions",
}


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
) -> Price:
    """Runs of up to `max_n` tokens that many users hold.

    max_items: how many different words a user may count for; nothing bounds longer n-grams.
    spurious: the share of n-grams, of the number found one length below, that nobody need hold.
    method: "forecast", which spends each length's budget where releases so far foretell finds;
    "dpne", the paper's, which spends it evenly; or the paper's baselines "dpsu-all", "dpsu-even",
    "dpsu-single". counts: the share of the budget, such as 0.3, that says of what is found how many
    users hold it, with intervals.

    The paper's methods bound every length by `max_items`: one number, or one a length. "dpne" alone
    takes the rest. pruning: a longer n-gram is looked at if "both" its ends were found, or on a
    "single" side, its beginning and its last token. decay: each length's noise over that of the
    length below; `shares=` gives each length's share of the budget instead.
    """
    check_budget(epsilon, delta)
    epsilon, delta = float(epsilon), float(delta)
    if isinstance(max_n, bool) or not isinstance(max_n, int) or not 1 <= max_n <= LONGEST:
        raise UsageError(f"max_n: found {max_n!r}; give a whole number from 1 to {LONGEST}")
    if method not in METHODS:
        raise UsageError(f"method: found {method!r}; say one of {', '.join(METHODS)}")
    if method == "forecast":
        _check_forecast(max_items, pruning, decay, shares)
    counting = Counting.of(counts)
    bounds = _bounds(max_items, max_n)
    _check_shape(spurious, pruning, decay, shares, max_n)
    parameters: tuple[tuple[str, Any], ...] = (
        ("max_n", max_n),
        ("epsilon", epsilon),
        ("delta", delta),
        ("max_items", max_items if isinstance(max_items, int) else tuple(max_items)),
        ("spurious", float(spurious)),
        ("method", method),
        ("counts", counting.share or None),
    )
    if method != "forecast":
        parameters += (
            ("pruning", pruning),
            ("decay", float(decay)),
            ("shares", None if shares is None else tuple(map(float, shares))),
        )
    if method == "forecast":
        levels, events, delta_shares = price_forecast(
            epsilon, delta, max_n, bounds[0], float(spurious), counting
        )
        found = finds_words(levels)
    elif method == "dpne":
        levels, events, delta_shares = _price_dpne(
            epsilon, delta, bounds, spurious, pruning, decay, shares, counting
        )
        found = finds_grams(levels)
    else:
        if (decay, shares) != (1.0, None):
            raise UsageError(
                f"decay, shares: go with method='dpne'; method={method!r} has one noise for all"
            )
        levels, events, delta_shares = _price_dpsu(epsilon, delta, bounds, method, counting)
        first = next(level for level in levels if isinstance(level, SetUnionLevel))
        found = finds([first], first.max_items)
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
            theorem=THEOREMS[method] + counting.theorem,
            delta_shares=delta_shares,
        ),
        finds=found,
        events=events,
        counting=found_counts(events, sum(bounds)),
    )


Priced = tuple[tuple[Level, ...], tuple[Event, ...], tuple[tuple[str, float], ...]]


def _price_dpne(
    epsilon: float,
    delta: float,
    bounds: Sequence[int],
    spurious: float,
    pruning: Pruning,
    decay: float,
    shares: Sequence[float] | None,
    counting: Counting,
) -> Priced:
    spare = set_aside(
        sum(arithmetic_delta(bound, epsilon) for bound in bounds)
        + (len(bounds) - 1) * spurious_delta(epsilon)
        + counting.spare(epsilon),
        epsilon,
        delta,
    )
    total = gaussian_sigma(epsilon, delta / 2 - spare)
    finding = counting.finding(total)
    sigmas = (
        decaying_sigmas(finding, len(bounds), decay)
        if shares is None
        else split_sigma(finding, [share / sum(shares) for share in shares])
    )
    bits = grid_bits(max(sigmas), max(bounds))
    grid = [ceil(sigma * 2**bits) for sigma in sigmas]
    noise = rounded_gaussian(grid[0])
    threshold = new_item_threshold(noise, bits, bounds[0], delta / 2)
    base = SetUnionLevel(
        level=1,
        max_items=bounds[0],
        grid_bits=bits,
        sigma_grid=grid[0],
        threshold_grid=threshold,
    )
    above = [
        PrunedLevel(
            level=k,
            max_items=bounds[k - 1],
            grid_bits=bits,
            sigma_grid=grid[k - 1],
            spurious=spurious,
            pruning=pruning,
        )
        for k in range(2, len(bounds) + 1)
    ]
    new = new_item_delta(noise, bits, bounds[0], threshold)
    events: tuple[Event, ...] = (
        GaussianEvent(base.sigma, "weighted Gaussian, level 1"),
        DeltaEvent(new, "new words over the threshold, level 1"),
        *(GaussianEvent(x.sigma, f"weighted Gaussian, level {x.level}") for x in above),
        *counting.events(total),
        DeltaEvent(spare, "noise table's distance from the exact Gaussian"),
    )
    shared_out = (
        ("Gaussian curve of all levels together", delta / 2 - spare),
        ("new words over the threshold of level 1", delta / 2),
        ("noise table's distance from the exact Gaussian", spare),
    )
    return (base, *above), events, shared_out


def _price_dpsu(
    epsilon: float,
    delta: float,
    bounds: Sequence[int],
    method: str,
    counting: Counting,
) -> Priced:
    """Plain set union: one level of noise for all lengths, one each, or one for the longest."""
    if method == "dpsu-even":
        lengths = range(1, len(bounds) + 1)
        rounds, events, shared_out = price_rounds(
            epsilon, delta, [1 / len(bounds)] * len(bounds), bounds, counting
        )
    else:
        lengths = range(len(bounds), len(bounds) + 1)
        bound = sum(bounds) if method == "dpsu-all" else bounds[-1]
        rounds, events, shared_out = price_rounds(epsilon, delta, [1.0], [bound], counting)
        if method == "dpsu-all":
            lengths, rounds = range(1, len(bounds) + 1), rounds * len(bounds)
    levels = tuple(
        SetUnionLevel(
            level=length,
            max_items=x.max_items,
            grid_bits=x.grid_bits,
            sigma_grid=x.sigma_grid,
            threshold_grid=x.threshold_grid,
        )
        for length, x in zip(lengths, rounds, strict=True)
    )
    return levels, events, shared_out


def spurious_threshold(level: PrunedLevel, below: int, valid: int) -> int:
    """rho_k: the least integer with P[noise >= rho_k] <= eta min{1, |S_{k-1}| / |V_k|}.

    Where nothing is valid nothing can be spurious, and eta alone says it.
    """
    share = Fraction(level.spurious) * (min(Fraction(1), Fraction(below, valid)) if valid else 1)
    return rounded_gaussian(level.sigma_grid).smallest_with_tail_at_most(share)


def finds_grams(levels: Sequence[Level]) -> Finds:
    """How many users who hold nothing but one n-gram make it found, by its length.

    The gram is found if all its pieces are: k - j + 1 of length j, each failing with its own
    probability, so their sum bounds the failure. A level's threshold is not known before its run;
    with |S_1| <= ASSUMED_WORDS it is at most the one taken here.
    """
    steps: list[tuple[RoundedGaussian, int, SetUnionLevel | PrunedLevel]] = []
    for level in levels:
        assert isinstance(level, (SetUnionLevel, PrunedLevel))
        threshold = (
            level.threshold_grid
            if isinstance(level, SetUnionLevel)
            else spurious_threshold(level, 1, ASSUMED_WORDS)
        )
        steps.append((rounded_gaussian(level.sigma_grid), threshold, level))

    def found(length: int, users: int) -> bool:
        failure = Fraction(0)
        for j, (noise, threshold, level) in enumerate(steps[:length], start=1):
            pieces = length - j + 1
            own = weight(level.grid_bits, min(pieces, level.max_items))
            failure += pieces * (1 - noise.tail_lower(threshold - users * own))
        return failure <= 1 - FOUND_WITH

    def needed(length: int) -> int:
        most = 1
        while not found(length, most):
            most *= 2
        least = most // 2
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if found(length, middle) else (middle, most)
        return most

    # Where a user may not count for all pieces of a gram, no number is promised.
    counted = [
        length
        for length in range(1, len(steps) + 1)
        if all(length - j <= level.max_items for j, (_, _, level) in enumerate(steps[:length]))
    ]
    by_length = tuple((length, needed(length)) for length in counted)
    note = "where each of these users holds that n-gram alone"
    if len(steps) > 1:
        note += f", and at most {ASSUMED_WORDS:,} words are released"
    return Finds(
        probability=float(FOUND_WITH),
        users=by_length[0][1],
        users_by_length=by_length,
        note=note,
    )


def _bounds(max_items: int | Sequence[int], max_n: int) -> tuple[int, ...]:
    if isinstance(max_items, int):
        check_max_items(max_items)
        return (max_items,) * max_n
    if not isinstance(max_items, (list, tuple)):
        raise UsageError(
            f"max_items: found {max_items!r}; give a whole number from 1, or one for each length"
        )
    for bound in max_items:
        check_max_items(bound)
    if len(max_items) != max_n:
        raise UsageError(
            f"max_items: found {len(max_items)} bounds for {max_n} lengths; give one number, "
            "or one for each length"
        )
    return tuple(max_items)


def _check_shape(
    spurious: float, pruning: str, decay: float, shares: Sequence[float] | None, max_n: int
) -> None:
    if not _number(spurious) or not LEAST_SPURIOUS <= spurious <= 0.5:
        raise UsageError(
            f"spurious: found {spurious!r}; give a share from {LEAST_SPURIOUS:g} to 0.5, "
            "such as 0.01"
        )
    if pruning not in get_args(Pruning):
        raise UsageError(f"pruning: found {pruning!r}; say one of {', '.join(get_args(Pruning))}")
    if not _number(decay) or not 0.1 <= decay <= 10:
        raise UsageError(
            f"decay: found {decay!r}; give a number from 0.1 to 10: below 1, longer n-grams get "
            "less noise; 1 shares evenly"
        )
    if shares is None:
        return
    if decay != 1.0:
        raise UsageError("decay, shares: both say how the budget is shared; give one of them")
    if (
        not isinstance(shares, (list, tuple))
        or len(shares) != max_n
        or not all(_number(share) and isfinite(share) and share > 0 for share in shares)
    ):
        raise UsageError(f"shares: found {shares!r}; give {max_n} positive numbers, one a length")


def _check_forecast(
    max_items: int | Sequence[int], pruning: str, decay: float, shares: Sequence[float] | None
) -> None:
    """What DPNE alone asks for is refused, rather than left unused."""
    asked = {
        "max_items": not isinstance(max_items, int),
        "pruning": pruning != "both",
        "decay": decay != 1.0,
        "shares": shares is not None,
    }
    if any(asked.values()):
        names = ", ".join(name for name, is_asked in asked.items() if is_asked)
        raise UsageError(
            f"{names}: found with method='forecast', the default, which bounds words alone, by one "
            "number, and shares the budget by what it finds; leave it out, or say method='dpne'"
        )


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
