"""The delta for draws whose distribution is not exactly the one that proofs assume."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

#: A bound on the distance, in total variation, between a draw from the noise's table and from the
#: exact noise.
LARGEST_TABLE_DISTANCE = Fraction(1, 2**232)


def delta_of_distance(distance: Fraction, epsilon: float) -> float:
    """The delta for draws whose distribution is within this distance, in total variation, of the
    exact one: (1 + e^epsilon) times the distance, as both neighbours' draws are replaced."""
    scale = 1 + Fraction(2.718281828459046) ** (int(epsilon) + 1)
    return nextafter(float(distance * scale), 1.0)


def arithmetic_delta(max_items: int, epsilon: float) -> float:
    """The delta for the table's distance from the exact Gaussian, in one level.

    Only the counts that differ between two neighbours, at most D0 of them, need the exact noise;
    the other draws have the same distribution.
    """
    return delta_of_distance(max_items * LARGEST_TABLE_DISTANCE, epsilon)


def spurious_draws_delta(epsilon: float) -> float:
    """The delta for the draws of a level's spurious grams, out of at most 2^62 valid ones.

    Separate noise for each gram would be 2^62 table draws; the distance of the binomial, which
    draws how many pass, is below 2^-212 (`draw_binomial`).
    """
    return delta_of_distance(2**62 * LARGEST_TABLE_DISTANCE + Fraction(1, 2**212), epsilon)


def forecast_draws_delta(epsilon: float) -> float:
    """The delta for the distance of a level's draws from the exact distributions, in all rounds.

    At most 2^62 valid grams with separate noise would be 2^64 table draws in three rounds. There
    are at most 2^22 cells, whose binomials and conditional draws are within 2^-150 each.
    """
    return delta_of_distance(2**64 * LARGEST_TABLE_DISTANCE + Fraction(2**25, 2**150), epsilon)
