"""The public verbs. Each prices a run and returns its plan for free; `plan.run()` spends."""

from __future__ import annotations

from collections.abc import Sequence

from dphh.corpus import Corpus
from dphh.levels import Pruning
from dphh.mechanisms.items import plan_items
from dphh.mechanisms.ngrams import plan_ngrams
from dphh.plan import Plan


def items(
    corpus: Corpus | None = None,
    *,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    method: str = "gaussian",
) -> Plan:
    """Single items that many users hold (differentially private set union).

    max_items: how many different items one user may count for; about what a typical user holds.
    method: "gaussian", the weighted Gaussian policy; "sips", three rounds of it, each freeing the
    users of what is found already, better where users hold many popular items.
    """
    return plan_items(corpus, epsilon=epsilon, delta=delta, max_items=max_items, method=method)


def ngrams(
    corpus: Corpus | None = None,
    *,
    max_n: int,
    epsilon: float,
    delta: float,
    max_items: int | Sequence[int] = 100,
    spurious: float = 0.01,
    pruning: Pruning = "both",
    decay: float = 1.0,
    shares: Sequence[float] | None = None,
    method: str = "dpne",
) -> Plan:
    """Runs of up to `max_n` tokens that many users hold (DPNE).

    max_items: how many different n-grams of one length a user may count for; one number, or one a
    length. spurious: the share of n-grams, of the number found one length below, that nobody need
    hold. pruning: a longer n-gram is looked at if "both" its ends were found, or on a "single"
    side, its beginning and its last token. decay: each length's noise over that of the length
    below; `shares=` gives each length's share of the budget instead. method: "dpne", or the
    paper's baselines "dpsu-all", "dpsu-even", "dpsu-single".
    """
    return plan_ngrams(
        corpus,
        max_n=max_n,
        epsilon=epsilon,
        delta=delta,
        max_items=max_items,
        spurious=spurious,
        pruning=pruning,
        decay=decay,
        shares=shares,
        method=method,
    )
