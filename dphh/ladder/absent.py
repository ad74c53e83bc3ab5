"""Valid grams that nobody holds, as the noise would have treated them, without writing them down.

In both rounds every valid gram gets noise, held or not, and there are far too many to list. A gram
that nobody holds has no weight, so its two noised weights are two independent draws of the noise.
What the rounds ask of it is its bin in round 1, the sign in round 2, and, if it passes, its key and
both noised weights. So, a class at a time:

    bins: Multinomial(absent grams of the class, P[noise in bin]);
    negatives of a row: Binomial(bin's number, P[noise <= 0]);
    passing, for a threshold t > 0: Binomial(number - negatives, P[noise >= t] / P[noise > 0]);
    which: keys drawn uniformly from the class, none twice, none that somebody holds;
    noised weights: the noise given its bin, and the noise given that it reaches t.

This is the joint law of noise added to all of them. Thresholds are above 0 (`privacy/forecast/
spurious.py`), so what is negative never passes.

Numbers of absent grams are private: they are made of how many grams somebody holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphh.ladder.classes import ValidClasses
from dphh.ladder.rungs import Integers
from dphh.privacy.forecast.rounds import Bins
from dphh.privacy.rounded_gaussian import ONE
from dphh.udfs.binomials import draw_binomial_of_any_size, draw_multinomial
from dphh.udfs.noise import draw_above, draw_between
from dphh.udfs.randomness import Randomness, uniform_below

#: Given keys, says which of them somebody holds. The answer is private and stays in the engine.
Held = Callable[[Integers], "np.ndarray[tuple[int], np.dtype[np.bool_]]"]


@dataclass(frozen=True)
class Spurious:
    keys: Integers
    bins: Integers
    first: Integers
    second: Integers


def absent_bins(
    valid: ValidClasses, supported: Integers, law: Bins, randomness: Randomness, purpose: str
) -> Integers:
    """Bins of the absent grams, (classes, bins). `supported`: held grams of each class."""
    absent = valid.sizes - supported
    return np.array(
        [
            draw_multinomial(randomness, number, law.shares, f"{purpose}/absent {group}")
            for group, number in enumerate(absent.tolist())
        ],
        dtype=np.int64,
    )


def absent_negatives(absent: Integers, law: Bins, randomness: Randomness, purpose: str) -> Integers:
    at_most_zero = 1 - Fraction(law.noise.survival(1), ONE)
    drawn = np.zeros(absent.size, dtype=np.int64)
    for row in np.flatnonzero(absent.ravel()).tolist():  # of none, none is negative
        drawn[row] = draw_binomial_of_any_size(
            randomness, int(absent.flat[row]), at_most_zero, f"{purpose}/absent signs {row}"
        )
    return drawn.reshape(absent.shape)


def spurious_grams(
    valid: ValidClasses,
    absent: Integers,
    negatives: Integers,
    thresholds: Integers,
    held: Held,
    law: Bins,
    randomness: Randomness,
    purpose: str,
) -> Spurious:
    """The absent grams that pass `thresholds`, (classes, bins)."""
    noise = law.noise
    positive = noise.survival(1)
    # Past the table's reach, and of no grams, none passes: there is nothing to draw.
    passing = np.zeros(absent.shape, dtype=np.int64)
    for group, column in np.argwhere((absent > 0) & (thresholds <= noise.reach)).tolist():
        threshold = int(thresholds[group, column])
        number = int(absent[group, column])
        assert threshold > 0
        passing[group, column] = draw_binomial_of_any_size(
            randomness,
            number - int(negatives[group, column]),
            Fraction(noise.survival(threshold), positive),
            f"{purpose}/spurious {group} {column}",
        )

    keys, columns, first, second = [], [], [], []
    for group in np.flatnonzero(passing.sum(axis=1)).tolist():
        numbers = passing[group]
        keys.append(
            _distinct(valid, group, int(numbers.sum()), held, randomness, f"{purpose}/spurious")
        )
        columns.append(np.repeat(np.arange(len(numbers)), numbers))
        for column in np.flatnonzero(numbers).tolist():
            name, number = f"{purpose}/spurious {group} {column}", int(numbers[column])
            start = int(law.starts[column])
            after = int(law.starts[column + 1]) if column + 1 < len(numbers) else noise.reach + 1
            first.append(draw_between(randomness, noise.sigma, start, after, number, name))
            second.append(
                draw_above(randomness, noise.sigma, int(thresholds[group, column]), number, name)
            )
    return Spurious(*(_joined(parts) for parts in (keys, columns, first, second)))


def _distinct(
    valid: ValidClasses, group: int, number: int, held: Held, randomness: Randomness, purpose: str
) -> Integers:
    """Absent grams of a class, uniformly, none twice, in the order drawn: any split is fair."""
    size = int(valid.sizes[group])
    keys = np.empty(0, dtype=np.int64)
    attempt = 0
    while len(keys) < number:
        attempt += 1
        count = 2 * (number - len(keys)) + 16
        drawn = uniform_below(randomness, size, count, f"{purpose} {group}/keys {attempt}")
        proposed = valid.keys(group, drawn.astype(np.int64))
        together = np.concatenate([keys, proposed[~held(proposed)]])
        _, first = np.unique(together, return_index=True)
        keys = together[np.sort(first)][:number]
    return keys


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
