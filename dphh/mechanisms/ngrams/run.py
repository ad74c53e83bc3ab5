"""`ngrams`: DPNE, Algorithm 1. Level 1 is `items`; each further level sees valid grams alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import SCORED_SCHEMA
from dphh.engines.host import DrawOnce, Host, Lookup
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.mechanisms.ngrams.forecast.run import forecast_draws, forecast_levels
from dphh.mechanisms.ngrams.ladder.rungs import (
    Ladder,
    PositionsTable,
    ValidGrams,
    first_ladder,
    positions_steps,
    texts_of_grams,
)
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.running import (
    BEFORE_LEVELS,
    GATHER,
    Draws,
    LevelDone,
    as_array,
    integer_columns,
    scored_rows,
    scored_words,
    steps_of,
    words_of_texts,
)
from dphh.mechanisms.set_union.draws import bounding_parameters, draw_words, words_steps
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.price import Price


def ngrams_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    levels = forecast_levels if price.method == "forecast" else dpne_levels
    return levels(price, host, once)


def dpne_levels(price: Price, host: Host, once: DrawOnce) -> Iterator[LevelDone]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    host.gather("users", words_of_texts(price, marks_ends=True))
    # users (block, user_hashes, lengths, ids, words)
    passed = once("ngrams/level 1", lambda: draw_words(host, base, "ngrams/level 1"))
    keys = as_array(passed.column("key"), pa.string())
    order = pc.sort_indices(keys)
    vocabulary = keys.take(order)
    noisy = as_array(passed.column("noisy"), pa.int64()).take(order)
    yield LevelDone(base, scored_words(vocabulary, noisy, base.grid_bits))

    ladder = first_ladder(vocabulary)
    positions = PositionsTable(host, keeps_users=price.counting is not None)
    for planned in above:
        assert isinstance(planned, PrunedLevel)
        valid = ladder.valid_grams()
        threshold = spurious_threshold(planned, len(ladder.top), len(valid))
        level = replace(planned, valid=len(valid), threshold_grid=threshold)
        if len(valid) == 0:  # no gram below was released, so none is valid: no text is read
            yield LevelDone(level, SCORED_SCHEMA.empty_table())
            continue
        purpose = f"ngrams/level {level.level}"
        passed = once(purpose, partial(draw_dpne_level, positions, level, ladder, valid, purpose))
        keys, noisy = integer_columns(passed, "key", "noisy")
        order = np.argsort(keys)
        ladder = ladder.with_next(keys[order])
        items, tokens = texts_of_grams(ladder.top, vocabulary, host.joiner)
        yield LevelDone(
            level, scored_rows(level.level, items, tokens, noisy[order], level.grid_bits)
        )


def draw_dpne_level(
    positions: PositionsTable, level: PrunedLevel, ladder: Ladder, valid: ValidGrams, purpose: str
) -> Any:
    """Draw the level above this ladder: an Arrow table (key, noisy) of the valid grams that reach
    the threshold, including those that no user holds."""
    host = positions.host
    positions.update_positions(ladder)
    # positions (block, user_hashes, lengths, keys): the valid gram at each position
    host.run("grams_level", **bounding_parameters(host, level, purpose))
    # noised (key, noisy), of the valid grams that a user keeps
    reached = {"threshold": level.threshold_grid, "purpose": purpose}
    host.run("spurious", valid=Lookup(valid), sigma=level.sigma_grid, **reached)
    # spurious (position, key, noisy), of valid grams that no user keeps
    passed = host.take("released_grams", threshold=level.threshold_grid)
    # (key, noisy), those that reach the threshold, whether or not a user keeps them
    host.drop("noised", "spurious")
    return passed


def ngrams_draws(price: Price) -> Draws:
    """What `ngrams_levels` asks."""
    return forecast_draws(price) if price.method == "forecast" else dpne_draws(price)


def dpne_draws(price: Price) -> Draws:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    yield BEFORE_LEVELS, GATHER
    yield "ngrams/level 1", words_steps(base, "ngrams/level 1")
    for level in above:
        purpose = f"ngrams/level {level.level}"
        steps = *positions_steps(level), "grams_level", "spurious", "released_grams"
        yield purpose, steps_of(level, purpose, *steps)
