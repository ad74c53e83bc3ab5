"""Runs as users start them: the operating system's words, and nothing that tests alone are spared.

A mistake that switches on where no test's randomness is given (noise by floats, one coin for all
levels, one key for all runs) shows in no test that hands over a seed. So here nobody does, or only
with words that are dealt and do not say that they are a test's.
"""

import ast
import hashlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mpmath import mp, mpf
from scipy.stats import binom, chisquare, norm

from dphh import Corpus, Ledger
from dphh.mechanisms.set_union.draws import draw_words
from dphh.mechanisms.trie.price import VoteLevel
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import RunRandomness, SystemRandomness
from dphh.udfs.rules.weights import weight
from tests.draws import CHANCE, exact_tail
from tests.engines.cut_short import AllHeads, of_levels
from tests.engines.levels import bare_level, host_on
from tests.engines.recorded_runs import CASES, corpus_of
from tests.engines.tries import plan_of

ROOT = Path(__file__).parents[2]


class Counted:
    """The system's bytes, and how many were asked for, in this process."""

    def __init__(self) -> None:
        self.bytes = 0
        self.urandom = os.urandom

    def __call__(self, size: int) -> bytes:
        self.bytes += size
        return self.urandom(size)


def agreements(count: int, of: int, chance: float) -> bool:
    """Whether two independent draws may agree so often."""
    likely = binom.sf(count - 1, of, chance) > CHANCE and binom.cdf(count, of, chance) > CHANCE
    return bool(likely)


# Nothing but the operating system is asked.

#: One of each way to draw.
DRAWING = (
    "items", "sips", "adaptive", "forecast, three rounds of words", "forecast with a prior",
    "dpne", "counts", "trie", "ldp_trie",
)  # fmt: skip


class Bytes:
    """An os.urandom that a seed determines; counts what was asked for."""

    def __init__(self, seed: str) -> None:
        self.seed = seed.encode()
        self.calls = self.bytes = 0

    def __call__(self, size: int) -> bytes:
        self.calls += 1
        self.bytes += size
        return hashlib.shake_256(self.seed + b"/%d" % self.calls).digest(size)


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    # With its first array Arrow imports pandas, which names NumPy's generators in its types.
    pa.array([0])

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a generator that is not the operating system's")

    for module in (np.random, random):
        for name in module.__all__:
            monkeypatch.setattr(module, name, forbidden)


@pytest.mark.parametrize("case", DRAWING)
def test_the_systems_bytes_decide_every_release_and_no_other_generator_is_touched(
    engine: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = CASES[case].plan(corpus_of(tmp_path, CASES[case].rows))
    poison(monkeypatch)
    threads = 1 if engine == "duckdb" else None  # or rows would come in another order each time

    def release_of(name: str) -> Any:
        dealt = Bytes("a")
        with monkeypatch.context() as patched:
            patched.setattr(os, "urandom", dealt)
            release = plan.run(
                engine=engine,
                ledger=Ledger(tmp_path / f"{name}.sqlite", create=True),
                threads=threads,
            )
        assert release.manifest["randomness"] == "operating system"
        assert dealt.bytes > 32
        assert release.to_arrow().num_rows > 0
        return release.to_arrow().to_pylist(), dealt.bytes

    first = release_of("first")
    if engine == "duckdb":
        assert first == release_of("again")


def test_no_query_draws_anything_itself() -> None:
    drawing = {"random", "rand", "randn", "uuid", "gen_random_uuid", "setseed", "shuffle"}
    for path in (ROOT / "dphh" / "engines" / "polars").rglob("*.py"):
        attributes = {
            n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)
        }
        assert not attributes & {"sample", "shuffle", "sample_n"}, path
    for path in (ROOT / "sql").rglob("*.sql"):
        said = [line.split("--")[0] for line in path.read_text().lower().splitlines()]
        words = "\n".join(said).replace("(", " ( ").split()
        calls = {a for a, b in pairwise(words) if b == "("}
        assert not calls & drawing, path
        assert "tablesample" not in words and "using sample" not in " ".join(words), path


# Noise: the exact inversion, whoever asks.


def boundaries(sigma: int) -> list[tuple[int, int]]:
    """Words on both sides of where the noise changes, and what each must give, by mpmath.

    The two sides differ in the last of 63 bits, which no float of 53 can tell apart.
    """
    mp.dps = 100
    cases = []
    for k in [1, 2, 3, sigma // 7, sigma // 2, sigma, 2 * sigma, 3 * sigma]:
        edge = int(mp.floor(exact_tail(sigma, k) * mpf(2) ** 64))  # of 2^63 for either sign
        for top, size in ((edge - 1, k), (edge + 1, k - 1)):
            cases += [(2 * top, size), (2 * top + 1, -size)]
    return cases


class Dealt:
    """Deals the same words again and again to what draws noise; the rest is the system's."""

    is_test = False

    def __init__(self, words: list[int]) -> None:
        self.dealt = words

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        if purpose.endswith("/salt"):
            return SystemRandomness().random_words(count, purpose, keys)
        turns = -(-count // len(self.dealt))
        return np.array((self.dealt * turns)[:count], dtype=np.uint64)


def test_a_levels_noise_is_the_exact_inversion_of_its_words(engine: str, tmp_path: Path) -> None:
    sigma = 1000
    words, sizes = zip(*boundaries(sigma), strict=True)
    corpus = corpus_of(tmp_path, [(i, [f"w{i}"]) for i in range(10 * len(sizes))])
    level = replace(bare_level(1), sigma_grid=sigma)
    with host_on(engine, corpus, Dealt(list(words))) as host:
        host.gather("users", ReadWords())
        passed = draw_words(host, level, "items/round 1")
    drawn = np.array(passed.column("noisy").to_pylist()) - weight(level.grid_bits, 1)
    # Each batch deals from the start, so only which sizes there are is sure.
    assert set(drawn.tolist()) == set(sizes)


def test_noise_is_fresh_for_every_row_level_host_and_run(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law of each draw, and that no two of them know of each other."""
    count, sigma = (2_000 if engine == "spark" else 6_000), 12_007
    corpus = corpus_of(tmp_path, [(i, [f"w{i}"]) for i in range(count)])
    level = replace(bare_level(1), sigma_grid=sigma)
    drawn = []
    asked = Counted()
    monkeypatch.setattr(os, "urandom", asked)
    for purposes in (("items/round 1", "items/round 2"), ("items/round 1",)):
        with host_on(engine, corpus, RunRandomness(SystemRandomness())) as host:
            host.gather("users", ReadWords())
            for purpose in purposes:
                passed = draw_words(host, level, purpose)
                keys = [int(key[1:]) for key in passed.column("key").to_pylist()]
                noisy = np.empty(count, dtype=np.int64)
                noisy[keys] = passed.column("noisy").to_pylist()
                drawn.append(noisy - weight(level.grid_bits, 1))

    assert engine == "spark" or asked.bytes >= 8 * 3 * count  # Spark's workers ask for theirs
    farthest = sqrt(log(2 / CHANCE) / (2 * count))  # Dvoretzky, Kiefer, Wolfowitz, Massart
    far = norm.isf(CHANCE) / sqrt(count - 3)
    for noise in drawn:
        ordered = np.sort(noise)
        share = np.arange(1, count + 1) / count
        last = np.diff(ordered, append=1 << 62) > 0
        assert np.abs(share - norm.cdf((ordered + 0.5) / sigma))[last].max() < farthest
        assert chisquare(np.bincount(noise % 16, minlength=16)).pvalue > CHANCE
        # Rows that share a draw: pairs are rare, each with probability 1 / (2 sqrt(pi) sigma).
        pairs = count - len(np.unique(noise))
        expected = count**2 / 2 / (2 * sqrt(np.pi) * sigma)
        assert pairs < expected + 9 * sqrt(expected) + 9
    for i, one in enumerate(drawn):
        for another in drawn[i + 1 :]:
            assert abs(np.corrcoef(one, another)[0, 1]) < far
            assert abs(np.corrcoef(np.abs(one), np.abs(another))[0, 1]) < far
            assert int((one == another).sum()) < 12


# Coins: fresh at every level and in every run.


def depths(engine: str, corpus: Corpus, groups: int, levels: int, ledger: Path) -> np.ndarray:
    """How deep each user's path grows where one vote is enough and half of all coins are heads."""
    votes = tuple(VoteLevel(level, 2**63, 1) for level in range(1, levels + 1))
    plan = of_levels(plan_of(levels), votes)
    table = plan.run(corpus=corpus, engine=engine, ledger=Ledger(ledger, create=True)).to_arrow()
    depth = np.zeros(groups, dtype=np.int64)
    for level, tokens in zip(table["level"].to_pylist(), table["tokens"].to_pylist(), strict=True):
        depth[int(tokens[0])] = max(depth[int(tokens[0])], level)
    return depth


def test_coins_are_fresh_for_every_prefix_level_and_run(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, levels = 3_000, 3
    rows = [(g, [str(g), *(str(i) for i in range(levels))]) for g in range(groups)]
    corpus = corpus_of(tmp_path, rows)
    asked = Counted()
    monkeypatch.setattr(os, "urandom", asked)
    one, another = (
        depths(engine, corpus, groups, levels, tmp_path / f"{run}.sqlite") for run in range(2)
    )
    tossed = sum(int((depth >= level).sum()) for depth in (one, another) for level in range(levels))
    assert engine == "spark" or asked.bytes >= 8 * tossed  # Spark's workers ask for theirs
    chances = np.array([0.5 ** (d + 1) for d in range(levels)] + [0.5**levels])
    for depth in (one, another):
        assert chisquare(np.bincount(depth, minlength=levels + 1), chances * groups).pvalue > CHANCE
    assert agreements(int(((one > 0) == (another > 0)).sum()), groups, 0.5)
    both = (one > 0) & (another > 0)
    assert agreements(int(((one > 1) == (another > 1))[both].sum()), int(both.sum()), 0.5)


def test_two_runs_of_one_name_draw_each_users_sequence_anew(engine: str, tmp_path: Path) -> None:
    """What a run draws once depends on the run's key, and no two ledgers have the same one."""
    users = 600
    rows = [(user, [str(user), side]) for user in range(users) for side in "ab"]
    corpus = corpus_of(tmp_path, rows)
    plan = of_levels(plan_of(2), (VoteLevel(1, 2**63, 1), VoteLevel(2, 2**63, 1)))

    def sides(name: str) -> list[str]:
        ledger = Ledger(tmp_path / f"{name}.sqlite", create=True)
        release = plan.run(
            corpus=corpus, engine=engine, run_id="one", ledger=ledger, randomness=AllHeads()
        )
        rows = release.to_arrow().to_pylist()
        chosen = {row["tokens"][0]: row["tokens"][1] for row in rows if row["level"] == 2}
        assert len(chosen) == users
        return [chosen[str(user)] for user in range(users)]

    one, another = sides("one"), sides("another")
    assert agreements(one.count("a"), users, 0.5)
    assert agreements(sum(a == b for a, b in zip(one, another, strict=True)), users, 0.5)


# Processes and forks.

DRAW = """
import json, os, sys
import numpy as np
import pyarrow as pa
from dphh.udfs.noise.sampler import draw_rounded_gaussian
from dphh.udfs.noise.randomness import RunRandomness, SystemRandomness
from dphh.udfs.rules.reports import (subset_selection)
from dphh.udfs.rules.reports import (draw_subsets)
from dphh.udfs.rules.votes import draw_votes

source = RunRandomness(SystemRandomness())
source.secret_key = b"k" * 32
mechanism = subset_selection(100, 1.0)

def drawn():
    return [
        *draw_rounded_gaussian(source, 1000, 50, "items/round 1").tolist(),
        *draw_votes(source, np.full(50, 400), 1 << 63, 1, "trie/level 1").tolist(),
        *draw_subsets(source, np.zeros(5, dtype=np.int64), mechanism, "ldp_trie").ravel().tolist(),
    ]

drawn()  # whatever has a state has one now
for child in range(2):
    if os.fork() == 0:
        print(json.dumps(drawn()), flush=True)
        os._exit(0)
    os.wait()
print(json.dumps(drawn()), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_no_two_processes_and_no_two_forks_draw_alike() -> None:
    lines = []
    command = [sys.executable, "-c", DRAW]
    for process in [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]:
        said, _ = process.communicate(timeout=250)
        lines += [json.loads(line) for line in said.splitlines()]
    assert len(lines) == 6
    for i, one in enumerate(lines):
        for another in lines[i + 1 :]:
            for kind in (slice(0, 50), slice(50, 100), slice(100, None)):
                agree = sum(a == b for a, b in zip(one[kind], another[kind], strict=True))
                assert agree < 0.6 * len(one[kind])
