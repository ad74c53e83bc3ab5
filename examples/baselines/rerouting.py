"""One round of a set union in which popular items give their excess back: for comparison.

    python examples/baselines/rerouting.py [--data ../shared/data]

A user of t items adds 1/sqrt(t) to each, as in "gaussian"; of that, 1/t is *open* if t <= D. Let
W_k be the sum of what is open at an item k. If W_k > tau, the part 1 - tau / W_k of it goes back to
the users whom it came from, each in proportion to what the user had open there. A user divides what
came back by alpha, and adds that much to each of the user's items.

*L2 sensitivity.* It is 1 if alpha = max(2, D / (1 - 1 / (2 sqrt(D)))). Proof. Let u come, of t = d
items; if d > D, u adds 1/sqrt(d) to each and nothing else. Else each W_k of u's items grows by 1/d,
of which x_k in [0, 1/d] is more excess; with X = sum x_k, all users together get back X more, and
no user less. A user has at most D items, so what comes back adds y >= 0 with sum y <= X D / alpha
and y_k <= X / alpha. The change is 1/sqrt(d) - x_k + y_k at u's items and y_k at others. Its square
is convex in x, and in y, so the largest is where m of the x_k are 1/d, others 0, and y_k is X /
alpha at u's d items and at D - d others. There it is 1 + (m / d^2) g with

    g = 1 - 2 sqrt(d) (1 - d / alpha) - (m / alpha) (2 - D / alpha).

The last term is positive as alpha >= D. sqrt(d) (1 - d / alpha) is concave in sqrt(d), and at d = 1
and at d = D it is at least 1/2 by the choice of alpha. So g <= 0. QED. (alpha = D is not enough:
then the square is up to 1 + 1 / 4D.) New items, n of them, get equal weights, of an L2 norm of at
most 1, if tau >= 1, as 1/t alone is no excess. So the threshold of "gaussian" covers them. (Here it
has the joint price of "gaussian" too, which is not proved for it: what it finds is no less.)

The idea is that of the abstract of arXiv 2502.08878, whose text could not be had here: this is not
its authors' algorithm, and says nothing of what that finds.
"""

from __future__ import annotations

import argparse
import re
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphh import items

DATA = Path(__file__).parents[2].parent / "shared/data"


def least_alpha(most_open: int) -> float:
    """The divisor with which the L2 sensitivity is 1."""
    return max(2.0, most_open / (1 - 1 / (2 * sqrt(most_open))))


def rerouted_sums(
    user: NDArray[Any], item: NDArray[Any], tau: float, most_open: int, alpha: float | None = None
) -> NDArray[Any]:
    """The sum of each item, before noise, of distinct pairs of a user and an item. `most_open`: D;
    with 0 nothing is rerouted."""
    alpha = alpha or least_alpha(max(most_open, 1))
    held = np.bincount(user)[user]
    is_open = np.where(held <= most_open, 1 / held, 0.0)
    at_items = np.bincount(item, is_open)
    back = np.maximum(1 - tau / np.maximum(at_items, tau), 0)
    again = np.where(held <= most_open, np.bincount(user, is_open * back[item])[user] / alpha, 0.0)
    sums: NDArray[Any] = np.bincount(item, 1 / np.sqrt(held) + again) - at_items * back
    return sums


def pairs(frame: pl.DataFrame) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distinct pairs of a user and a word of the column `text`, both numbered."""
    held = frame.select("user_id", item=pl.col("text").list.unique()).explode("item").drop_nulls()
    user, item = (held[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in held.columns)
    return user, item


def drawn(exponent: float, kinds: int, each: int, users: int = 50_000) -> pl.DataFrame:
    rates = np.arange(1.0, kinds + 1) ** -exponent
    found = np.random.default_rng(11).choice(kinds, (users, each), p=rates / rates.sum())
    return pl.DataFrame({"user_id": np.arange(users), "text": found.tolist()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    corpora = {"flat": drawn(0, 20_000, 10), "Zipf 1": drawn(1, 200_000, 20)}
    if (path := parser.parse_args().data / "tweets.parquet").exists():
        tweets = pl.read_parquet(path)
        words = [re.findall("[a-z0-9']+", text.lower()) for text in tweets["text"]]
        corpora["tweets"] = tweets.select("user_id", text=pl.Series(words))
    rng = np.random.default_rng(1)
    for name, frame in corpora.items():
        user, item = pairs(frame)
        for epsilon, delta in ((1.0, 1e-5), (3.0, exp(-10))):
            plan = items(epsilon=epsilon, delta=delta, max_items=100, method="gaussian", counts=0)
            level: Any = plan.levels[0]
            noise = rng.normal(0, level.sigma, int(item.max()) + 1)
            found = [
                int(
                    (
                        rerouted_sums(user, item, level.threshold, most) + noise >= level.threshold
                    ).sum()
                )
                for most in (0, 10, 20, 50)
            ]
            rerouted = ", ".join(f"{each:,}" for each in found[1:])
            print(
                f"{name}, ({epsilon:g}, {delta:.3g}): one round {found[0]:,}; with D 10, 20 and "
                f"50: {rerouted}",
                flush=True,
            )


if __name__ == "__main__":
    main()
