"""Privacy amplification by shuffling: the central epsilon of anonymous locally private reports.

n reports are shuffled. One may be for either of two values; the others are arbitrary. All bounds
here use a privacy blanket (Balle et al. 2019; "clones" in Feldman, McMillan and Talwar 2021). Let
R_0 and R_1 be the distributions of that report, Q_0, Q_1 and Z distributions of reports, and

    R_0 = own Q_0 + other Q_1 + idle Z + the same rest
    R_1 = other Q_0 + own Q_1 + idle Z + the same rest
    every report's distribution is at least share (tell/2 Q_0 + tell/2 Q_1 + (1 - tell) Z).

Then m ~ Binomial(n - 1, share) of the other reports come from the blanket, and the report hides
only among these: the proof reveals all other reports, m, and whether the report is from the same
rest. What remains are the counts of reports from Q_0 and from Q_1,

    P = own (A + 1, C - A) + other (A, C - A + 1) + idle (A, C - A),

with C ~ Binomial(m, tell) and A ~ Binomial(C, 1/2), against its mirror image Q. Shuffled reports
have at most this pair's (central epsilon, delta). docs/ldp_trie.md has the proofs, and that of
`blanket_of_subsets`, for subset selection. (The numeric analysis of 2021, of any randomiser, is a
blanket too: `examples/published_amplification.py`. Its epsilon is about twice as large.)

m must be revealed: given only the total of both counts, the probability that the report is idle
would depend on the counts, and the post-processing would differ between P and Q.

Sums are cut where less than a millionth of delta is left, which is added to delta, and raised by
more than their rounding errors. Many values of m are grouped into blocks, each treated as its least
m (fewer hide less). Bisections return the end at which delta holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.special import betainc
from scipy.stats import binom

from dphh.privacy.search import sign_change
from dphh.udfs.arrays import Floats
from dphh.udfs.rules.reports import SubsetSelection

#: The part of delta for terms that sums leave out; it is added to their result.
LEFT_OUT_PART = 1e-6
#: More than a hundred times the relative error of SciPy's binomials, measured against 40 digits.
BINOMIAL_ERROR = 1e-9
#: Bisections stop when their ends differ by at most this, relatively.
BISECTION_PRECISION = 1e-5
_ROUND_DOWN_FACTOR = 1 - 1e-15  # a probability times this is rounded down
# The likely values of m are grouped into _MOST_BLOCKS blocks; where C has more than _FEW_VALUES
# likely values, m matters less, and fewer blocks are enough, down to _LEAST_BLOCKS.
_MOST_BLOCKS, _LEAST_BLOCKS, _FEW_VALUES = 48, 6, 1000
_TINY = 1e-300  # replaces smaller numbers in a logarithm or a divisor; no smaller delta is tried


@dataclass(frozen=True)
class Blanket:
    """The probabilities in the module's equations, for one way to randomise reports. A smaller
    share or a larger own weakens the bound."""

    epsilon: float  #: the local epsilon: ln(own / other)
    share: float
    tell: float
    own_chance: float
    idle_chance: float

    @property
    def other_chance(self) -> float:
        """The probability `other`: that the report for one value is drawn from the other's Q."""
        return self.own_chance * math.exp(-self.epsilon)


def blanket_of_subsets(mechanism: SubsetSelection) -> Blanket:
    """The blanket of subset selection. Q_i is uniform over the sets with x_i and without x_(1-i), Z
    over those with neither, and the blanket over all sets except those with both.
    """
    s, d, p = mechanism.domain, mechanism.size, mechanism.own_chance
    one, both = Fraction(d * (s - d), s * (s - 1)), Fraction(d * (d - 1), s * (s - 1))
    return Blanket(
        mechanism.epsilon,
        float((1 - p) * s / (s - d) * (1 - both)) * _ROUND_DOWN_FACTOR,
        float(2 * one / (1 - both)) * _ROUND_DOWN_FACTOR,
        float(p * (s - d) / (s - 1)),
        float((1 - p) * (s - d - 1) / (s - 1)),
    )


def central_delta(blanket: Blanket, reports: int, epsilon: float, left_out: float = 1e-20) -> float:
    """An upper bound on delta at this central epsilon, including a probability of about `left_out`,
    which its sums leave out."""
    hiding, chances, outside = _likely_binomial(reports - 1, blanket.share, left_out / 2)
    if blanket.tell == 1.0:  # then C, of m reports, is m
        return min(
            divergence_of_counts(blanket, epsilon, hiding + 1, chances, 0 * chances) + outside, 1.0
        )
    delta = outside
    width = len(_likely_binomial(int(hiding[-1]), blanket.tell, left_out / 2)[0])
    step = -(
        -len(hiding) // max(_MOST_BLOCKS * _FEW_VALUES // max(width, _FEW_VALUES), _LEAST_BLOCKS)
    )
    for first in range(0, len(hiding), step):
        # All of a block's probability is assigned to its least m.
        telling, share, left = _likely_binomial(int(hiding[first]), blanket.tell, left_out / 2)
        one_more = np.append(share[1:], 0.0)
        found = divergence_of_counts(blanket, epsilon, telling + 1, share, one_more) + left
        delta += found * float(np.sum(chances[first : first + step]))
    return min(delta, 1.0)


def likely_range(n: int, p: float, left_out: float) -> tuple[int, int]:
    """The least and largest value of a range outside of which Binomial(n, p) falls with probability
    about `left_out` or less.

    Bernstein: P[|C - n p| > x] <= 2 exp(-x^2 / (2 (n p (1-p) + x/3))).
    """
    digits = math.log(2 / left_out)
    reach = digits / 3 + math.sqrt(digits**2 / 9 + 2 * n * p * (1 - p) * digits)
    return max(math.floor(n * p - reach), 0), min(math.ceil(n * p + reach), n)


def _likely_binomial(n: int, p: float, left_out: float) -> tuple[Floats, Floats, float]:
    """The likely values of Binomial(n, p), their probabilities, and the probability of all other
    values: about `left_out` or less."""
    least, most = likely_range(n, p, left_out)
    outside = float(binom.cdf(least - 1, n, p) + binom.sf(most, n, p)) * (1 + BINOMIAL_ERROR)
    values = np.arange(least, most + 1, dtype=np.float64)
    return values, np.asarray(binom.pmf(values, n, p), dtype=np.float64), outside


def divergence_of_counts(
    blanket: Blanket,
    epsilon: float,
    totals: Floats,
    chances_of_one_less: Floats,
    chances_of_total: Floats,
) -> float:
    """The sum of [P - e^epsilon Q]_+ over all pairs of counts with these totals t. P and Q
    (module docstring): the counts if the one report is for the first value, or for the second.

    `chances_of_one_less`: P[C = t-1]. `chances_of_total`: P[C = t]. A pair with first count i has

        P = b(i; t) ((2/t) P[C = t-1] (own i + other (t - i)) + idle P[C = t]),

    b(i; t) = P[Binomial(t, 1/2) = i], and Q is P with own and other exchanged. P - e^epsilon Q has
    the sign of an increasing linear function of i, so it is positive from some k on, and the sum
    consists of binomial tails.
    """
    ratio, rises = math.exp(epsilon), math.expm1(epsilon)
    own, other, idle = blanket.own_chance, blanket.other_chance, blanket.idle_chance
    with np.errstate(over="ignore"):
        held = idle * rises * chances_of_total / np.maximum(2 * chances_of_one_less, _TINY)
    edge = totals * (ratio * own - other + held) / ((own - other) * (ratio + 1))
    first = np.floor(np.minimum(edge, totals)) + 1

    def sum_of_terms_from(k: Floats) -> Floats:
        """The sum of the terms from i = k on, plus a bound on its error."""
        k = np.maximum(k, 1.0)
        point = binom.pmf(k - 1, totals - 1, 0.5)
        # `beyond` is P[Binomial(t - 1, 1/2) >= k].
        beyond = np.where(k > totals - 1, 0.0, betainc(k, np.maximum(totals - k, 1.0), 0.5))
        gain = chances_of_one_less * (own - ratio * other) * point
        loss = rises * (
            chances_of_one_less * (own + other) * beyond
            + idle * chances_of_total * (beyond + point / 2)
        )
        found = gain - loss + BINOMIAL_ERROR * (abs(gain) + loss)
        return np.asarray(np.where(k <= totals, found, 0.0))

    # Rounding of `edge` may make `first` one too large. No sum from any k on is larger than that of
    # all positive terms, so the larger of these two is the right one.
    sums = np.maximum(sum_of_terms_from(first), sum_of_terms_from(first - 1))
    return float(np.sum(np.maximum(sums, 0.0)))


def central_epsilon(
    blanket: Blanket, reports: int, delta: float, replaced: int = 1, least: float = 0.0
) -> float:
    """The smallest central epsilon at this delta if `replaced` reports of a user change. It is
    rounded up, and at most `replaced` times the local epsilon.

    Group privacy, one report after the other, at epsilon' and delta' each: replaced epsilon', and
    delta' times the sum of e^(i epsilon') for i < replaced. Returns `least` if that is enough,
    which saves work when only the maximum of several is needed.
    """

    @cache
    def delta_slack(epsilon: float) -> float:
        """How far delta' at this epsilon' is below the largest allowed one. Roots of logarithms are
        compared, which are nearly linear in epsilon', so that searches are short."""
        each, log_each = delta, math.log(delta)
        if replaced > 1:
            terms = math.expm1(-epsilon * replaced) / math.expm1(-epsilon) if epsilon else replaced
            log_each -= epsilon * (replaced - 1) + math.log(terms)
            log_each -= 1e-12  # more than the errors of these logarithms
            each = math.exp(log_each)
        if log_each < math.log(_TINY):
            return -_root_of_minus_log(log_each)
        found = central_delta(blanket, reports, epsilon, LEFT_OUT_PART * each)
        return _root_of_minus_log(math.log(max(found, _TINY))) - _root_of_minus_log(log_each)

    lowest, most = least / replaced, blanket.epsilon  # `most` always suffices
    if lowest >= most or delta_slack(lowest) >= 0:
        each = min(lowest, most)
    else:
        # Epsilon of a Gaussian with the same total variation, about mu / sqrt(2 pi).
        variation = central_delta(blanket, reports, 0.0, LEFT_OUT_PART * delta)
        guess = 2.5 * variation * _root_of_minus_log(math.log(delta)) * math.sqrt(2)
        low, high = lowest, min(max(guess, 1.5 * lowest), most)
        while delta_slack(high) < 0 and high < most:
            low, high = high, min(1.5 * high, most)
        if delta_slack(high) < 0:
            each = most
        else:
            each = sign_change(delta_slack, low, high, BISECTION_PRECISION, relative=True)[1]
    return each if replaced == 1 else replaced * each * (1 + 1e-15)


def _root_of_minus_log(log_delta: float) -> float:
    """sqrt(-ln delta), or 0 if delta > 1."""
    return math.sqrt(max(-log_delta, 0.0))
