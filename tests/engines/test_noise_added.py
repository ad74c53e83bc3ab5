"""Every kind of level adds the whole noise of its sigma to the whole sum, on every engine.

All noise is drawn from one word, so that it is one number, which a line of arithmetic tells; sums
are worked out in plain Python. A part of the noise, noise of another level's sigma, or a sum that
goes out without any comes to another number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm

from dphh import Corpus
from dphh.engines.host import Host
from dphh.levels.counts import CountsLevel
from dphh.levels.ngrams import PrunedLevel
from dphh.levels.set_union import SetUnionLevel
from dphh.mechanisms.counts.levels import draw_counts
from dphh.mechanisms.ngrams.ladder.placed import Placed
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.mechanisms.ngrams.levels import draw_grams
from dphh.mechanisms.set_union.levels import draw_words
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.reading import Words
from tests.engines.ladders import grams_of
from tests.engines.levels import host_on

SIGMA, BITS = 1_000, 10
#: How far out noise lies, in sigmas: either side, and next to none.
OUT = [1.25, -2.5, 0.0]
ROWS = [(user, ["a", "a", "b", "b", "a"]) for user in range(5)] + [(9, ["b", "b"])]
EVERYTHING = -(10**12)


class OneWord:
    """The same word for all noise; salts and spurious grams are the system's."""

    is_test = False

    def __init__(self, out: float) -> None:
        tail = float(norm.sf(abs(out)))
        self.word = min(int(tail * 2**64), 2**63 - 1) << 1 | (out < 0)

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        if purpose.endswith("/salt") or "/spurious" in purpose:
            return SystemRandomness().words(count, purpose, keys)
        return np.full(count, self.word, dtype=np.uint64)


def noise(out: float, sigma: int) -> int:
    return int(np.copysign(np.floor(abs(out) * sigma + 0.5), out))


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


def counts(host: Host) -> tuple[Any, Any]:
    """Of five items, who counts for three: nobody holds as many."""
    level = CountsLevel(1, 5, 3, BITS, SIGMA, 1.0, 0.95, False)
    asked = [["a"], ["b"], ["a", "b"], ["no"], ["b", "no"]]
    users = [5, 6, 5, 0, 0]
    added = [count << BITS for count in users] + [0] * level.weighing.octaves
    return draw_counts(host, level, asked, ()), dict(enumerate(added))


@pytest.mark.parametrize("out", OUT)
@pytest.mark.parametrize("level", [items, words, grams, counts])
def test_what_comes_out_is_the_sum_and_the_noise(
    engine: str, level: Callable[[Host], tuple[Any, Any]], out: float, corpus: Corpus
) -> None:
    with host_on(engine, corpus, OneWord(out)) as host:
        drawn, added = level(host)
    noised = drawn.column("noisy").to_pylist()
    assert sorted(noised) == sorted(total + noise(out, SIGMA) for total in added.values())


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


def test_a_sum_of_one_user_gets_its_noise_as_any_other(engine: str, tmp_path: Any) -> None:
    """Noise that depends on how many hold a gram would tell them apart."""
    path = tmp_path / "alone.parquet"
    rows = [(1, ["a", "a", "b"]), *((user, ["b", "b"]) for user in range(2, 9))]
    pl.DataFrame({"who": [u for u, _ in rows], "what": [t for _, t in rows]}).write_parquet(path)
    corpus = Corpus(path, user="who", text="what", as_="list")
    ladder = first_ladder(pa.array(["a", "b"]), "both")
    level = PrunedLevel(2, 100, BITS, SIGMA, 0.1, "both", EVERYTHING, 4)
    one, own = 1 << BITS, isqrt(4**BITS // 2)
    with host_on(engine, corpus, OneWord(1.25)) as host:
        host.gather("users", Words(ends=True))
        drawn = draw_grams(Placed(host), level, ladder, ladder.valid_grams(), "test")
    held = drawn.column("noisy").to_pylist()
    assert Counter(held) >= Counter([own + 1_250, own + 1_250, 7 * one + 1_250])
