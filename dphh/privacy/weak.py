"""Warnings for an epsilon or a delta that protects little."""

from __future__ import annotations

LARGE_EPSILON = 10.0
LARGE_DELTA, HUGE_DELTA = 1e-5, 1e-3


def warnings(epsilon: float, delta: float) -> tuple[str, ...]:
    """A warning if epsilon is above LARGE_EPSILON, and one if delta is above LARGE_DELTA."""
    said = []
    if epsilon > LARGE_EPSILON:
        said.append(
            f"epsilon {epsilon:g} protects almost nothing: an outcome may be e^{epsilon:g} times "
            f"as likely with a user's data as without; give at most {LARGE_EPSILON:g}, better 1 to "
            "4"
        )
    if delta >= HUGE_DELTA:
        said.append(
            f"delta {delta:g} protects almost nothing: with that probability a user's own data may "
            f"be released as they are, for about {delta * 1000:,.0f} of every 1,000 users"
        )
    elif delta > LARGE_DELTA:
        said.append(
            f"delta {delta:g} is large: with that probability a user's own data may be released as "
            f"they are, for about {delta * 100_000:,.0f} of every 100,000 users; give a delta well "
            "below one over the number of users"
        )
    return tuple(said)
