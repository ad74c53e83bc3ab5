"""Pictures of what choices cost, drawn from the code that prices runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import dphh
from building.lines import Line, lines_svg
from building.measured import prior_and_epsilon
from dphh.ledger.budget import checked_booking, checked_cap, fits
from dphh.privacy.accounting import compose
from dphh.privacy.gaussian import gaussian_delta, gaussian_sigma

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
DELTA = 1e-8
CAP = (3.0, 1e-6)


@lru_cache
def _items(epsilon: float, delta: float, max_items: int) -> dphh.Plan:
    return dphh.items(epsilon=epsilon, delta=delta, max_items=max_items)


@lru_cache
def _phrases(epsilon: float, delta: float) -> dphh.Plan:
    return dphh.ngrams(max_n=3, epsilon=epsilon, delta=delta, method="dpne")


def _alone(plan: dphh.Plan) -> int:
    return plan.finds.users


def _among(plan: dphh.Plan, held: int) -> int:
    return dict(plan.finds.users_by_held)[held]


def _of_length(plan: dphh.Plan, length: int) -> int:
    return dict(plan.finds.users_by_length)[length]


def epsilon_and_users() -> str:
    """How many people must share an item, by epsilon."""
    return lines_svg(
        "People who must share an item, at delta 1e-8",
        "epsilon",
        [
            Line(
                "a word, each of them holds 10 words",
                [(e, _among(_items(e, DELTA, 10), 10)) for e in EPSILONS],
            ),
            Line(
                "a phrase of 3 words, by method dpne",
                [(e, _of_length(_phrases(e, DELTA), 3)) for e in EPSILONS],
            ),
            Line(
                "a word, nothing else is held",
                [(e, _alone(_items(e, DELTA, 10))) for e in EPSILONS],
            ),
        ],
        logs=(True, True),
    )


def delta_and_users() -> str:
    """How many people must share an item, by delta."""
    return lines_svg(
        "People who must share a word",
        "delta",
        [
            Line(f"epsilon {e:g}", [(d, _alone(_items(e, d, 10))) for d in DELTAS])
            for e in (0.5, 1.0, 4.0)
        ],
        logs=(True, False),
    )


def max_items_and_users() -> str:
    """What the bound on a user's items costs, at (1, 1e-8)."""
    bounds = (1, 3, 10, 30, 100, 300)
    plans = {bound: _items(1.0, DELTA, bound) for bound in bounds}
    return lines_svg(
        "People who must share a word, at (1, 1e-8)",
        "max_items",
        [
            Line(
                "each of them holds max_items words",
                [(b, dict(plan.finds.users_by_held)[b]) for b, plan in plans.items()],
            ),
            Line("nothing else is held", [(b, _alone(plan)) for b, plan in plans.items()]),
        ],
        logs=(True, True),
    )


def epsilon_and_guesses() -> str:
    """How often the best test is right about one user, with even odds before."""

    def right(advantage: float) -> float:
        return 100 * (1 + advantage) / 2

    steps = [e for e in EPSILONS if e <= 8]
    return lines_svg(
        "Right guesses in 100, where 50 are luck",
        "epsilon",
        [
            Line("most that epsilon allows", [(e, right(_pure(e))) for e in steps], dashed=True),
            Line(
                "most that a run of items allows",
                [(e, right(compose(_items(e, DELTA, 10).events).delta(0.0))) for e in steps],
            ),
        ],
        logs=(True, False),
        bottom=50,
        top=100,
    )


def _pure(epsilon: float) -> float:
    """The largest difference in probability that (epsilon, 0) leaves: (e^eps - 1) / (e^eps + 1)."""
    from math import tanh

    return tanh(epsilon / 2)


def people_and_promise() -> str:
    """What a run at (1, 1e-8) promises to a person with several user ids: its epsilon at delta."""
    sigma = gaussian_sigma(1.0, DELTA)
    copies = (1, 2, 3, 5, 10)
    return lines_svg(
        "Epsilon of a person with several user ids",
        "user ids of one person",
        [Line("epsilon at delta 1e-8", [(k, _epsilon(sigma / k)) for k in copies])],
    )


def _epsilon(sigma: float) -> float:
    from dphh.privacy.gaussian import gaussian_epsilon

    assert gaussian_delta(1.0, sigma) >= 0
    return gaussian_epsilon(DELTA, sigma)


def weeks_and_epsilon() -> str:
    """How many equal weekly runs fit under a cap."""
    weeks = (1, 4, 13, 52)
    return lines_svg(
        f"Epsilon of each weekly run, cap ({CAP[0]:g}, {CAP[1]:g})",
        "weeks",
        [
            Line("as the ledger composes them", [(w, _weekly(w)) for w in weeks]),
            Line("if epsilons added up", [(w, CAP[0] / w) for w in weeks], dashed=True),
        ],
        logs=(True, True),
    )


@lru_cache
def _weekly(weeks: int) -> float:
    """The largest epsilon, to 4%, of which so many runs fit under the cap."""
    delta = CAP[1] / 2 / weeks
    low, high = CAP[0] / weeks, CAP[0]
    while high / low > 1.04:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _fits(middle, delta, weeks) else (low, middle)
    return low


def _fits(epsilon: float, delta: float, weeks: int) -> bool:
    plan = dphh.items(epsilon=epsilon, delta=delta, max_items=10)
    booking = checked_booking(plan.events, epsilon, delta)
    return fits([booking] * weeks, checked_cap(*CAP))


PICTURES: dict[str, Callable[[], str]] = {
    "epsilon-and-users": epsilon_and_users,
    "delta-and-users": delta_and_users,
    "max-items-and-users": max_items_and_users,
    "epsilon-and-guesses": epsilon_and_guesses,
    "people-and-promise": people_and_promise,
    "weeks-and-epsilon": weeks_and_epsilon,
    "prior-and-epsilon": prior_and_epsilon,
}
