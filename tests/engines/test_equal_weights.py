"""Thresholds that are made for equal weights stand where weights are equal, and nowhere else.

`SetUnionLevel` has such a threshold. Whatever draws one is asked, of each user alone and without
noise: all that a user gives is one weight, to so many keys at most, and passes no more often than
the level's event says. Also where places are equal, so that an over-full user keeps fewer.
"""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from dphh import Corpus
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.set_union.levels import draw_words
from dphh.mechanisms.set_union.rounds import new_delta
from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.privacy.set_union import new_item_threshold
from dphh.udfs.kernel.contributions import contributions, equal_weights
from dphh.udfs.kernel.reading import Words as Texts
from dphh.udfs.text.hashes import Words, of_numbers
from tests.conftest import NoNoise
from tests.engines.levels import bare_level, host_on

BITS, MOST, SIGMA = 10, 7, 1_557
NOISE = rounded_gaussian(SIGMA)
#: With the threshold of equal weights, one heavy item among light ones costs more than delta.
LEVEL = SetUnionLevel(1, MOST, BITS, SIGMA, new_item_threshold(NOISE, BITS, MOST, 4.75e-8))


def check(weights: list[int]) -> None:
    assert len(set(weights)) <= 1
    assert 0 < len(weights) <= MOST
    passes = sum(NOISE.tail(LEVEL.threshold_grid - weight) for weight in weights)
    assert passes <= new_delta(LEVEL)


@pytest.mark.parametrize("how", ["items", "words"])
def test_whatever_draws_a_round_has_each_user_give_one_weight(engine: str, how: str) -> None:
    rng = random.Random(5)
    words = [f"w{number}" for number in range(40)]
    for some in (1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST):
        texts = [[rng.choice(words) for _ in range(some)] for _ in range(2)]
        frame = pl.DataFrame({"who": ["a"] * 2, "what": [["z", "y", *text] for text in texts]})
        corpus = Corpus(frame, user="who", text="what", as_="list")
        level = bare_level(MOST, bits=BITS)
        with host_on(engine, corpus, NoNoise()) as host:
            host.gather("users", Texts(ends=how == "words"))
            drawn = draw_words(host, level, "round")
        check(drawn.column("noisy").to_pylist())


@pytest.mark.parametrize("places", [1, 2, 5, 1000])
def test_so_it_is_where_places_are_equal(places: int) -> None:
    """An over-full user keeps fewer keys then, none of them with more."""

    def few(keys: np.ndarray) -> Words:
        return of_numbers(keys % places)

    rng = np.random.default_rng(places)
    kept = []
    for held in range(1, 60):
        keys = rng.permutation(1000)[:held]
        _, weights = contributions(
            np.array([held]), np.array([held]), keys, equal_weights(MOST, BITS, held, few)
        )
        if len(weights):
            check(weights.tolist())
        kept.append(len(weights))
    assert max(kept) <= MOST
    assert (min(kept[MOST:]) < MOST) == (places < 1000)
