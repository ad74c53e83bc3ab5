"""What one round and what several find on corpora where the look of "auto" sees little: by a
simulation in NumPy with the numbers of the plans, in floats, and means of 20 draws of noise.

python -m tests.benchmarks.choice
"""

from math import exp
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphh import items
from dphh.mechanisms.set_union.levels import SetUnionLevel
from tests.benchmarks.items_found import TWEETS, tweets

MAX_ITEMS, RUNS = 100, 20
#: For each user and item held, both numbered.
Pairs = tuple[NDArray[Any], NDArray[Any]]


def distinct(user: Any, item: Any) -> Pairs:
    kinds = int(item.max()) + 1
    held = np.unique(user.astype(np.int64) * kinds + item)
    return held // kinds, np.unique(held % kinds, return_inverse=True)[1]


def drawn(users: int, each: int, kinds: int, exponent: float = 0.0) -> Pairs:
    rates = np.arange(1.0, kinds + 1) ** -exponent
    found = np.random.default_rng(11).choice(kinds, users * each, p=rates / rates.sum())
    return distinct(np.repeat(np.arange(users), each), found)


def pairs_of_words() -> Pairs:
    words = tweets().with_columns(pl.col("text").str.split(" "))
    rows = words.filter(pl.col("text").list.len() > 1).explode("text").with_row_index("at")
    after = pl.col("text").shift(-1).over("user_id")
    found = rows.select("user_id", pair=pl.concat_str("text", after, separator=" ")).drop_nulls()
    return distinct(*(found[name].rank("dense").to_numpy() - 1 for name in found.columns))


def found_by(levels: Any, pairs: Pairs, seed: int) -> int:
    """By rounds whose weights follow earlier ones; or by one round."""
    user, item = pairs
    rng, kinds = np.random.default_rng(seed), int(item.max()) + 1
    found, sums, precision = np.zeros(kinds, bool), np.zeros(kinds), 0.0
    for level in levels:
        left = ~found[item]
        holder, held, w = user[left], item[left], np.ones(kinds)
        if precision:
            z = np.maximum((sums / precision + precision**-0.5) / level.threshold, 1e-9)
            w = np.clip(np.where(z < 1, z**0.75, z**-0.5), 0.05, 1)
        order = np.lexsort((rng.random(len(held)), -w[held], holder))
        holder, held = holder[order], held[order]
        first = np.searchsorted(holder, holder)
        kept = np.arange(len(holder)) - first < MAX_ITEMS
        holder, held = holder[kept], held[kept]
        norm = np.sqrt(np.bincount(holder, w[held] ** 2))
        noisy = np.bincount(held, w[held] / norm[holder], kinds) + rng.normal(0, level.sigma, kinds)
        found |= (np.bincount(held, minlength=kinds) > 0) & (noisy >= level.threshold)
        sums, precision = sums + noisy / level.sigma**2, precision + level.sigma**-2
    return int(found.sum())


def main() -> None:
    corpora = {
        "5,000 users, flat of 720": (drawn(5_000, 10, 720), 1.0, 1e-5),
        "5,000 users, flat of 2,000": (drawn(5_000, 10, 2_000), 3.0, exp(-10)),
        "2,000 users, long texts": (drawn(2_000, 2_000, 200_000, 1.0), 1.0, 1e-5),
    }
    if TWEETS.exists():
        corpora["pairs of words of the tweets"] = pairs_of_words(), 1.0, 1e-5
    for name, (pairs, epsilon, delta) in corpora.items():
        said = []
        for method in ("gaussian", "adaptive"):
            plan = items(epsilon=epsilon, delta=delta, max_items=MAX_ITEMS, method=method, counts=0)
            levels = [level for level in plan.levels if isinstance(level, SetUnionLevel)]
            said.append(np.mean([found_by(levels, pairs, seed) for seed in range(RUNS)]))
        print(f"{name}, ({epsilon:g}, {delta:.3g}): {said[0]:,.0f}, {said[1]:,.0f}", flush=True)


if __name__ == "__main__":
    main()
