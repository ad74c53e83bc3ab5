"""How many items each method of `items` finds, on the tweets and on drawn laws; and Spearman's
correlation of their scores with the weights that they estimate.

python -m tests.benchmarks.items_found [--runs N] [--epsilons 0.5,1,2,4 --max-items 3,10,30,100]
    [--users 1000,2800,10000]
"""

import argparse
import math
import re
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from dphh import Corpus, Ledger, items
from dphh.mechanisms.set_union.methods import METHODS

TWEETS = Path(__file__).parents[2].parent / "shared/data/tweets.parquet"
USERS = 50_000
ASKED = ((1.0, 1e-5), (3.0, math.exp(-10)))


def tweets() -> pl.DataFrame:
    frame = pl.read_parquet(TWEETS)
    words = [" ".join(re.findall("[a-z0-9']+", text.lower())) for text in frame["text"]]
    return frame.select("user_id", text=pl.Series(words))


def drawn(exponent: float, kinds: int, each: int) -> pl.DataFrame:
    """So many items a user, by a Zipf law of this exponent."""
    rates = np.arange(1, kinds + 1) ** -exponent
    found = np.random.default_rng(11).choice(kinds, (USERS, each), p=rates / rates.sum())
    texts = [" ".join(map(str, row)) for row in found.tolist()]
    return pl.DataFrame({"user_id": np.arange(USERS), "text": texts})


def weights_of(frame: pl.DataFrame, max_items: int = 100) -> pl.DataFrame:
    """For each item the sum over its holders of 1 / sqrt(items held), without noise."""
    held = frame.select("user_id", item=pl.col("text").str.split(" ")).explode("item").unique()
    each = pl.len().over("user_id").cast(pl.Float64).clip(upper_bound=max_items)
    return held.with_columns(w=each**-0.5).group_by("item").agg(pl.col("w").sum())


def rows_of_some(frame: pl.DataFrame, users: int, seed: int) -> pl.DataFrame:
    """The rows of so many users, drawn by this seed; of all if there are fewer."""
    everybody = frame["user_id"].unique().sort()
    some = everybody.sample(min(users, len(everybody)), seed=seed)
    return frame.filter(pl.col("user_id").is_in(some.implode()))


def measure(
    name: str,
    frame: pl.DataFrame,
    users: int,
    runs: int,
    asked: Sequence[tuple[float, float]],
    max_items: int,
) -> None:
    frames = [rows_of_some(frame, users, run) for run in range(runs)]
    weights = [weights_of(each, max_items) for each in frames]
    for epsilon, delta in asked:
        for method in METHODS:
            if method == "single" and max_items > 1:
                continue
            found, spent, order = [], [], []
            for each, known in zip(frames, weights, strict=True):
                corpus = Corpus(each, user="user_id", text="text", split="white space", lower=False)
                with tempfile.TemporaryDirectory() as folder:
                    start = time.process_time()
                    plan = items(
                        corpus,
                        epsilon=epsilon,
                        delta=delta,
                        max_items=max_items,
                        method=method,
                        counts=0,
                    )
                    release = plan.run(
                        engine="polars",
                        ledger=Ledger(Path(folder) / "ledger.sqlite", create=True),
                        progress=lambda _: None,
                    )
                    spent.append(time.process_time() - start)
                found.append(len(release))
                both = release.to_polars().join(known, on="item")
                if len(both) > 1:
                    order.append(spearmanr(both["score"], both["w"])[0])
            said = f"{name}, {users:,}, {max_items}, ({epsilon:g}, {delta:.3g}), {method}"
            print(
                f"{said:<54}{mean(found):>8,.1f}  {found}  CPU {min(spent):.2f} s"
                f"  scores {mean(order or [0]):.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epsilons", help="in place of the two of docs/items.md; delta 1e-6")
    parser.add_argument("--max-items", default="100")
    parser.add_argument("--users", default=str(USERS), help="drawn anew for each run")
    given = parser.parse_args()
    asked = [(float(e), 1e-6) for e in given.epsilons.split(",")] if given.epsilons else ASKED
    corpora = {"tweets": tweets()} if TWEETS.exists() else {}
    corpora["flat"] = drawn(0.0, 20_000, 10)
    corpora["Zipf 1"] = drawn(1.0, 200_000, 20)
    corpora["Zipf 1.5"] = drawn(1.5, 200_000, 20)
    for name, frame in corpora.items():
        for users, max_items in product(given.users.split(","), given.max_items.split(",")):
            measure(name, frame, int(users), given.runs, asked, int(max_items))


if __name__ == "__main__":
    main()
