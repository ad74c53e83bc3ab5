"""The draws for absent grams over all classes at once: what the queries draw row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphh.privacy.forecast_rounds import Bins
from dphh.udfs.draws.absent import Classes, bins_of_class, lifted_of_class, negatives_of_row
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.text.hashes import Integers

#: Tells for each key whether some user holds it.
Held = Callable[[Integers], Any]


@dataclass(frozen=True)
class Spurious:
    """Spurious grams: their keys, bins and noised weights of both rounds."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers


def absent_bins(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """The bins of `absent[c]` absent grams of each class c, as counts by (class, bin)."""
    of_classes = enumerate(absent.tolist())
    return np.array(
        [bins_of_class(*of_class, law, randomness, purpose) for of_class in of_classes],
        dtype=np.int64,
    )


def absent_negatives(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """How many of the absent grams of each (class, bin) are at 0 or below in round 2."""
    numbers = [
        negatives_of_row(group, column, int(absent[group, column]), law, randomness, purpose)
        for group, column in np.ndindex(*absent.shape)
    ]
    return np.array(numbers, dtype=np.int64).reshape(absent.shape)


def spurious_grams(
    valid: Classes,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams that pass `thresholds`, which are by (class, bin)."""
    nothing = np.empty(0, dtype=np.int64)
    parts = [(nothing, nothing, nothing, nothing)]
    for group, rows in enumerate(zip(absent, negatives, thresholds, strict=True)):
        lifted = lifted_of_class(valid, group, *rows, law, randomness, purpose)
        if len(lifted.bins):
            keys = lifted.proposed[~held(lifted.proposed)][: len(lifted.bins)]
            parts.append((keys, lifted.bins, lifted.first, lifted.second))
    return Spurious(*map(np.concatenate, zip(*parts, strict=True)))
