"""Classes with a public text's lift, counted without writing pairs down, against all pairs."""

import numpy as np
import pyarrow as pa
import pytest

from dphh.mechanisms.ngrams.ladder.classes import LiftCounts, lift_counts, valid_classes
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.run import (
    full_purse,
    level_above,
)
from dphh.public.texts import prior_of_items
from tests.forecast.test_step import Told, drawn, planned


def step(mass, shared):
    return int(np.floor((np.log(max(mass, 1e-3)) - np.log(max(shared, 1e-3)) / 2) / 0.5))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("level", [2, 3])
def test_every_pair_is_in_the_class_of_its_forecast_and_its_lift(seed, level):
    rng = np.random.default_rng(seed)
    ladder = first_ladder(pa.array([f"w{i}" for i in range(9)]))
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
        LiftCounts(counts, counts_before, keys, np.array([*public.values()], np.int64)),
    )  # fmt: skip

    plain = valid_classes(top, masses, masses_before)

    expected = {}
    for i, j in pairs:
        forecast = step(masses[i], masses_before[ends[i]]) + step(masses[j], masses_before[ends[i]])
        e = step(counts[i], counts_before[ends[i]]) + step(counts[j], counts_before[ends[i]])
        lift = max((public.get((i, j), 0) + 1) / (np.exp(0.5 * (e + 1)) + 1), 0.04)
        step_of_lift = int(np.floor(np.log(lift) / 0.5))
        told_apart = max(s for s in (*range(-7, 5), 6, 8, 10, 12) if s <= step_of_lift)
        expected[i << 32 | j] = forecast + told_apart, forecast
    # A class's forecast is its middle, seen in each way.
    found = dict(zip(expected, valid.classes_of(np.array([*expected])).tolist(), strict=True))
    for key, of_class in found.items():
        for way, forecast in zip(valid.partitions, expected[key], strict=True):
            told = way.forecasts[way.part_of_class[of_class]]
            assert told == pytest.approx(np.exp(0.5 * (forecast + 1)))
    for way in valid.partitions:
        assert way.sums_of_parts(valid.sizes).sum() == len(pairs)
        assert len(np.unique(way.forecasts)) == len(way.forecasts)
    for key, of_class in zip(
        expected, plain.classes_of(np.array([*expected])).tolist(), strict=True
    ):
        assert plain.forecasts[of_class] == pytest.approx(np.exp(0.5 * (expected[key][1] + 1)))
    for classes in (valid, plain):
        assert len(classes) == len(pairs) == classes.sizes.sum()
        for group, size in enumerate(classes.sizes.tolist()):
            inside = classes.keys(group, np.arange(size))
            assert len(np.unique(inside)) == size
            assert (classes.classes_of(inside) == group).all()
            mixed = rng.permutation(size)
            assert (classes.keys(group, mixed) == inside[mixed]).all()


class Foretold(Told):
    """Its grams weigh what one of the ways foretells."""

    def __init__(self, way):
        super().__init__(negative=0.0)
        self.way = way

    def foretold(self, valid):
        way = valid.partitions[self.way]
        return way.forecasts[way.part_of_class]


@pytest.mark.parametrize("way", [0, 1])
def test_after_round_1_the_forecasts_that_hold_are_chosen(way):
    """With the lift or without it: rows that these see as one get one weight and one threshold."""
    rng = np.random.default_rng(1)
    masses = rng.lognormal(4, 1.5, 60)
    pairs = np.sort(rng.choice(60 * 60, 900, replace=False))
    lift = LiftCounts(
        rng.integers(50, 5_000, 60), np.array([100_000]), pairs // 60 << 32 | pairs % 60,
        rng.integers(1, 2_000, 900),
    )  # fmt: skip
    engine = Foretold(way)
    words = first_ladder(masses)
    of_words, plan = np.array([masses.sum()]), planned(mu=1.0, spurious=0.01)
    purse = full_purse(plan, 0.8)
    purses = {"purse": purse, "likely": purse / 2, "levels": 3}
    drawn(level_above(plan, words, masses, of_words, lift, **purses), engine)

    def is_seen(by):
        merged = engine.valid.partitions[by].part_of_class
        return all(
            len(np.unique(table[merged == part], axis=0)) == 1
            for table in (engine.weights, engine.thresholds)
            for part in np.unique(merged)
        )

    assert is_seen(way) and not is_seen(1 - way)


def test_public_counts_are_those_of_released_grams_whose_parts_were_released():
    tokens = ["a", "b", "c", "x", ("a", "b"), ("b", "c"), ("b", "x"), ("c", "c"), ("a", "b", "c"),
              ("b", "c", "c")]  # fmt: skip
    counts = [50, 40, 30, 20, 9, 8, 7, 6, 5, 4]
    items = [(t,) if isinstance(t, str) else t for t in tokens]
    prior = prior_of_items(dict(zip(items, counts, strict=True)), 3)
    ladder = first_ladder(pa.array(["a", "b", "c", "never"]))
    words = lift_counts(prior, ladder)
    assert words.counts.tolist() == [50, 40, 30, 0]
    assert words.counts_before.tolist() == [140]
    pairs = dict(zip(words.keys.tolist(), words.counts_of_keys.tolist(), strict=True))
    assert pairs == {0 << 32 | 1: 9, 1 << 32 | 2: 8, 2 << 32 | 2: 6}
    ladder = ladder.with_next(np.array([0 << 32 | 1, 1 << 32 | 2, 3 << 32 | 3]))
    triples = lift_counts(prior, ladder)
    assert triples.counts.tolist() == [9, 8, 0]
    assert triples.counts_before.tolist() == [50, 40, 30, 0]
    assert triples.keys.tolist() == [0 << 32 | 1]  # a b c; of b c c, c c was not released
    assert triples.counts_of_keys.tolist() == [5]
