"""`ngrams`: DPNE, Algorithm 1. Level 1 is `items`; each further level sees valid grams alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import SCORED
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.ngrams.dpne import spurious_threshold
from dphh.mechanisms.ngrams.forecast.levels import forecast_levels
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.price import Price
from dphh.session.ladder.rungs import GramsOn, Ladder, first_ladder, spelled
from dphh.session.protocol import Session
from dphh.udfs.kernel.reading import Reading


def ngrams_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    climb = forecast_levels if price.method == "forecast" else ladder_levels
    return climb(price, session, joiner)


def ladder_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    session.hold(Reading(ends=True))
    passed = session.draw(base, "ngrams/level 1")
    keys = whole(passed.column("key"), pa.string())
    order = pc.sort_indices(keys)
    vocabulary = keys.take(order)
    noisy = whole(passed.column("noisy"), pa.int64()).take(order)
    yield LevelDone(base, rows(1, vocabulary, singles(vocabulary), noisy, base.grid_bits))

    ladder: Ladder | None = None
    for planned in above:
        assert isinstance(planned, PrunedLevel)
        ladder = ladder or first_ladder(vocabulary, planned.pruning)
        valid = ladder.valid_grams()
        threshold = spurious_threshold(planned, len(ladder.top), len(valid))
        level = replace(planned, valid=len(valid), threshold_grid=threshold)
        if len(valid) == 0:  # nothing below was released: nothing can be valid, nothing is read
            yield LevelDone(level, SCORED.empty_table())
            continue
        passed = session.draw(GramsOn(level, ladder, valid), f"ngrams/level {level.level}")
        keys = whole(passed.column("key"), pa.int64()).to_numpy()
        order = np.argsort(keys)
        ladder = ladder.with_next(keys[order])
        noisy = whole(passed.column("noisy"), pa.int64()).to_numpy()[order]
        items, tokens = spelled(ladder.top, vocabulary, joiner)
        yield LevelDone(level, rows(level.level, items, tokens, noisy, level.grid_bits))
