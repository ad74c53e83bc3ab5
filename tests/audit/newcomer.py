"""The attack that broke round 2 of the forecast ladder until November 2026, to be run by hand.

    python -m tests.audit.newcomer 3000               level 2 alone, so many trials, minutes
    python -m tests.audit.newcomer 6 --product        whole runs of the product, from files

Many users hold all pairs of 40 words, more than a user at this epsilon gives any weight to in round
1; a newcomer holds one pair. In each trial that pair is another: how often it is released with the
newcomer, and without, where all pairs are alike. Before, it was 96 times of 300 with the newcomer
and 93 of 480,000 without: e^7 where e^0.02 was promised.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from dphh import Corpus, ngrams
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.climb import begun
from dphh.mechanisms.ngrams.forecast.price import budget_of, words_rounds
from dphh.mechanisms.ngrams.ladder.rungs import PAIR, Integers
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.kernel.contributions import contributions
from tests.forecast.rounds_in_arrays import Rule, TwoRounds

EPSILON, DELTA, MAX_N, MAX_ITEMS = 0.02, 1e-6, 2, 40
WORDS = [f"w{number:02}" for number in range(40)]
PAIRS = np.array([a << PAIR | b for a in range(40) for b in range(40)], dtype=np.int64)
#: Users of one word each, so that all words are found.
SHORT = 100_000
#: Which pairs a level of one trial released, with a newcomer of this pair or (None) without.
Released = Callable[[int | None], Integers]


def level_alone(long: int) -> Released:
    budget = budget_of(EPSILON, DELTA, MAX_N, MAX_ITEMS, Counting())
    grid = words_rounds(budget, MAX_N, MAX_ITEMS)[0].sigma_grid
    masses = np.full(len(WORDS), long / len(WORDS) ** 0.5)
    start = begun(len(WORDS), masses, 1 - 1 / MAX_N, MAX_N, 1 / budget.sigma, 0.01, grid)
    step = start.step()

    def released(newcomer: int | None) -> Integers:
        def sums(rule: Rule) -> tuple[Integers, Integers]:
            keys, weights = _added(PAIRS, rule)
            found = dict(zip(keys.tolist(), (weights * long).tolist(), strict=True))
            if newcomer is not None:
                more = _added(PAIRS[newcomer : newcomer + 1], rule)
                for key, weight in zip(*(column.tolist() for column in more), strict=True):
                    found[key] = found.get(key, 0) + weight
            return np.array([*found], np.int64), np.array([*found.values()], np.int64)

        keys = step.run(TwoRounds(sums, SystemRandomness(), "audit")).keys
        return np.searchsorted(PAIRS, keys)

    return released


def _added(held: Integers, rule: Rule) -> tuple[Integers, Integers]:
    return contributions(np.zeros(1, np.int64), np.array([len(held)]), held, rule)


def product(long: int, folder: Path) -> Released:
    text = " ".join(WORDS[number] for number in tour(len(WORDS)))
    users = [f"long {number}" for number in range(long)]
    short = [f"short {number}" for number in range(SHORT)]
    single = [WORDS[number % len(WORDS)] for number in range(SHORT)]
    others = pl.DataFrame({"who": users + short, "what": [text] * long + single})

    def released(newcomer: int | None) -> Integers:
        rows = others
        if newcomer is not None:
            pair = f"{WORDS[newcomer // len(WORDS)]} {WORDS[newcomer % len(WORDS)]}"
            rows = pl.concat([others, pl.DataFrame({"who": ["new"], "what": [pair]})])
        rows.write_parquet(folder / "corpus.parquet")
        corpus = Corpus(folder / "corpus.parquet", user="who", text="what")
        plan = ngrams(corpus, max_n=MAX_N, epsilon=EPSILON, delta=DELTA, max_items=MAX_ITEMS)
        found = plan.run(ledger=folder / "ledger.db", again=True)
        spelled = [row["tokens"] for row in found if row["level"] == MAX_N]
        number = {word: place for place, word in enumerate(WORDS)}
        return np.array([number[a] * len(WORDS) + number[b] for a, b in spelled], np.int64)

    return released


def tour(words: int) -> list[int]:
    """Each pair of words side by side, once (Hierholzer)."""
    left = [[*range(words)] for _ in range(words)]
    stack, found = [0], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            found.append(stack.pop())
    return found


def attack(released: Released, trials: int) -> str:
    rng = np.random.default_rng()
    hits = others = without = 0
    for _ in range(trials):
        newcomer = int(rng.integers(len(PAIRS)))
        found = released(newcomer)
        hit = int(newcomer in found)
        hits, others = hits + hit, others + len(found) - hit
        without += len(released(None))
    least = max(hits, 1)
    ratio = log(least / trials) - log(max(without, 1) / (trials * len(PAIRS)))
    return (
        f"the newcomer's pair: {hits} of {trials}; other pairs beside it: {others} of "
        f"{trials * (len(PAIRS) - 1):,}; a pair without the newcomer: {without} of "
        f"{trials * len(PAIRS):,}; log ratio {ratio:.2f} (+-{least**-0.5:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.newcomer")
    parser.add_argument("trials", type=int)
    parser.add_argument("--long", type=int, default=5_000, help="users who hold all pairs")
    parser.add_argument("--product", action="store_true")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        released = product(asked.long, Path(folder)) if asked.product else level_alone(asked.long)
        print(attack(released, asked.trials))


if __name__ == "__main__":
    main()
