"""The experiments of the TrieHH papers, in shape: figures 5 to 9, F1 against SFP, path and paper.

    python examples/triehh_experiments.py [--data DIR] [--out triehh-experiments] [--runs 2000]

DIR holds tweets.parquet (user_id, text); without it a corpus is made up. Words by the papers'
preprocessing, users resampled by hash to 658,769. A user's one word is its most frequent (of
equally frequent ones the first it wrote), or is drawn once a run in proportion to its frequency.

Users of one word are alike, so that a run is, level by level, votes per prefix. By Bernoulli
sampling a prefix of k users passes with probability P[Bin(k, p) >= theta], independently: one word
of randomness decides. For fixed batches m of the n users are drawn, and counted. The end of a word
is a character here, as in the papers, so 10 characters are words of 9 letters and their end.

Figures 5 to 9 take the preprint's batch as printed, which costs more than the epsilon it is
labelled with (see triehh_figures.py). The last two compare at an (epsilon, delta) that holds; for
`paper` by the published theorem, in one direction. Tables are printed and written as CSV. The
randomness is seeded: nothing here is private. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from colours import COLOURS, band
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dphh import TRIEHH_WORDS
from dphh.baselines.sfp import sfp
from dphh.privacy.path import choose_path
from dphh.privacy.triehh import fixed_size_plan, log10_theta
from dphh.privacy.triehh_discovery import discovery_rate, holders_needed, unit_levels
from dphh.privacy.triehh_votes import Bernoulli, FixedSize, Sampling
from dphh.testing import SeededRandomness
from dphh.udfs.randomness import Randomness

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]

TWEETS = Path(__file__).parents[2] / "shared" / "data"
USERS, QUICK_USERS = 658_769, 40_000
LENGTH = 10  # characters, the end counted
RATE = 0.9
RECALL_EPSILONS = (1.0, 2.0, 4.0, 8.0)
DISCOVERY_EPSILONS = (1.0, 2.0)
#: What the last figure compares at: facts that the path accountant's documentation states too.
BUDGETS = ((1.0, 1e-8), (2.0, 1e-8), (4.0, 2.3e-12))
SFP_EPSILONS, SFP_DELTA, SFP_RUNS = (1.0, 2.0, 4.0), 2.3e-12, 5

# --- the data -------------------------------------------------------------------------------------

MADE_UP = """
CREATE TABLE tweets AS
WITH said AS (
    SELECT
        i // 7 AS user_id,
        floor(pow(30000, hash(i, 'rank') / 18446744073709551616.0))::BIGINT AS rank
    FROM range($people * 7) AS r (i)
)

SELECT
    user_id,
    string_agg(
        left(translate(hash(rank)::VARCHAR, '0123456789', 'etaoinshrd'), 3 + (rank % 7)::INTEGER),
        ' ' ORDER BY rank
    ) AS text
FROM said GROUP BY user_id
"""

SPOKEN = r"""
CREATE TABLE spoken AS
WITH written AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY user_id, text) AS tweet,
        list_transform(
            string_split_regex(lower(text), '\s+'), lambda w: trim(w, $strip)
        ) AS words
    FROM tweets
),

said AS (
    SELECT user_id, tweet, unnest(words) AS word, generate_subscripts(words, 1) AS place
    FROM written
)

SELECT
    dense_rank() OVER (ORDER BY user_id) - 1 AS person,
    word,
    dense_rank() OVER (ORDER BY word) - 1 AS id,
    row_number() OVER (ORDER BY tweet, place) AS moment
FROM said
WHERE regexp_full_match(word, $keep) AND NOT regexp_full_match(word, $drop)
"""

MOST_FREQUENT = """
WITH counted AS (
    SELECT person, id, count(*) AS times, min(moment) AS moment FROM spoken GROUP BY person, id
)

SELECT person, first(id ORDER BY times DESC, moment) AS id
FROM counted GROUP BY person ORDER BY person
"""


@dataclass(frozen=True)
class Population:
    """People and what they wrote; users are people drawn with replacement."""

    words: list[str]  # sorted
    person: Integers  # by user
    favourite: Integers  # word by person
    first: Integers  # by person, where its words begin in `spoken`
    size: Integers  # by person, how many they are
    spoken: Integers

    @property
    def users(self) -> int:
        return len(self.person)

    @cached_property
    def single(self) -> Integers:
        """The most frequent word of each user, users in the order of their words."""
        return np.sort(self.favourite[self.person])

    def several(self, randomness: Randomness) -> Integers:
        """A word a user, drawn in proportion to how often the user says it."""
        halves = randomness.words(-(-self.users // 2), "word of the run").view(np.uint32)
        size = self._size_by_user
        chosen = (halves[: self.users] * size) >> np.uint64(32)
        drawn: Integers = self.spoken[self._first_by_user + chosen.astype(np.int64)]
        return drawn

    @cached_property
    def _size_by_user(self) -> NDArray[np.uint64]:
        return self.size[self.person].astype(np.uint64)

    @cached_property
    def _first_by_user(self) -> Integers:
        first: Integers = self.first[self.person]
        return first

    @cached_property
    def single_counts(self) -> Floats:
        return np.bincount(self.single, minlength=len(self.words)).astype(np.float64)

    @cached_property
    def expected_counts(self) -> Floats:
        """n F(w): users, each divided among its words."""
        people = np.bincount(self.person, minlength=len(self.size))
        share = np.repeat(people / self.size, self.size)
        counts = np.bincount(self.spoken, weights=share, minlength=len(self.words))
        return counts.astype(np.float64)


def load(folder: Path, users: int, people: int) -> tuple[Population, str]:
    path = folder / "tweets.parquet"
    with duckdb.connect() as con:
        if path.exists():
            con.read_parquet(str(path)).to_table("tweets")
            said = str(path)
        else:
            con.execute(MADE_UP, {"people": people})
            said = f"a corpus made up of {people:,} people (no {path})"
        con.execute(SPOKEN, {name: TRIEHH_WORDS[name] for name in ("strip", "keep", "drop")})
        words = [w for (w,) in con.sql("SELECT DISTINCT word FROM spoken ORDER BY word").fetchall()]
        spoken = _column(con, "SELECT id AS x FROM spoken ORDER BY person, moment")
        size = _column(con, "SELECT count(*) AS x FROM spoken GROUP BY person ORDER BY person")
        favourite = _column(con, f"SELECT id AS x FROM ({MOST_FREQUENT}) ORDER BY person")
        person = _column(
            con,
            f"SELECT (hash(i, 'draw') % {len(size)})::BIGINT AS x FROM range({users}) AS r (i) "
            "ORDER BY i",
        )
    return Population(words, person, favourite, np.cumsum(size) - size, size, spoken), said


def _column(con: duckdb.DuckDBPyConnection, query: str) -> Integers:
    column: Integers = np.asarray(con.execute(query).fetchnumpy()["x"], dtype=np.int64)
    return column


# --- runs -----------------------------------------------------------------------------------------


class Trie:
    """All words, cut into units: the node of each word at each level, 0 for none."""

    def __init__(self, words: Sequence[str], unit: int = 1) -> None:
        self.levels = unit_levels(LENGTH, unit)
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
        """Users by node; none for node 0."""
        voters = []
        for node, size in zip(self.nodes, self.sizes, strict=True):
            k = np.bincount(node, weights=counts, minlength=size).astype(np.int64)
            k[0] = 0
            voters.append(k)
        return voters

    def found(self, passed: Iterable[Bits], among: Integers) -> Integers:
        """The words that reached their end, of those that could."""
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
            coins = self.randomness.words(len(open_ones), "path votes")
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
        """Users one after the other, those drawn before left out, until the batch is full.

        No round draws more than are missing, so where rounds end does not matter.
        """
        parts: list[Integers] = []
        missing = self.batch
        while missing:
            halves = self.randomness.words(-(-missing // 2), "batch").view(np.uint32)[:missing]
            largest = (1 << 32) // self.users * self.users
            users = (halves[halves < largest] % np.uint32(self.users)).astype(np.int64)
            users = users[~self.drawn[users]]
            order = np.arange(len(users))
            self.winner[users] = order
            users = users[self.winner[users] == order]  # each once
            self.drawn[users] = True
            parts.append(users)
            missing -= len(users)
        batch = np.concatenate(parts)
        self.drawn[batch] = False
        return batch


Way = ByPath | ByPaper


class Simulation:
    """Runs over one population, with its own randomness, and how fast they went."""

    def __init__(self, population: Population, randomness: Randomness) -> None:
        self.population, self.randomness = population, randomness
        self.tries: dict[int, Trie] = {}

    def trie(self, unit: int = 1) -> Trie:
        if unit not in self.tries:
            self.tries[unit] = Trie(self.population.words, unit)
        return self.tries[unit]

    def printed(self, epsilon: float, levels: int = LENGTH) -> ByPaper:
        """The preprint's theta and batch, as its experiments have them."""
        n = self.population.users
        theta = log10_theta(n)
        batch = math.floor(min(-math.expm1(-epsilon / levels) / 10 * n, n / (theta + 1)))
        return ByPaper(n, batch, theta, self.randomness)

    def path(self, epsilon: float, delta: float) -> ByPath:
        chosen = choose_path(epsilon, delta, LENGTH, RATE)
        return ByPath(chosen.p, chosen.theta, self.randomness)

    def paper(self, epsilon: float, delta: float) -> ByPaper:
        plan = fixed_size_plan(self.population.users, epsilon, LENGTH, delta)
        return ByPaper(plan.users, plan.batch, plan.theta, self.randomness)

    def run(self, name: str, way: Way, runs: int, *, several: bool, unit: int = 1) -> Runs:
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
    way: Way
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
        order = top(self.frequency)
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
        rank[top(self.frequency)] = np.arange(len(self.frequency))
        rows = [np.searchsorted(np.sort(rank[found]), ks) for found in self.found]
        return np.array(rows) / ks

    def curve(self) -> tuple[Floats, Floats, Floats]:
        """By frequency, in bins a quarter of a doubling wide: its middle, mean and 95% interval's
        half width for one word's rate."""
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
        worst = needed(self.way, self.trie.levels)
        holders, often = self.frequency[self.findable], self.rates[self.findable] >= RATE
        if not often.any():
            return math.nan, math.nan, worst
        windows = np.convolve(often, np.ones(25), mode="valid") >= 25 * RATE
        typical = math.nan
        if len(windows) and windows[0]:
            first_bad = len(windows) if windows.all() else int(np.argmin(windows))
            typical = float(holders[first_bad + 23])
        return float(holders[often].min()), typical, worst


def needed(way: Way, levels: int) -> int:
    return holders_needed(way.sampling, way.theta, levels, RATE)


def top(frequency: Floats) -> Integers:
    """Words, the most frequent first, equals by the alphabet."""
    return np.argsort(-frequency, kind="stable")


# --- figures and tables ---------------------------------------------------------------------------


class Folder:
    """Where figures and tables go, and what holds."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.verdicts: list[tuple[bool, str]] = []
        out.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, figure: Any) -> None:
        figure.tight_layout()
        figure.savefig(self.out / f"{name}.png", dpi=110)
        plt.close(figure)

    def table(
        self,
        name: str,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        shown: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """All rows as CSV; on the screen those to be shown, or all."""
        with (self.out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        shown = rows if shown is None else shown
        cells = [[_cell(x) for x in row] for row in (header, *shown)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            print("    " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)))
        if len(rows) > len(shown):
            print(f"    {len(rows):,} rows in {name}.csv")

    def check(self, holds: bool, what: str) -> None:
        self.verdicts.append((bool(holds), what))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def axes_of(title: str, x: str, y: str) -> tuple[Any, Any]:
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    _dress(axes, title, x, y)
    return figure, axes


def _dress(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.3)


def discovery(folder: Folder, sim: Simulation, runs: int, *, several: bool) -> None:
    """Figures 5 and 7."""
    number, kind = (7, "several words a user") if several else (5, "one word a user")
    print(f"Figure {number}: discovery rate by frequency, {kind}")
    figure, axes = axes_of(
        f"Figure {number}: how often a word is found, by its frequency\n({kind}, {runs:,} runs)",
        "frequency of the word",
        "discovery rate",
    )
    n, rows, all_runs = sim.population.users, [], []
    for colour, epsilon in zip(COLOURS, DISCOVERY_EPSILONS, strict=False):
        name = f"epsilon {epsilon:g}"
        done = sim.run(name, sim.printed(epsilon), runs, several=several)
        all_runs.append(done)
        middle, mean, half = done.curve()
        axes.plot(middle / n, mean, color=colour, label=f"{name}, mean")
        low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
        axes.fill_between(middle / n, low, high, color=colour, alpha=0.2)
        share, rates = done.frequency[done.findable] / n, done.rates[done.findable]
        axes.plot(share, rates, ".", color=colour, markersize=2, alpha=0.4)
        if not several:
            axes.plot(share, done.bound, "--", color=colour, label=f"{name}, worst case")
        for word, f, r, b in zip(done.findable.tolist(), share, rates, done.bound, strict=True):
            rows.append((epsilon, sim.population.words[word], float(f), float(r), float(b)))
        if not several:
            error = np.sqrt(np.maximum(done.bound * (1 - done.bound), 1e-4) / runs)
            below = int(np.sum(rates < done.bound - 4.5 * error))
            gap = float(np.max(rates - done.bound))
            folder.check(
                below == 0 and gap > 0.1,
                f"Figure 5, {name}: {below} of {len(rates):,} words below the bound; "
                f"shared prefixes lift a word by up to {gap:.2f}",
            )
    common = all_runs[1].findable
    more = float(np.mean(all_runs[1].rates[common] - all_runs[0].rates[common]))
    folder.check(more > 0, f"Figure {number}: larger epsilon finds more (on average {more:+.4f})")
    axes.set_xscale("log")
    dots = Line2D([], [], color="0.5", marker=".", linestyle="", label="dots: one word each")
    drawn, _ = axes.get_legend_handles_labels()
    axes.legend(handles=[*drawn, band("band: 95% of the words"), dots], fontsize=8)
    folder.save(f"figure-{number:02d}", figure)
    header = ("epsilon", "word", "frequency", "rate", "worst case")
    folder.table(f"figure-{number:02d}", header, rows, rows[:5])


def recalls(folder: Folder, sim: Simulation, runs: int) -> None:
    """Figures 6 and 8."""
    ks = np.arange(10, 501, 10)
    at: dict[tuple[int, float], Floats] = {}
    long: dict[int, Bits] = {}  # by rank: words of more letters than the levels reach
    for number, several in ((6, False), (8, True)):
        kind = "several words a user" if several else "one word a user"
        print(f"Figure {number}: recall of the top K, {kind}")
        title = f"Figure {number}: how many of the K most frequent words are found"
        figure, axes = axes_of(f"{title}\n({kind}, {runs} runs)", "K", "recall of the top K")
        rows = []
        for colour, epsilon in zip(COLOURS, RECALL_EPSILONS, strict=False):
            name = f"epsilon {epsilon:g}"
            done = sim.run(name, sim.printed(epsilon), runs, several=several)
            recall = done.recall(ks)
            at[number, epsilon] = recall.mean(axis=0)
            long[number] = done.trie.steps[top(done.frequency)] > done.trie.levels
            rows += _recall_curve(axes, ks, recall, colour, name, (epsilon,))
        _legend_of_bands(axes)
        folder.save(f"figure-{number:02d}", figure)
        shown = [row for row in rows if row[1] in (50, 100, 250, 350, 500)]
        folder.table(f"figure-{number:02d}", ("epsilon", "K", "recall", "sd"), rows, shown)
        means = [float(at[number, epsilon].mean()) for epsilon in RECALL_EPSILONS]
        folder.check(
            all(a < b for a, b in pairwise(means)),
            f"Figure {number}: recall grows with epsilon",
        )
    for number, k in ((6, 250), (8, 350)):
        column = int(np.flatnonzero(ks == k)[0])
        four, eight = (float(at[number, epsilon][column]) for epsilon in (4.0, 8.0))
        beyond = int(long[number][:k].sum())
        folder.check(
            eight > 0.95 * (1 - beyond / k),
            f"Figure {number}: the top {k} recalled at nearly 1 with a single-digit epsilon "
            f"({four:.3f} at 4, {eight:.3f} at 8; too long to be found: {beyond})",
        )
    better = float(np.mean([at[8, e].mean() - at[6, e].mean() for e in RECALL_EPSILONS]))
    folder.check(better > 0, f"Figure 8 over 6: several words recall better ({better:+.3f})")


def _recall_curve(
    axes: Any, ks: Integers, recall: Floats, colour: str, name: str, key: tuple[object, ...]
) -> list[tuple[Any, ...]]:
    mean, spread = recall.mean(axis=0), recall.std(axis=0)
    axes.plot(ks, mean, color=colour, label=name)
    axes.fill_between(ks, mean - 1.96 * spread, mean + 1.96 * spread, color=colour, alpha=0.2)
    return [(*key, int(k), float(m), float(s)) for k, m, s in zip(ks, mean, spread, strict=True)]


def _legend_of_bands(axes: Any) -> None:
    drawn, _ = axes.get_legend_handles_labels()
    axes.legend(handles=[*drawn, band("band: 95% of the runs")], fontsize=8)


def units(folder: Folder, sim: Simulation, runs: int) -> None:
    """Figure 9."""
    print("Figure 9: unit sizes, several words a user, epsilon 2")
    ks = np.arange(10, 501, 10)
    title = "Figure 9: how many of the K most frequent words are found, by the unit"
    figure, axes = axes_of(f"{title}\n(epsilon 2, {runs} runs)", "K", "recall of the top K")
    rows, means = [], []
    for colour, unit in zip(COLOURS, (1, 2, 3, 4), strict=False):
        levels = unit_levels(LENGTH, unit)
        way = sim.printed(2.0, levels)
        done = sim.run(f"unit {unit}", way, runs, several=True, unit=unit)
        recall = done.recall(ks)
        means.append(float(recall.mean()))
        name = f"unit {unit} (L = {levels}, m = {way.batch:,})"
        rows += _recall_curve(axes, ks, recall, colour, name, (unit, levels, way.batch))
    _legend_of_bands(axes)
    folder.save("figure-09", figure)
    header = ("unit", "levels", "batch", "K", "recall", "sd")
    folder.table("figure-09", header, rows, [row for row in rows if row[3] in (100, 250, 500)])
    gains = [b - a for a, b in pairwise(means)]
    said = ", ".join(f"{gain:+.3f}" for gain in gains)
    folder.check(min(gains) > -0.005, f"Figure 9: larger units recall no less ({said})")
    folder.check(
        gains[0] == max(gains), f"Figure 9: the first doubling gains most, then less ({said})"
    )


def against_sfp(
    folder: Folder, sim: Simulation, runs: int, functions: int, epsilons: Sequence[float]
) -> None:
    """F1 as the harmonic mean of precision (reported words that somebody holds) and recall (of the
    top K)."""
    print("TrieHH and SFP, one word a user")
    people, ks = sim.population, np.arange(10, 501, 10)
    held = [people.words[i] for i in people.single.tolist()]
    counts = people.single_counts
    number = {word: i for i, word in enumerate(people.words)}
    rank = np.empty(len(counts), dtype=np.int64)
    rank[top(counts)] = np.arange(len(counts))
    rows: list[tuple[Any, ...]] = []
    best: dict[tuple[str, float], float] = {}
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.2))
    for epsilon in epsilons:
        results: list[tuple[str, float, float, Floats]] = []
        for name, way in (
            ("TrieHH, path", sim.path(epsilon, SFP_DELTA)),
            ("TrieHH, paper", sim.paper(epsilon, SFP_DELTA)),
        ):
            done = sim.run(f"{name}, epsilon {epsilon:g}", way, runs, several=False)
            real = [float(np.mean(counts[f] > 0)) if len(f) else 1.0 for f in done.found]
            size = float(np.mean([len(f) for f in done.found]))
            results.append((name, size, float(np.mean(real)), done.recall(ks).mean(axis=0)))
        for threshold in (20, 80):
            started = time.perf_counter()
            reported, true, hits = 0, 0, np.zeros(len(ks))
            for _ in range(SFP_RUNS):
                result = sfp(
                    held,
                    epsilon=epsilon,
                    delta=SFP_DELTA,
                    threshold=threshold,
                    functions=functions,
                    randomness=sim.randomness,
                )
                ids = [number[word] for word in result.words if word in number]
                real_ids = np.array([i for i in ids if counts[i] > 0], dtype=np.int64)
                reported, true = reported + len(result.words), true + len(real_ids)
                hits += np.searchsorted(np.sort(rank[real_ids]), ks) / ks
            precision = true / reported if reported else 1.0
            name = f"SFP, T = {threshold}"
            results.append((name, reported / SFP_RUNS, precision, hits / SFP_RUNS))
            took = time.perf_counter() - started
            print(
                f"    {name}, epsilon {epsilon:g}: local epsilon {result.local_epsilon:.3f}, "
                f"{SFP_RUNS} runs in {took:.1f} s"
            )
        styles = zip(COLOURS, ("-", "--", ":", "-."), strict=False)  # where they lie on one another
        for (colour, style), (name, size, precision, recall) in zip(styles, results, strict=False):
            f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
            best[name, epsilon] = float(f1.mean())
            for k, r, f in zip(ks.tolist(), recall, f1, strict=True):
                rows.append((epsilon, name, size, precision, k, float(r), float(f)))
            if epsilon == epsilons[-1]:
                for panel, values in zip(
                    panels, (np.full(len(ks), precision), recall, f1), strict=True
                ):
                    panel.plot(ks, values, style, color=colour, lw=2, label=name)
    for panel, what in zip(panels, ("precision", "recall of the top K", "F1"), strict=True):
        _dress(panel, what[0].upper() + what[1:], "K", what)
    figure.suptitle(
        f"TrieHH beside the sketch SFP, epsilon {epsilons[-1]:g}, delta {SFP_DELTA:g}", fontsize=11
    )
    panels[0].legend(fontsize=8)
    folder.save("figure-sfp", figure)
    header = ("epsilon", "method", "reported", "precision", "K", "recall", "F1")
    folder.table("figure-sfp", header, rows, [row for row in rows if row[4] in (50, 100, 250)])
    for epsilon in epsilons:
        mine = best["TrieHH, paper", epsilon]
        other = max(best["SFP, T = 20", epsilon], best["SFP, T = 80", epsilon])
        folder.check(
            mine > other,
            f"SFP, epsilon {epsilon:g}: F1 averaged over K {best['TrieHH, path', epsilon]:.3f} "
            f"(path), {mine:.3f} (paper), {other:.3f} (the better SFP)",
        )


def _users(found: float) -> str:
    return "no word" if math.isnan(found) else f"{found:,.0f} users"


def _times(ratio: float) -> str:
    return "not to be told how much" if math.isnan(ratio) else f"{ratio:.1f} times"


def path_and_paper(folder: Folder, sim: Simulation, runs: int) -> None:
    """The new figure."""
    print("Path and paper at equal (epsilon, delta), one word a user")
    figure, panels = plt.subplots(1, len(BUDGETS), figsize=(15, 4.4), sharey=True)
    rows: list[tuple[Any, ...]] = []
    for panel, (epsilon, delta) in zip(panels, BUDGETS, strict=True):
        rarest = {}
        ways: tuple[Way, Way] = sim.path(epsilon, delta), sim.paper(epsilon, delta)
        for colour, name, way in zip(COLOURS, ("path", "paper"), ways, strict=False):
            done = sim.run(f"{name} ({epsilon:g}, {delta:g})", way, runs, several=False)
            holders = done.frequency[done.findable]
            panel.plot(holders, done.rates[done.findable], ".", color=colour, markersize=2)
            panel.plot(holders, done.bound, "--", color=colour, linewidth=1)
            rarest[name] = done.rarest()
            label = f"{name}: {_users(rarest[name][0])}"
            panel.axvline(rarest[name][0], color=colour, linewidth=1, label=label)
            chance = way.sampling.chance
            rows.append(
                (
                    *(epsilon, delta, name, way.theta, float(chance)),
                    *(float(np.mean([len(f) for f in done.found])), *rarest[name]),
                )
            )
        ratios = [b / a for a, b in zip(rarest["path"], rarest["paper"], strict=True)]
        rarer, typically, at_worst = (_times(ratio) for ratio in ratios)
        folder.check(
            min(ratios[0], ratios[2]) >= 10,
            f"path against paper at ({epsilon:g}, {delta:g}): the rarest word found with "
            f"probability 0.9 is {rarer} rarer, 10 to 20 expected ({_users(rarest['path'][0])} "
            f"against {_users(rarest['paper'][0])}); where nine words in ten are, {typically}; in "
            f"the worst case {at_worst} ({rarest['path'][2]:,} against {rarest['paper'][2]:,})",
        )
        _dress(panel, f"epsilon {epsilon:g}, delta {delta:g}", "users who hold the word", "")
        panel.set_xscale("log")
        panel.legend(fontsize=8, title="rarest found 9 times in 10", title_fontsize=8)
    panels[0].set_ylabel("discovery rate (dashed: worst case)")
    figure.suptitle(
        "How often a word is found, by how many hold it: the path accounting and the paper's "
        "(dots: one word each; dashed: worst case)",
        fontsize=11,
    )
    folder.save("figure-path", figure)
    header = ("epsilon", "delta", "accounting", "theta", "rate", "words", "rarest word")
    folder.table("figure-path", (*header, "nine in ten", "worst case"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=TWEETS, help="folder with tweets.parquet")
    parser.add_argument("--out", type=Path, default=Path("triehh-experiments"))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument(
        "--quick", action="store_true", help="40,000 users, 20 runs, a small sketch"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.perf_counter()
    quick = options.quick
    people, said = load(options.data, QUICK_USERS if quick else USERS, 4_000 if quick else 46_000)
    runs = min(options.runs, 20) if quick else options.runs
    few = max(2, min(runs // 2, 100))
    print(f"{people.users:,} users, {len(people.words):,} words, {said}")
    leaders = top(people.single_counts)[:5]
    shares = [f"{people.words[i]} {people.single_counts[i] / people.users:.4f}" for i in leaders]
    print(f"    most frequent: {', '.join(shares)}")
    folder = Folder(options.out)
    sim = Simulation(people, SeededRandomness(options.seed))
    discovery(folder, sim, runs, several=False)
    discovery(folder, sim, runs, several=True)
    recalls(folder, sim, few)
    units(folder, sim, few)
    path_and_paper(folder, sim, runs)
    against_sfp(folder, sim, few, *((64, (4.0,)) if quick else (2048, SFP_EPSILONS)))
    print("Do the papers' shapes hold?")
    otherwise = "does not show in so few runs" if quick else "FAILS"
    for holds, what in folder.verdicts:
        print(f"    {'holds' if holds else otherwise}: {what}")
    print(f"{time.perf_counter() - started:.0f} s in all; figures and tables in {folder.out}")


if __name__ == "__main__":
    main()
