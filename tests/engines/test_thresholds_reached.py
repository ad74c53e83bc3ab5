"""What reaches a level's threshold passes, and what is one below it does not, on every engine.

Sums are worked out in plain Python; that all noise is added to them, test_plain_sql.py says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import isqrt
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.engines.host import Host
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.ngrams.ladder.placed import Placed
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.levels import draw_grams
from dphh.mechanisms.set_union.levels import draw_words
from dphh.udfs.kernel.reading import Words
from tests.engines.ladders import grams_of
from tests.engines.levels import host_on

SIGMA, BITS = 1_000, 10
ROWS = [(user, ["a", "a", "b", "b", "a"]) for user in range(5)] + [(9, ["b", "b"])]
EVERYTHING = -(10**12)


@pytest.fixture
def corpus(tmp_path: Any) -> Corpus:
    path = tmp_path / "corpus.parquet"
    pl.DataFrame({"who": [u for u, _ in ROWS], "what": [t for _, t in ROWS]}).write_parquet(path)
    return Corpus(path, user="who", text="what", as_="list")


def sums(*lengths: int) -> Counter[tuple[str, ...]]:
    """What users add to each of their grams of these lengths."""
    added: Counter[tuple[str, ...]] = Counter()
    for _, tokens in ROWS:
        held = set().union(*(grams_of(tokens, length) for length in lengths))
        added.update(dict.fromkeys(held, isqrt(4**BITS // len(held))))
    return added


def union_level(threshold: int = EVERYTHING) -> SetUnionLevel:
    return SetUnionLevel(1, 100, BITS, SIGMA, threshold)


def items(host: Host, threshold: int = EVERYTHING) -> tuple[Any, Any]:
    host.gather("users", Words())
    return draw_words(host, union_level(threshold), "test"), sums(1)


def words(host: Host, threshold: int = EVERYTHING) -> tuple[Any, Any]:
    host.gather("users", Words(ends=True))
    return draw_words(host, union_level(threshold), "test"), sums(1)


def grams(host: Host, threshold: int = EVERYTHING) -> tuple[Any, Any]:
    host.gather("users", Words(ends=True))
    ladder = first_ladder(pa.array(["a", "b"]), "both")
    level = PrunedLevel(2, 100, BITS, SIGMA, 0.1, "both", threshold, 4)
    return draw_grams(Placed(host), level, ladder, ladder.valid_grams(), "test"), sums(2)


@pytest.mark.parametrize("level", [items, words, grams])
def test_what_reaches_the_threshold_passes_and_one_below_it_does_not(
    engine: str, level: Callable[..., tuple[Any, Any]], corpus: Corpus, no_noise: Any
) -> None:
    with host_on(engine, corpus, no_noise) as host:
        _, added = level(host)
    for threshold in (value + above for value in set(added.values()) for above in (0, 1)):
        with host_on(engine, corpus, no_noise) as host:
            passed, _ = level(host, threshold)
        reached = [total for total in added.values() if total >= threshold]
        assert sorted(passed.column("noisy").to_pylist()) == sorted(reached)
