"""The public verbs. Each prices a run and returns its plan for free; `plan.run()` spends."""

from __future__ import annotations

from dphh.corpus import Corpus
from dphh.mechanisms.items import plan_items
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
