"""The weighted Gaussian policy of DPSU on integers: weights, thresholds, what will be found.

A user who holds t items adds floor(2^b / sqrt(t)) to each, so a user's vector has L2 norm at
most 2^b, exactly; the noise is round(N(0, sigma^2)) on the same grid. Everything from a user's
rows to the released set is an integer.

Threshold (Gopi et al. 2020; Theorem 2.1 of DPNE). A user with t items that nobody else holds
brings them over the threshold rho with probability at most t * P[noise >= rho - w_t], where
w_t is the weight. rho is the least integer that keeps this at most delta for every t <= D0.
The papers write (1 - delta)^(1/t) where this takes the union bound delta / t: the two differ
by a factor of at most 1 / (1 - delta), always to the safe side here.

Both together. Who holds new items alone moves nobody's count, and who holds none passes no
threshold: so new items may cost all of delta, and so may the Gaussian curve, but for what a user
pays who holds some of each (`dphh.privacy.events.SetUnionEvent`; the proof: docs/items.md).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, nextafter

from dphh.errors import UsageError
from dphh.privacy.rounded_gaussian import RoundedGaussian

#: The grid: one user alone weighs 2^GRID_BITS. 10 bits lose under 0.2% of weight at t = 300.
GRID_BITS = 10
#: Tables of the noise stay small up to here; a larger sigma gets a coarser grid.
LARGEST_SIGMA = 2**17
#: No table up to there is farther than this from the exact noise, in total variation per draw.
LARGEST_DISTANCE = Fraction(1, 2**232)
#: What of delta the Gaussian curve may take. The lowest threshold is within 0.1% of the one here.
GAUSSIAN_SHARE = 63 / 64
#: What of delta new items may take. All of it would lower thresholds by another 0.3%, and then k
#: runs of (epsilon, delta) / k would leave a cap of (epsilon, delta) nothing for noise.
NEW_ITEMS_SHARE = 15 / 16
#: Up to here both shares hold together, whatever part of a user's items is new: what
#: `dphh.privacy.accounting.compose` says, at every epsilon (tests/privacy/test_set_union_joint.py).
MOST_DELTA = 1 / 16  # of epsilon


def delta_shares(epsilon: float, delta: float) -> tuple[float, float]:
    """What of delta the Gaussian curve and new items may take; past MOST_DELTA, half for each."""
    if delta <= MOST_DELTA * epsilon:
        return GAUSSIAN_SHARE, NEW_ITEMS_SHARE
    return 1 / 2, 1 / 2


def grid_bits(sigma: float, max_items: int) -> int:
    """b: as fine as GRID_BITS, coarser where the noise is so large that nobody would notice."""
    bits = GRID_BITS
    while bits > 0 and sigma * 2**bits > LARGEST_SIGMA:
        bits -= 1
    if max_items > 4**bits:
        raise UsageError(
            f"max_items: found {max_items:,}, but with noise sigma = {sigma:.4g} the weights stand "
            f"on a grid of 2^{bits} and a user's share of one item would round to nothing; "
            f"give at most {4**bits:,}, or a larger epsilon"
        )
    return bits


def weight(bits: int, held: int) -> int:
    """floor(2^b / sqrt(t)), by integers alone: the square root of floor(4^b / t), floored."""
    return isqrt(4**bits // held)


def weights(bits: int, max_items: int) -> list[int]:
    """Of users who hold 1, 2, ... up to `max_items`, for an engine to look them up."""
    return [weight(bits, t) for t in range(1, max_items + 1)]


def distinct_weights(bits: int, max_items: int) -> list[tuple[int, int]]:
    """(t, w_t) with the largest t for each weight: the worst case among users of that weight."""
    pairs = []
    held = 1
    while held <= max_items:
        same = weight(bits, held)
        last = max_items if same == 0 else min(max_items, 4**bits // (same * same))
        pairs.append((last, same))
        held = last + 1
    return pairs


def new_item_threshold(noise: RoundedGaussian, bits: int, max_items: int, delta: float) -> int:
    """rho: the least integer that a user's own new items pass with probability at most delta."""
    return threshold_of(noise, distinct_weights(bits, max_items), delta)


def threshold_of(noise: RoundedGaussian, pairs: list[tuple[int, int]], delta: float) -> int:
    """The same for users of t new items who give w_t at most to each: `pairs` (t, w_t)."""
    budget = Fraction(delta)
    return max(own + noise.smallest_with_tail_at_most(budget / held) for held, own in pairs)


def new_item_delta(noise: RoundedGaussian, bits: int, max_items: int, threshold: int) -> float:
    """What a threshold really costs, rounded up: the events in the ledger say this."""
    return delta_of(noise, distinct_weights(bits, max_items), threshold)


def delta_of(noise: RoundedGaussian, pairs: list[tuple[int, int]], threshold: int) -> float:
    """The same for the weights that `threshold_of` takes."""
    exact = max(held * noise.tail(threshold - own) for held, own in pairs)
    return min(1.0, nextafter(float(exact), 1.0)) if exact else 0.0


def users_needed(
    noise: RoundedGaussian, bits: int, threshold: int, held: int, probability: Fraction
) -> int:
    """The least number of users, holding `held` items each, whose shared item is found so often."""
    worst_luck = noise.largest_with_tail_at_least(probability)
    return max(1, -((worst_luck - threshold) // weight(bits, held)))


def spurious_delta(epsilon: float) -> float:
    """The same for a level's spurious grams, drawn from at most 2^62 valid ones.

    Were each drawn as the noise of its own row, 2^62 table draws; the binomial's distance from the
    number of those that pass is below 2^-212 (`draw_binomial`).
    """
    scale = 1 + Fraction(2.718281828459046) ** (int(epsilon) + 1)
    return nextafter(float((2**62 * LARGEST_DISTANCE + Fraction(1, 2**212)) * scale), 1.0)


def arithmetic_delta(max_items: int, epsilon: float) -> float:
    """What the table's distance from the exact Gaussian costs one level.

    Only the counts that a neighbour touches, at most D0 of them, need the exact noise; on all
    others both neighbours draw alike. Replacing the exact law on both sides costs
    (1 + e^epsilon) times the total variation distance.
    """
    scale = 1 + Fraction(2.718281828459046) ** (int(epsilon) + 1)
    return nextafter(float(max_items * LARGEST_DISTANCE * scale), 1.0)
