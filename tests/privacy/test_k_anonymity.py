"""k-anonymity: the bound against simulated levels, its premise enumerated, the paper's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from k_anonymity import k_anonymity, kept_at_most, lemma_1, normal_k
from scipy.stats import binom

from dphh.privacy.subset_selection import subset_selection
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.subsets import draw_subsets

GBOARD = subset_selection(10**6 + 1, 10.0)
REPORTS, KEEP = 30_000_000, 10_000


def test_simulated_levels_keep_rare_words_no_oftener_than_said():
    """Whole levels by messages; the others hold nothing, or all the same, or each their own."""
    mechanism = subset_selection(1001, 4.0)
    reports, keep, alpha, runs = 2000, 10, 0.8, 150
    k = k_anonymity(mechanism, reports, keep, alpha)
    assert k is not None and k >= 5
    bound = kept_at_most(mechanism, reports, keep, k, alpha)
    assert bound <= 1 - alpha < kept_at_most(mechanism, reports, keep, k + 1, alpha)
    much = 0
    for others in (np.full(reports, 1000), np.full(reports, 7), np.arange(reports) % 999 + 1):
        values = others.copy()
        values[:k] = 0
        kept = 0
        for _ in range(runs):
            drawn = draw_subsets(SystemRandomness(), values, mechanism, "x")
            counts = np.bincount(drawn.ravel(), minlength=1001)[:1000]
            kept += int(counts[0] >= np.sort(counts)[-keep])
        assert kept <= binom.isf(1e-9, runs, bound)
        much += kept
    assert much > 0.02 * runs  # and the bound is not idle


def test_the_gboard_papers_setting():
    assert lemma_1(GBOARD, REPORTS, KEEP) is None
    assert k_anonymity(GBOARD, REPORTS, KEEP) == 48
    assert normal_k(GBOARD, REPORTS, KEEP) == pytest.approx(50.0, abs=0.1)
    assert kept_at_most(GBOARD, REPORTS, KEEP, 45) <= 0.05  # the paper's 45 is true
