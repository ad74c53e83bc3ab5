"""Words from the operating system, exact integers from words, and seeds for tests."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from dphh.errors import UsageError
from dphh.testing import SeededRandomness
from dphh.udfs.draws import noise
from dphh.udfs.draws.randomness import (
    ONCE_A_RUN,
    Randomness,
    RunRandomness,
    SystemRandomness,
    Words,
    uniform_below,
    uniform_big,
)

SYSTEM = SystemRandomness()
CHANCE = 1e-9  # how often a sound sampler may fail one statistical test


class Scripted:
    """Hands out the words it was given, in order."""

    is_test = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Words:
        assert count <= len(self.left), "more words were asked for than the script has"
        given, self.left = self.left[:count], self.left[count:]
        return np.array(given, dtype=np.uint64)


def test_system_words_are_uniform_and_new() -> None:
    words = SYSTEM.words(50_000, "test")
    assert words.dtype == np.uint64 and len(words) == 50_000
    assert len(np.unique(words)) == 50_000
    for shift in range(0, 64, 8):
        counts = np.bincount(((words >> np.uint64(shift)) & np.uint64(255)).astype(int))
        assert chisquare(counts).pvalue > CHANCE
    assert len(SYSTEM.words(0, "test")) == 0
    assert not SYSTEM.is_test


def test_system_words_are_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    assert SYSTEM.words(3, "test").tobytes() == bytes(range(24))


def test_as_many_keys_as_words() -> None:
    for source in (SYSTEM, SeededRandomness(1)):
        with pytest.raises(UsageError, match="keys"):
            source.words(3, "test", pa.array(["a", "b"]))
        with pytest.raises(UsageError, match="-1"):
            source.words(-1, "test")


def test_threads_share_no_words() -> None:
    drawn: list[Words] = []
    threads = [
        threading.Thread(target=lambda: drawn.append(SYSTEM.words(10_000, "test")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(drawn))) == 80_000


FORK = """
import os, sys
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import SystemRandomness
system = SystemRandomness()
system.words(1000, "before the fork")
draw_rounded_gaussian(system, 1000, 1000, "before the fork")
for child in range(2):
    if os.fork() == 0:
        words = system.words(5, "x").tolist()
        print(*words, *draw_rounded_gaussian(system, 1000, 40, "x").tolist(), flush=True)
        os._exit(0)
    os.wait()
print(*system.words(5, "x").tolist(), *draw_rounded_gaussian(system, 1000, 40, "x").tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_share_no_words_and_no_noise() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=250
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [len(line) for line in lines] == [45, 45, 45]
    assert len({word for line in lines for word in line[:5]}) == 15
    for a, b in ((0, 1), (0, 2), (1, 2)):  # 40 draws that all agree: below 1e-120
        assert lines[a][5:] != lines[b][5:]


@pytest.mark.parametrize("bound", [1, 2, 7, 10, 1024])
def test_uniform_below_is_uniform(bound: int) -> None:
    drawn = uniform_below(SYSTEM, bound, 100_000, "test")
    counts = np.bincount(drawn.astype(int), minlength=bound)
    assert len(counts) == bound and counts.sum() == 100_000
    if bound > 1:
        assert chisquare(counts).pvalue > CHANCE


@pytest.mark.parametrize("bound", [2**63 + 1, 2**64 - 1, 2**64, 3 * 2**62])
def test_uniform_below_large_bounds(bound: int) -> None:
    drawn = uniform_below(SYSTEM, bound, 50_000, "test")
    assert drawn.dtype == np.uint64 and int(drawn.max()) < bound
    cells = [int(word) * 16 // bound for word in drawn]
    assert chisquare(np.bincount(cells, minlength=16)).pvalue > CHANCE


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
    cells = [uniform_big(SYSTEM, bound, "test") * 5 // bound for _ in range(4000)]
    assert chisquare(np.bincount(cells, minlength=5)).pvalue > CHANCE


def test_uniform_big_reaches_its_ends() -> None:
    top = 2**64 - 1
    assert uniform_big(Scripted(), 1, "test") == 0
    assert uniform_big(Scripted(top, top), 2**128, "test") == 2**128 - 1
    assert uniform_big(Scripted(top, top, 0, 1 << 63), 2**65 + 1, "test") == 2
    with pytest.raises(UsageError, match="bound"):
        uniform_big(SYSTEM, 0, "test")


def test_seeded_streams_do_not_depend_on_the_cut() -> None:
    whole = SeededRandomness(3).words(1000, "noise").tolist()
    source = SeededRandomness(3)
    parts = [word for n in (1, 2, 3, 0, 500, 494) for word in source.words(n, "noise").tolist()]
    assert parts == whole
    assert whole != SeededRandomness(4).words(1000, "noise").tolist()
    assert whole != SeededRandomness(3).words(1000, "other").tolist()
    assert len(set(whole)) == 1000
    assert source.is_test and repr(source) == "SeededRandomness(3)"


def test_seeded_keys_decide_whatever_their_order_and_arrow_type() -> None:
    source: Randomness = SeededRandomness(3)
    names = ["a", "b", "", None, "ü"]
    words = source.words(5, "noise", pa.array(names))
    again = source.words(5, "noise", pa.array(names[::-1], pa.large_string()))
    assert words.tolist() == again.tolist()[::-1]
    assert (
        words.tolist()
        == source.words(5, "noise", pa.chunked_array([names[:2], names[2:]])).tolist()
    )
    assert words.tolist() != source.words(5, "other", pa.array(names)).tolist()
    assert len(np.unique(words)) == 5
    numbers = source.words(3, "noise", pa.array([1, -1, 2], pa.int64()))
    assert numbers.tolist() == source.words(3, "noise", pa.array([1, -1, 2], pa.int8())).tolist()
    assert numbers[0] != source.words(1, "noise", pa.array(["1"]))[0]
    with pytest.raises(UsageError, match="key"):
        source.words(1, "noise", pa.array([0.5]))


def test_no_source_names_another_generator() -> None:
    root = Path(noise.__file__).resolve().parents[2]
    files = [*root.glob("udfs/**/*.py"), *root.glob("dphh/**/*.py")]
    assert root / "udfs" / "draws" / "noise.py" in files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            named: set[str] = set()
            if isinstance(node, ast.Import):
                named = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named = {node.module or "", *(f"{node.module}.{a.name}" for a in node.names)}
            elif isinstance(node, ast.Attribute):
                named = {ast.unparse(node), f"*.{node.attr}"}
            other = {"random", "numpy.random", "np.random", "*.default_rng", "*.rvs"}
            assert not named & other, f"{path}: {named & other}"


# What a run draws once


def of_run(key: bytes, source: Randomness = SYSTEM) -> RunRandomness:
    randomness = RunRandomness(source)
    randomness.draw_once_by(key)
    return randomness


@pytest.mark.parametrize("purpose", [*ONCE_A_RUN, f"{ONCE_A_RUN[0]}/2"])
def test_what_a_run_draws_once_follows_from_its_key_in_any_order(purpose: str) -> None:
    keys = pa.array(["a", "b", None, "", "ç", "a"])
    drawn = of_run(b"k" * 32).words(6, purpose, keys)
    turned = of_run(b"k" * 32).words(6, purpose, keys[::-1])
    assert list(drawn) == list(turned)[::-1]
    assert drawn[0] == drawn[5]
    assert len(set(drawn)) == 5
    other_run = of_run(b"l" * 32).words(6, purpose, keys)
    other_purpose = of_run(b"k" * 32).words(6, f"{purpose}/3", keys)
    assert not set(drawn) & (set(other_run) | set(other_purpose))


def test_words_that_are_drawn_once_are_uniform() -> None:
    keys = pa.array([str(number) for number in range(50_000)])
    words = of_run(os.urandom(32)).words(50_000, ONCE_A_RUN[0], keys)
    assert len(np.unique(words)) == 50_000
    for shift in range(0, 64, 8):
        counts = np.bincount((words >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert chisquare(counts).pvalue > CHANCE


def test_what_is_drawn_once_is_not_drawn_without_key_or_names() -> None:
    with pytest.raises(UsageError, match="drawn once a run"):
        RunRandomness(SYSTEM).words(1, ONCE_A_RUN[0], pa.array(["a"]))
    with pytest.raises(UsageError, match="drawn once a run"):
        of_run(bytes(32)).words(1, ONCE_A_RUN[0])


def test_all_else_of_a_run_is_the_systems() -> None:
    keys = pa.array(["a", "b"])
    for purpose in ("items/round 1", "trie/level 1/salt", f"not {ONCE_A_RUN[0]}"):
        drawn = of_run(bytes(32)).words(2, purpose, keys)
        assert not set(drawn) & set(of_run(bytes(32)).words(2, purpose, keys))


def test_a_tests_words_are_its_own_in_a_run_too() -> None:
    keys = pa.array(["a", "b"])
    for purpose in (ONCE_A_RUN[0], "trie/level 1"):
        drawn = of_run(os.urandom(32), SeededRandomness(3)).words(2, purpose, keys)
        assert list(drawn) == list(SeededRandomness(3).words(2, purpose, keys))
    assert of_run(bytes(32), SeededRandomness(3)).is_test
