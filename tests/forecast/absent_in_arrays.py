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

    @classmethod
    def none(cls) -> Spurious:
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(4)))

    @classmethod
    def joined(cls, parts: list[Spurious]) -> Spurious:
        parts = [cls.none(), *parts]
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("keys", "bins", "first", "second")
            )
        )


def absent_bins(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """The bins of `absent[c]` absent grams of each class c, as counts by (class, bin)."""
    of_classes = enumerate(absent.tolist())
    return np.array(
        [bins_of_class(*of_class, law, randomness, purpose) for of_class in of_classes],
        dtype=np.int64,
    )


def absent_negatives(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    """How many of the absent grams of each (class, bin) are at 0 or below in round 2."""
    rows, columns = absent.shape
    return np.array(
        [
            [
                negatives_of_row(
                    group, column, int(absent[group, column]), law, randomness, purpose
                )
                for column in range(columns)
            ]
            for group in range(rows)
        ],
        dtype=np.int64,
    ).reshape(absent.shape)


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
    return Spurious.joined(
        [
            spurious_of_class(valid, group, *rows, held, law, randomness, purpose)
            for group, rows in enumerate(zip(absent, negatives, thresholds, strict=True))
        ]
    )


def spurious_of_class(
    valid: Classes,
    group: int,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams of one class that pass, from its numbers and thresholds by bin."""
    lifted = lifted_of_class(valid, group, absent, negatives, thresholds, law, randomness, purpose)
    if not len(lifted.bins):
        return Spurious.none()
    keys = lifted.proposed[~held(lifted.proposed)][: len(lifted.bins)]
    return Spurious(keys, lifted.bins, lifted.first, lifted.second)
