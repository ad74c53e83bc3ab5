"""The words of a public list in classes by their public share: the valid words of level 1 with a
prior.

A word of the list is its number there, and as a valid gram the pair of the empty gram, number 0,
and itself: so its key is its number. The class is floor(ln share / STEP), the forecast the public
share of the class's middle. Keys from the list's length on are words that it lacks.
"""

from __future__ import annotations

import numpy as np

from dphh.mechanisms.ngrams.ladder.classes import RuleForUnlisted, ValidClasses
from dphh.mechanisms.ngrams.ladder.lift import STEP
from dphh.mechanisms.ngrams.ladder.rungs import Integers


def classes_of_listed_words(
    public_counts: Integers, public_total: int, rule_for_unlisted: RuleForUnlisted
) -> ValidClasses:
    """The classes of listed words, from their counts in a public text of `public_total` words.
    Forecasts are public shares."""
    step = np.floor(np.log(public_counts / public_total) / STEP).astype(np.int64)
    lowest = int(step.min())
    group = step - lowest
    sizes = np.bincount(group)
    return ValidClasses(
        left=np.zeros(len(public_counts), dtype=np.int64),
        right=group,
        forecasts=np.exp(STEP * (np.arange(len(sizes)) + lowest + 0.5)),
        ending=np.zeros(1, dtype=np.int64),
        beginning=np.argsort(group, kind="stable"),
        starts_ending=np.zeros(len(sizes), dtype=np.int64),
        starts_beginning=np.cumsum(sizes) - sizes,
        begins=sizes,
        cumulative=np.cumsum(sizes),
        ends=np.arange(1, len(sizes) + 1),
        others=rule_for_unlisted,
    )
