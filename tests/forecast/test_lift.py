"""Classes with a public text's lift, counted without writing pairs down, against all pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dphh.ladder.classes import valid_classes
from dphh.ladder.lift import Lift, public_lift
from dphh.ladder.rungs import first_ladder
from dphh.priors.made import prior_of_items


def step(mass, shared):
    return int(np.floor((np.log(max(mass, 1e-3)) - np.log(max(shared, 1e-3)) / 2) / 0.5))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("level", [2, 3])
def test_every_pair_is_in_the_class_of_its_forecast_and_its_lift(seed, level):
    rng = np.random.default_rng(seed)
    ladder = first_ladder(pa.array([f"w{i}" for i in range(9)]), "both")
    if level == 3:
        ladder = ladder.with_next(np.array([i << 32 | j for i in range(9) for j in range(9)
                                            if rng.random() < 0.4]))  # fmt: skip
    top = ladder.top
    before = len(ladder.rungs[-2]) if level == 3 else 1
    masses, masses_before = rng.lognormal(2, 1.5, len(top)), rng.lognormal(4, 1, before)
    counts = rng.integers(0, 2, len(top)) * rng.integers(1, 900, len(top))
    counts_before = rng.integers(1, 5000, before)
    ends = np.zeros(len(top), int) if level == 2 else top.keys & (2**32 - 1)
    begins = np.zeros(len(top), int) if level == 2 else top.keys >> 32
    pairs = [(i, j) for i in range(len(top)) for j in range(len(top)) if ends[i] == begins[j]]
    public = {pair: int(rng.integers(1, 60)) for pair in pairs if rng.random() < 0.3}
    keys = np.array([i << 32 | j for i, j in public], np.int64)
    valid = valid_classes(
        top, masses, masses_before,
        Lift(counts, counts_before, keys, np.array([*public.values()], np.int64)),
    )  # fmt: skip

    expected = {}
    for i, j in pairs:
        forecast = step(masses[i], masses_before[ends[i]]) + step(masses[j], masses_before[ends[i]])
        e = step(counts[i], counts_before[ends[i]]) + step(counts[j], counts_before[ends[i]])
        lift = max((public.get((i, j), 0) + 1) / (np.exp(0.5 * (e + 1)) + 1), 0.25)
        expected[i << 32 | j] = forecast + int(np.floor(np.log(lift) / 0.5))
    # A class's forecast is its middle.
    found = dict(zip(expected, valid.of(np.array([*expected])).tolist(), strict=True))
    for key, of_class in found.items():
        assert valid.forecasts[of_class] == pytest.approx(np.exp(0.5 * (expected[key] + 1)))
    assert len(valid) == len(pairs) == valid.sizes.sum()
    for group, size in enumerate(valid.sizes.tolist()):
        inside = valid.keys(group, np.arange(size))
        assert sorted(inside.tolist()) == sorted(k for k, c in found.items() if c == group)
        mixed = rng.permutation(size)
        assert (valid.keys(group, mixed) == inside[mixed]).all()


def test_public_counts_are_those_of_released_grams_whose_parts_were_released():
    tokens = ["a", "b", "c", "x", ("a", "b"), ("b", "c"), ("b", "x"), ("c", "c"), ("a", "b", "c"),
              ("b", "c", "c")]  # fmt: skip
    lists = pa.array([[t] if isinstance(t, str) else list(t) for t in tokens])
    prior = prior_of_items(lists, [50, 40, 30, 20, 9, 8, 7, 6, 5, 4], 3)
    ladder = first_ladder(pa.array(["a", "b", "c", "never"]), "both")
    numbers = np.array([0, 1, 2, -1])  # of a, b, c, x
    words = public_lift(prior, numbers, ladder.rungs)
    assert words.counts.tolist() == [50, 40, 30, 0]
    assert words.counts_before.tolist() == [140]
    pairs = dict(zip(words.keys.tolist(), words.counts_of_keys.tolist(), strict=True))
    assert pairs == {0 << 32 | 1: 9, 1 << 32 | 2: 8, 2 << 32 | 2: 6}
    ladder = ladder.with_next(np.array([0 << 32 | 1, 1 << 32 | 2, 3 << 32 | 3]))
    triples = public_lift(prior, numbers, ladder.rungs)
    assert triples.counts.tolist() == [9, 8, 0]
    assert triples.counts_before.tolist() == [50, 40, 30, 0]
    assert triples.keys.tolist() == [0 << 32 | 1]  # a b c; of b c c, c c was not released
    assert triples.counts_of_keys.tolist() == [5]
