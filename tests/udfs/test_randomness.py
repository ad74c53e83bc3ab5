"""Random words from the operating system, exact integers from words, and seeds for tests."""

import os
import sys

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from dphh.errors import UsageError
from dphh.testing import SeededRandomness
from dphh.udfs.noise.randomness import (
    PURPOSES_FIXED_IN_RUN,
    Randomness,
    RunRandomness,
    SystemRandomness,
    uniform_below,
    uniform_int,
)
from tests.draws import CHANCE, Scripted

SYSTEM = SystemRandomness()


def test_system_words_are_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    assert SYSTEM.random_words(3, "test").tobytes() == bytes(range(24))


@pytest.mark.parametrize("bound", [2, 7, 1024, 2**63 + 1, 2**64, 3 * 2**62])
def test_uniform_below_is_uniform(bound: int) -> None:
    drawn = uniform_below(SYSTEM, bound, 100_000, "test")
    assert drawn.dtype == np.uint64 and int(drawn.max()) < bound
    number = min(bound, 1024)
    cells = [int(word) * number // bound for word in drawn]
    assert chisquare(np.bincount(cells, minlength=number)).pvalue > CHANCE


def test_uniform_below_rejects_the_surplus_only() -> None:
    top = 2**64 - 1  # 2^64 mod 3 = 1: the last word alone would favour 0
    source = Scripted(top, 4, top - 1, top, 8)
    assert uniform_below(source, 3, 3, "test").tolist() == [2, 1, (top - 1) % 3]
    assert source.left == []


def test_uniform_below_by_key_ignores_order() -> None:
    keys = [f"user {i}" for i in range(500)]
    bound = 2**63 + 12345  # nearly half of all words are rejected
    forward = uniform_below(SeededRandomness(5), bound, 500, "test", pa.array(keys))
    backward = uniform_below(SeededRandomness(5), bound, 500, "test", pa.array(keys[::-1]))
    assert forward.tolist() == backward.tolist()[::-1]
    assert int(forward.max()) < bound


@pytest.mark.parametrize("bound", [5, 2**64, 2**64 + 1, 3 * 2**98, 2**256 - 189])
def test_uniform_big_is_uniform(bound: int) -> None:
    cells = [uniform_int(SYSTEM, bound, "test") * 5 // bound for _ in range(4000)]
    assert chisquare(np.bincount(cells, minlength=5)).pvalue > CHANCE


def test_uniform_big_reaches_its_ends() -> None:
    top = 2**64 - 1
    assert uniform_int(Scripted(), 1, "test") == 0
    assert uniform_int(Scripted(top, top), 2**128, "test") == 2**128 - 1
    assert uniform_int(Scripted(top, top, 0, 1 << 63), 2**65 + 1, "test") == 2
    with pytest.raises(UsageError, match="bound"):
        uniform_int(SYSTEM, 0, "test")


# What a run draws once


def of_run(key: bytes, source: Randomness = SYSTEM) -> RunRandomness:
    randomness = RunRandomness(source)
    randomness.secret_key = key
    return randomness


@pytest.mark.parametrize("purpose", [*PURPOSES_FIXED_IN_RUN, f"{PURPOSES_FIXED_IN_RUN[0]}/2"])
def test_what_a_run_draws_once_follows_from_its_key_in_any_order(purpose: str) -> None:
    keys = pa.array(["a", "b", None, "", "ç", "a"])
    drawn = of_run(b"k" * 32).random_words(6, purpose, keys)
    turned = of_run(b"k" * 32).random_words(6, purpose, keys[::-1])
    assert list(drawn) == list(turned)[::-1]
    assert drawn[0] == drawn[5]
    assert len(set(drawn)) == 5
    other_run = of_run(b"l" * 32).random_words(6, purpose, keys)
    other_purpose = of_run(b"k" * 32).random_words(6, f"{purpose}/3", keys)
    assert not set(drawn) & (set(other_run) | set(other_purpose))


def test_words_that_are_drawn_once_are_uniform() -> None:
    keys = pa.array([str(number) for number in range(50_000)])
    words = of_run(os.urandom(32)).random_words(50_000, PURPOSES_FIXED_IN_RUN[0], keys)
    assert len(np.unique(words)) == 50_000
    for shift in range(0, 64, 8):
        counts = np.bincount((words >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert chisquare(counts).pvalue > CHANCE


def test_what_is_drawn_once_is_not_drawn_without_key_or_names() -> None:
    with pytest.raises(UsageError, match="drawn once a run"):
        RunRandomness(SYSTEM).random_words(1, PURPOSES_FIXED_IN_RUN[0], pa.array(["a"]))
    with pytest.raises(UsageError, match="drawn once a run"):
        of_run(bytes(32)).random_words(1, PURPOSES_FIXED_IN_RUN[0])


def test_all_else_of_a_run_is_the_systems() -> None:
    keys = pa.array(["a", "b"])
    for purpose in ("items/round 1", "trie/level 1/salt", f"not {PURPOSES_FIXED_IN_RUN[0]}"):
        drawn = of_run(bytes(32)).random_words(2, purpose, keys)
        assert not set(drawn) & set(of_run(bytes(32)).random_words(2, purpose, keys))


def test_a_tests_words_are_its_own_in_a_run_too() -> None:
    keys = pa.array(["a", "b"])
    for purpose in (PURPOSES_FIXED_IN_RUN[0], "trie/level 1"):
        drawn = of_run(os.urandom(32), SeededRandomness(3)).random_words(2, purpose, keys)
        assert list(drawn) == list(SeededRandomness(3).random_words(2, purpose, keys))
    assert of_run(bytes(32), SeededRandomness(3)).is_test


def test_a_seed_without_its_package_is_refused_when_it_is_made(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UsageError, match=r"pip install 'dphh\[testing\]'"):
        SeededRandomness(1)
