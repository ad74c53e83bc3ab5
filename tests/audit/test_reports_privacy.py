"""What a local report promises, by experiment: reports for one value and for another, from outside.

The event is the one that tells the two apart best; bounds are exact (Clopper-Pearson), and a claim
that the event does not come close to would be no audit.
"""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from dphh.privacy.subset_selection import SubsetSelection, subset_selection
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.subsets import draw_subsets
from tests.audit.measure import DAILY, between

DOMAIN = 12


def audited(mechanism: SubsetSelection, trials: int) -> tuple[float, float]:
    """Bounds on the epsilon that one report tells of value 0 against value 1."""

    def tells(value: int) -> int:
        """How often a report for this value holds 0 and not 1."""
        held = np.full(trials, value)
        reports = draw_subsets(SystemRandomness(), held, mechanism, "audit")
        return int(((reports == 0).any(axis=1) & ~(reports == 1).any(axis=1)).sum())

    low, high = between(tells(0), trials, DAILY)
    other_low, other_high = between(tells(1), trials, DAILY)
    return log(low / other_high), log(high / other_low)


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_a_report_tells_what_it_claims_and_no_more(epsilon: float) -> None:
    low, high = audited(subset_selection(DOMAIN, epsilon), 200_000)
    assert low <= epsilon, "a report tells more than it claims"
    # What is claimed is told, to less than a millionth.
    assert high >= 0.999999 * epsilon, "a report tells less than it should"
    assert low > 0.8 * epsilon, "the audit sees little"


def test_a_report_of_more_than_is_claimed_is_caught() -> None:
    weak = subset_selection(DOMAIN, 0.5)
    low, _ = audited(SubsetSelection(DOMAIN, weak.size, (9 * 2**64) // 10), 3_000)
    assert low > 0.5
