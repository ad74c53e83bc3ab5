"""The sequential Policy Gaussian of DPSU (Gopi et al. 2020): a small reference, for comparison.

Users come one after the other. Gamma = rho + alpha sigma. A user with items U (at most D0) looks at
those whose weight H[u] is below Gamma, with gaps g[u] = Gamma - H[u], and moves H towards Gamma
along g by L2 norm 1: H[u] += min(1, |g|) g[u] / |g|. The policy is contractive in L2, so H has
sensitivity 1, and items that are well over the threshold take no more weight.

Not for publication: its weights are floats, and each user's depend on all the users before, which
no single query can say. It finds more than the weighted policy; what `items` at method="sips" finds
beside it is in docs/items.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, expm1, log1p, sqrt

from scipy.special import ndtri

from dphh.privacy.gaussian import gaussian_sigma
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import Randomness, SystemRandomness

_GRID = 1024


def policy_gaussian(
    users: Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    max_items: int = 100,
    alpha: float = 3.0,
    randomness: Randomness | None = None,
) -> set[str]:
    """The items that the policy finds; users in the order given, their first D0 items each."""
    sigma = gaussian_sigma(epsilon, delta / 2)
    rho = continuous_threshold(sigma, max_items, delta / 2)
    weights = policy_weights(users, rho + alpha * sigma, max_items)
    noise = draw_rounded_gaussian(
        randomness or SystemRandomness(), ceil(sigma * _GRID), len(weights), "policy gaussian"
    )
    return {
        item
        for (item, weight), drawn in zip(weights.items(), noise.tolist(), strict=True)
        if weight + drawn / _GRID > rho
    }


def continuous_threshold(sigma: float, max_items: int, delta: float) -> float:
    """The papers' threshold: max over t <= max_items of 1/sqrt(t) + sigma PhiInv((1-delta)^(1/t)).

    A user's t new items weigh 1/sqrt(t) each; none of them passes, but with probability delta. For
    comparison with the papers only: dphh releases against an integer threshold.

    The maximum stands at an end. With z(t) = PhiInv((1-delta)^(1/t)) and
    w(z) = -Phi(z) ln(Phi(z)) / phi(z), dz/dt = w(z)/t. So the slope in t is
    (sigma sqrt(t) w(z) - 1/2) / t^(3/2), and sqrt(t) w(z(t)) grows with t because w'(z) > -1/2
    everywhere: once the threshold rises, it goes on rising.
    """
    return max(
        # The upper tail keeps what 1 - delta would round away.
        1 / sqrt(t) - sigma * float(ndtri(-expm1(log1p(-delta) / t)))
        for t in (1, max_items)
    )


def policy_weights(
    users: Iterable[Iterable[str]], gamma: float, max_items: int
) -> dict[str, float]:
    """H, after all users."""
    weights: dict[str, float] = {}
    for held in users:
        kept = sorted(set(held))[:max_items]
        gaps = {item: gamma - weights.get(item, 0.0) for item in kept}
        below = {item: gap for item, gap in gaps.items() if gap > 0}
        norm = sqrt(sum(gap * gap for gap in below.values()))
        for item, gap in below.items():
            weights[item] = weights.get(item, 0.0) + min(1.0, norm) * gap / norm
    return weights
