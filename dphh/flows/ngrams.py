"""`ngrams`: DPNE, Algorithm 1. Level 1 is `items`; each further level sees valid grams alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.session import Session
from dphh.flows import LevelDone, rows, singles, whole
from dphh.ladder import first_rung, next_rung, spelled, valid_grams
from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.mechanisms.ngrams import spurious_threshold
from dphh.plan import Plan


def ngrams_levels(plan: Plan, session: Session) -> Iterator[LevelDone]:
    assert plan.corpus is not None
    joiner = "" if plan.corpus.content.reading == "characters" else " "
    base, *above = plan.levels
    assert isinstance(base, SetUnionLevel)
    session.hold_words()
    passed = session.set_union_level(base, "ngrams/level 1")
    order = pc.sort_indices(whole(passed.column("key"), pa.string()))
    vocabulary = whole(passed.column("key"), pa.string()).take(order)
    noisy = whole(passed.column("noisy"), pa.int64()).take(order)
    yield LevelDone(base, rows(1, vocabulary, singles(vocabulary), noisy, base.grid_bits))

    words = rung = first_rung(len(vocabulary))
    if above and len(words):
        session.place_words(pa.table({"key": vocabulary, "gram": words.keys}))
    for planned in above:
        assert isinstance(planned, PrunedLevel)
        valid = valid_grams(rung, words, planned.pruning)
        threshold = spurious_threshold(planned, len(rung), len(valid))
        level = replace(planned, valid=len(valid), threshold_grid=threshold)
        if len(valid) == 0:  # nothing below was released: nothing can be valid, nothing is read
            yield LevelDone(level, rows(level.level, *spelled_nothing(), level.grid_bits))
            continue
        session.hold_grams(level.level, level.pruning)
        passed = session.pruned_level(level, valid, f"ngrams/level {level.level}")
        keys = whole(passed.column("key"), pa.int64()).to_numpy()
        order = np.argsort(keys)
        rung = next_rung(rung, words, keys[order], level.pruning)
        noisy = whole(passed.column("noisy"), pa.int64()).to_numpy()[order]
        yield LevelDone(
            level, rows(level.level, *spelled(rung, vocabulary, joiner), noisy, level.grid_bits)
        )
        if planned is not above[-1] and len(rung):
            session.place_grams(
                pa.table({"key": rung.keys, "gram": np.arange(len(rung), dtype=np.int64)})
            )


def spelled_nothing() -> tuple[pa.Array, pa.Array, pa.Array]:
    return pa.array([], pa.string()), pa.array([], pa.list_(pa.string())), pa.array([], pa.int64())
