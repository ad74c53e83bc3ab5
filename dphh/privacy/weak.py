"""Warnings for an epsilon or a delta that protects little."""

from __future__ import annotations

MUCH_EPSILON = 10.0
LARGE_DELTA, HUGE_DELTA = 1e-5, 1e-3
_PEOPLE = 100_000


def warnings(epsilon: float, delta: float) -> tuple[str, ...]:
    """A warning for each of the two that is large."""
    said = []
    if epsilon > MUCH_EPSILON:
        said.append(
            f"epsilon {epsilon:g} is no protection worth the name: an outcome may be e^{epsilon:g} "
            f"times as likely with somebody's data as without; give at most {MUCH_EPSILON:g}, and "
            "better 1 to 4"
        )
    if delta >= HUGE_DELTA:
        said.append(
            f"delta {delta:g} promises next to nothing: what a user alone holds may come out as it "
            f"is with that probability, for some {delta * 1000:,.0f} of every 1,000 users"
        )
    elif delta > LARGE_DELTA:
        said.append(
            f"delta {delta:g} is large: what a user alone holds may come out as it is with that "
            f"probability, for some {delta * _PEOPLE:,.0f} of every {_PEOPLE:,} users; take it "
            "well below one over their number"
        )
    return tuple(said)
