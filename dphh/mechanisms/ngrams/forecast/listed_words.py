"""Level 1 of the forecast ladder with a prior: two rounds over the listed words and, within the
same norm, over unlisted words, which have thresholds. docs/prior.md has the proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dphh.mechanisms.ngrams.forecast.two_rounds import PLAIN_WEIGHT, Drawn, TwoRoundLevel
from dphh.mechanisms.ngrams.ladder.classes import (
    LOG_STEP,
    PublicClasses,
    RuleForUnlisted,
    ValidClasses,
)
from dphh.mechanisms.ngrams.ladder.rungs import ValidGrams
from dphh.mechanisms.ngrams.levels import ListedWordsLevel
from dphh.mechanisms.running import as_array
from dphh.prior import Prior
from dphh.udfs.arrays import Floats, Integers
from dphh.udfs.noise.table import BIN_STARTS_IN_SIGMAS
from dphh.udfs.rules.forecast import LIST_SIZE_BIN_STARTS

#: The weight in round 2 of unlisted words, where `PLAIN_WEIGHT` is a weight of 1.
UNLISTED_WEIGHT = PLAIN_WEIGHT // 2
#: A word is taken as held if its noised weight in round 1 is at least this many standard deviations
#: of the noise.
HELD_DEVIATIONS = 6.0
#: No forecast is less, since its logarithm is taken.
_LEAST_FORECAST = 1e-9


def level_of_listed_words(planned: ListedWordsLevel, prior: Prior) -> TwoRoundLevel:
    """Level 1, before its rounds: everything in it follows from the plan and the prior. It has
    purses of its own, of which all users spend the same: the thresholds of unlisted words hide a
    user's new words if the user adds no more than they were made for (docs/prior.md)."""
    rule_for_unlisted = RuleForUnlisted(
        planned.first_threshold_grid, planned.second_threshold_grid, UNLISTED_WEIGHT
    )
    valid = classes_of_listed_words(prior.counts[0], prior.total, rule_for_unlisted)

    def forecasts_and_largest_mass(users_by_list_size: Floats) -> tuple[Floats, float]:
        """Forecasts from public shares and from the mass of all words, which follows from the list
        sizes, because no number of users is known."""
        total = float((users_by_list_size * LIST_SIZE_BIN_STARTS**0.5).sum())
        return np.maximum(valid.forecasts * total, _LEAST_FORECAST), total

    def most_spurious(row_sizes: Integers, finds: float) -> float:
        surely_held = row_sizes[:, BIN_STARTS_IN_SIGMAS >= HELD_DEVIATIONS].sum()
        return max(1.0, planned.spurious * float(surely_held), planned.spurious * finds)

    return TwoRoundLevel(
        planned=planned,
        valid=valid,
        below=0,
        full_purse=purse_for_listed_words(planned),
        likely_purse=purse_for_listed_words(planned),
        first=planned.first_unit**2,
        forecasts_and_largest_mass=forecasts_and_largest_mass,
        most_spurious=most_spurious,
    )


def purse_for_listed_words(planned: ListedWordsLevel) -> int:
    return planned.first_unit**2 + planned.second_unit**2


def table_of_words(listed: Any, drawn: Drawn) -> Any:
    """The table (word, mass) of the release, as the journal stores it. The row of the empty word
    has the bound on the expected number of spurious listed words."""
    keys = drawn.passed.column("key").drop_null()
    unlisted = as_array(drawn.passed.column("word").drop_null(), listed.type)
    found = listed.take(as_array(keys, pa.int64()))
    words = pa.concat_arrays([found, unlisted, pa.array([""], listed.type)])
    return pa.table({"word": words, "mass": np.append(drawn.masses, drawn.most_spurious)})


def classes_of_listed_words(
    public_counts: Integers, public_total: int, rule_for_unlisted: RuleForUnlisted
) -> ValidClasses:
    """The classes of listed words, from their counts in a public text of `public_total` words.

    A word of the list is its number there, and as a valid gram the pair of the empty gram, number
    0, and itself: so its key is its number. The class is floor(ln share / LOG_STEP), the forecast
    is the public share at the class's middle. Keys from the list's length on are words that it
    lacks.
    """
    step = np.floor(np.log(public_counts / public_total) / LOG_STEP).astype(np.int64)
    lowest = int(step.min())
    class_number = step - lowest
    sizes = np.bincount(class_number)
    return ValidClasses(
        left=np.zeros(len(public_counts), dtype=np.int64),
        right=class_number,
        forecasts=np.exp(LOG_STEP * (np.arange(len(sizes)) + lowest + 0.5)),
        bundles=ValidGrams(
            ending=np.zeros(1, dtype=np.int64),
            beginning=np.argsort(class_number, kind="stable"),
            starts_ending=np.zeros(len(sizes), dtype=np.int64),
            starts_beginning=np.cumsum(sizes) - sizes,
            begins=sizes,
            cumulative=np.cumsum(sizes),
        ),
        ends=np.arange(1, len(sizes) + 1),
        public=PublicClasses.unchanged(len(public_counts)),
        rule_for_unlisted=rule_for_unlisted,
    )


def words_masses_and_bound(table: Any) -> tuple[Any, Floats, float]:
    """Reads the table of `table_of_words`: the released words, ascending, their
    masses, and the bound on the expected number of spurious listed words."""
    # No word is empty, so the row of the bound is the first.
    table = table.sort_by("word")
    words = as_array(table.column("word"), pa.string())
    masses = table.column("mass").to_numpy()
    return words[1:], masses[1:], float(masses[0])
