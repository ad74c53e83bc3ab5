"""Runs of TrieHH over words and how many users hold each: by path's coins, by the papers' batches.

Users of one word are alike, so that a run is, level by level, votes per prefix. By Bernoulli
sampling a prefix of k users passes with probability P[Bin(k, p) >= theta], independently: one word
of randomness decides. For fixed batches m of the n users are drawn, and counted. The end of a word
is a character here, as in the papers, so 10 characters are words of 9 letters and their end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from baselines.triehh import choose_batch
from numpy.typing import NDArray
from triehh_population import Floats, Integers, Population
from triehh_printed import log10_theta
from triehh_votes import RATE, Bernoulli, FixedSize, Sampling, discovery_rate, holders_needed

from dphh.mechanisms.trie.path import choose_theta_and_p
from dphh.udfs.noise.randomness import Randomness

Bits = NDArray[np.bool_]
LENGTH = 10  # characters, the end counted


class Trie:
    """All words, cut into units: the node of each word at each level, 0 for none."""

    def __init__(self, words: Sequence[str], unit: int = 1) -> None:
        self.levels = -(-LENGTH // unit)
        ended = [word + "\0" for word in words]
        self.steps: Integers = np.array([-(-len(word) // unit) for word in ended])
        self.nodes: list[Integers] = []
        self.sizes: list[int] = []
        for level in range(1, self.levels + 1):
            ids: dict[str, int] = {}
            node = np.zeros(len(words), dtype=np.int64)
            for at in np.flatnonzero(self.steps >= level).tolist():
                node[at] = ids.setdefault(ended[at][: level * unit], len(ids) + 1)
            self.nodes.append(node)
            self.sizes.append(len(ids) + 1)

    def voters(self, counts: Floats) -> list[Integers]:
        """How many users are at each node; 0 at node 0. `counts` says how many hold each word."""
        voters = []
        for node, size in zip(self.nodes, self.sizes, strict=True):
            k = np.bincount(node, weights=counts, minlength=size).astype(np.int64)
            k[0] = 0
            voters.append(k)
        return voters

    def found(self, passed: Iterable[Bits], among: Integers) -> Integers:
        """Of the words `among`, those whose nodes pass at all levels up to their end. `passed`
        says, level by level, which nodes pass."""
        for level, bits in enumerate(passed, start=1):
            among = among[(self.steps[among] < level) | bits[self.nodes[level - 1][among]]]
        return among[self.steps[among] <= self.levels]


@dataclass
class ByPath:
    """Bernoulli sampling: a node of k voters passes if a uniform word lies below b(k) 2^64."""

    p: float
    theta: int
    randomness: Randomness

    def __post_init__(self) -> None:
        enough = self.theta
        while self.sampling.tail(enough, self.theta) < 1:
            enough *= 2
        tails = self.sampling.tail(np.arange(enough + 1), self.theta)
        self.below = np.minimum(np.ldexp(tails, 64), 2.0**64 - 2048).astype(np.uint64)
        self.below[tails == 1] = np.uint64(2**64 - 1)

    @property
    def sampling(self) -> Sampling:
        return Bernoulli(self.p)

    def passed(self, trie: Trie, word: Integers, voters: list[Integers]) -> Iterator[Bits]:
        for k in voters:
            open_ones = np.flatnonzero(k >= self.theta)
            coins = self.randomness.random_words(len(open_ones), "path votes")
            bits = np.zeros(len(k), dtype=np.bool_)
            below = self.below[np.minimum(k[open_ones], len(self.below) - 1)]
            bits[open_ones] = coins < below
            yield bits


@dataclass
class ByPaper:
    """A batch of `batch` users at each level, without replacement."""

    users: int
    batch: int
    theta: int
    randomness: Randomness

    def __post_init__(self) -> None:
        self.drawn = np.zeros(self.users, dtype=np.bool_)
        self.winner = np.zeros(self.users, dtype=np.int64)

    @property
    def sampling(self) -> Sampling:
        return FixedSize(self.users, self.batch)

    def passed(self, trie: Trie, word: Integers, voters: list[Integers]) -> Iterator[Bits]:
        for node, size in zip(trie.nodes, trie.sizes, strict=True):
            votes = np.bincount(node[word[self.draw()]], minlength=size)
            bits = votes >= self.theta
            bits[0] = False
            yield bits

    def draw(self) -> Integers:
        """A batch of different users: draws until it is full, and leaves out users drawn before.

        No round draws more than are missing, so where rounds end does not matter.
        """
        parts: list[Integers] = []
        missing = self.batch
        while missing:
            halves = self.randomness.random_words(-(-missing // 2), "batch").view(np.uint32)[
                :missing
            ]
            largest = (1 << 32) // self.users * self.users
            users = (halves[halves < largest] % np.uint32(self.users)).astype(np.int64)
            users = users[~self.drawn[users]]
            order = np.arange(len(users))
            self.winner[users] = order
            users = users[self.winner[users] == order]  # each user once
            self.drawn[users] = True
            parts.append(users)
            missing -= len(users)
        batch = np.concatenate(parts)
        self.drawn[batch] = False
        return batch


SamplingWay = ByPath | ByPaper


class Simulation:
    """Runs over one population, with its own randomness, and how fast they went."""

    def __init__(self, population: Population, randomness: Randomness) -> None:
        self.population, self.randomness = population, randomness
        self.tries: dict[int, Trie] = {}

    def trie(self, unit: int = 1) -> Trie:
        if unit not in self.tries:
            self.tries[unit] = Trie(self.population.words, unit)
        return self.tries[unit]

    def preprint_way(self, epsilon: float, levels: int = LENGTH) -> ByPaper:
        """The preprint's theta and batch, as its experiments have them."""
        n = self.population.users
        theta = log10_theta(n)
        batch = math.floor(min(-math.expm1(-epsilon / levels) / 10 * n, n / (theta + 1)))
        return ByPaper(n, batch, theta, self.randomness)

    def path_way(self, epsilon: float, delta: float) -> ByPath:
        theta, p = choose_theta_and_p(epsilon, delta, LENGTH)
        return ByPath(p, theta, self.randomness)

    def paper_way(self, epsilon: float, delta: float) -> ByPaper:
        plan = choose_batch(self.population.users, epsilon, LENGTH, delta)
        return ByPaper(plan.users, plan.batch, plan.theta, self.randomness)

    def run(self, name: str, way: SamplingWay, runs: int, *, several: bool, unit: int = 1) -> Runs:
        started = time.perf_counter()
        trie, people = self.trie(unit), self.population
        words = people.single
        counts, voters = people.single_counts, []
        if not several:
            voters = trie.voters(counts)
        among = np.flatnonzero(counts >= way.theta)
        found = []
        for _ in range(runs):
            if several:
                words = people.several(self.randomness)
                counts = np.bincount(words, minlength=len(trie.steps)).astype(np.float64)
                among = np.flatnonzero(counts >= way.theta)
                voters = trie.voters(counts) if isinstance(way, ByPath) else []
            found.append(trie.found(way.passed(trie, words, voters), among))
        took = time.perf_counter() - started
        print(f"    {name}: {runs:,} runs in {took:.1f} s, {runs / took:,.0f} a second")
        frequency = people.expected_counts if several else people.single_counts
        return Runs(name, way, found, frequency, trie)


@dataclass
class Runs:
    """The words found in each run."""

    name: str
    way: SamplingWay
    found: list[Integers]
    frequency: Floats  # users of each word
    trie: Trie

    @cached_property
    def rates(self) -> Floats:
        hits = np.bincount(np.concatenate(self.found), minlength=len(self.frequency))
        return hits / len(self.found)

    @cached_property
    def findable(self) -> Integers:
        """Words short enough and held by theta users at least, most frequent first."""
        order = by_frequency(self.frequency)
        short = self.trie.steps[order] <= self.trie.levels
        return order[short & (self.frequency[order] >= self.way.theta)]

    @cached_property
    def bound(self) -> Floats:
        """Proposition 1 for each word of `findable`."""
        holders = self.frequency[self.findable]
        return discovery_rate(self.way.sampling, self.way.theta, self.trie.levels, holders)

    def recall(self, ks: Integers) -> Floats:
        """Recall of the top K: a row a run."""
        rank = np.empty(len(self.frequency), dtype=np.int64)
        rank[by_frequency(self.frequency)] = np.arange(len(self.frequency))
        rows = [np.searchsorted(np.sort(rank[found]), ks) for found in self.found]
        return np.array(rows) / ks

    def curve(self) -> tuple[Floats, Floats, Floats]:
        """Words in bins of frequency, a quarter of a doubling wide: each bin's middle, mean rate,
        and half width of the 95% interval of one word's rate."""
        holders, rates = self.frequency[self.findable], self.rates[self.findable]
        bins = np.floor(4 * np.log2(holders)).astype(np.int64)
        at, members = np.unique(bins, return_inverse=True)
        each = np.bincount(members)
        mean = np.bincount(members, weights=rates) / each
        middle = np.exp(np.bincount(members, weights=np.log(holders)) / each)
        spread = np.bincount(members, weights=(rates - mean[members]) ** 2) / each
        assert len(at) == len(each)
        return middle, mean, 1.96 * np.sqrt(spread)

    def rarest(self) -> tuple[float, float, int]:
        """Users of the rarest word found with probability 0.9; users down to which nine in ten of
        any 25 neighbouring words are; users that the worst case needs."""
        worst = holders_needed(self.way.sampling, self.way.theta, self.trie.levels)
        holders, often = self.frequency[self.findable], self.rates[self.findable] >= RATE
        if not often.any():
            return math.nan, math.nan, worst
        windows = np.convolve(often, np.ones(25), mode="valid") >= 25 * RATE
        typical = math.nan
        if len(windows) and windows[0]:
            first_bad = len(windows) if windows.all() else int(np.argmin(windows))
            typical = float(holders[first_bad + 23])
        return float(holders[often].min()), typical, worst


def by_frequency(frequency: Floats) -> Integers:
    """The words, the most frequent first; equally frequent ones by the alphabet."""
    return np.argsort(-frequency, kind="stable")
