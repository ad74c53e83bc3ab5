"""`ngrams`: DPNE, Algorithm 1. Level 1 is `items`; each further level sees valid grams alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.session import Session
from dphh.ladder import first_rung, next_rung, spelled, valid_grams
from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.mechanisms.ngrams import spurious_threshold
from dphh.mechanisms.released_rows import LevelDone, rows, singles, whole
from dphh.price import Price

#: Between the words of a key that no pruning made (`sql/words_in_order.sql`).
SEPARATOR = "\x1f"


def ngrams_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    climb = ladder_levels if price.method == "dpne" else set_union_levels
    return climb(price, session, joiner)


def ladder_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    base, *above = price.levels
    assert isinstance(base, SetUnionLevel)
    session.hold_words()
    passed = session.set_union_level(base, "ngrams/level 1")
    keys = whole(passed.column("key"), pa.string())
    order = pc.sort_indices(keys)
    vocabulary = keys.take(order)
    noisy = whole(passed.column("noisy"), pa.int64()).take(order)
    yield LevelDone(base, rows(1, vocabulary, singles(vocabulary), noisy, base.grid_bits))

    words = rung = first_rung(len(vocabulary))
    if above and len(words):
        numbers = np.arange(len(words), dtype=np.int32)
        session.place_words(pa.table({"key": vocabulary, "gram": numbers}))
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
                pa.table({"key": rung.keys, "gram": np.arange(len(rung), dtype=np.int32)})
            )


def set_union_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    """The paper's baselines: plain set union over n-grams, without any pruning."""
    lengths = [level.level for level in price.levels]
    together = price.method == "dpsu-all"
    passed: Any = None
    for level in price.levels:
        assert isinstance(level, SetUnionLevel)
        if passed is None or not together:
            session.hold_whole_grams(lengths if together else [level.level])
            passed = session.set_union_level(level, f"ngrams/{price.method} {level.level}")
        items, tokens, chosen = spelled_keys(passed.column("key"), level.level, joiner)
        noisy = whole(passed.column("noisy"), pa.int64()).filter(chosen)
        yield LevelDone(level, rows(level.level, items, tokens, noisy, level.grid_bits))


def spelled_keys(keys: Any, length: int, joiner: str) -> tuple[Any, Any, Any]:
    """Items and tokens of the keys of one length (`words_in_order.sql`), and which those are."""
    tokens = pc.split_pattern(whole(keys, pa.string()), SEPARATOR)
    chosen = pc.equal(pc.list_value_length(tokens), length)
    tokens = tokens.filter(chosen)
    flat = tokens.flatten()
    if len(flat) and pc.any(pc.match_substring(flat, "\\")).as_py():
        flat = pa.array([unescaped(token) for token in flat.to_pylist()], pa.string())
    offsets = pa.array(np.arange(len(tokens) + 1, dtype=np.int32) * np.int32(length))
    tokens = pa.ListArray.from_arrays(offsets, flat)
    return pc.binary_join(tokens, joiner), tokens, chosen


def unescaped(token: str) -> str:
    return "\\".join(part.replace("\\s", SEPARATOR) for part in token.split("\\\\"))


def spelled_nothing() -> tuple[pa.Array, pa.Array, pa.Array]:
    return pa.array([], pa.string()), pa.array([], pa.list_(pa.string())), pa.array([], pa.int64())
