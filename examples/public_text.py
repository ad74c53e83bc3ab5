"""What a public text buys `ngrams`, on two corpora made here, whose truth is known.

    python examples/public_text.py [--out FOLDER] [--users 20000] [--runs 3] [--epsilons 0.5,1,2,4]

Writes private.parquet (user, text) and public.parquet (text): sentences of other people, by the
same habits of speech. Words follow one another by a long-tailed law; one word in twenty of the
private sentences is of a list that the public text does not have. Then releases with and without
the public text, by epsilon, and compares them with the exact counts, as the maker of the data may.
Writes found.csv and found.png. Downloads nothing; needs matplotlib for the picture.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import polars as pl

import dphh

WORDS, OWN_WORDS, FOLLOWERS = 20_000, 500, 30
MAX_N, DELTA = 4, 1e-7
PLAIN_WEIGHT, PRIOR = "#999999", "#0072B2"  # Okabe and Ito's: told apart by all eyes


def speech(seed: int) -> np.ndarray:
    """What may follow each word: long-tailed, so that few pairs make most of a text."""
    return long_tailed(np.random.default_rng(seed), WORDS, (WORDS, FOLLOWERS))


def long_tailed(rng: np.random.Generator, most: int, size: tuple[int, ...]) -> np.ndarray:
    """Ranks from 0, P[rank] about 1 / (2 + rank)."""
    ranks = 2 * np.power(1 + most / 2, rng.random(size)) - 2
    return np.minimum(ranks.astype(np.int64), most - 1)


def sentences(rng: np.random.Generator, follow: np.ndarray, many: int, own: float) -> list[str]:
    """Each of 8 words; a share of them is `own`, of words that other people do not say."""
    words = np.empty((many, 8), np.int64)
    words[:, 0] = long_tailed(rng, WORDS, (many,))
    for place in range(1, 8):
        likely = follow[words[:, place - 1], long_tailed(rng, FOLLOWERS, (many,))]
        words[:, place] = np.where(rng.random(many) < 0.8, likely, long_tailed(rng, WORDS, (many,)))
    is_own = rng.random(words.shape) < own
    words[is_own] = WORDS + long_tailed(rng, OWN_WORDS, (int(is_own.sum()),))
    return [" ".join(f"w{word}" for word in sentence) for sentence in words]


def write_corpora(out: Path, users: int) -> None:
    follow = speech(1)
    rng = np.random.default_rng(2)
    user = np.repeat(np.arange(users), 1 + rng.poisson(2, users))
    private = pl.DataFrame({"user": user, "text": sentences(rng, follow, len(user), own=0.05)})
    private.write_parquet(out / "private.parquet")
    public = pl.DataFrame({"text": sentences(rng, follow, 5 * users, own=0.0)})
    public.write_parquet(out / "public.parquet")


def picture(path: Path, epsilons: list[float], found: dict[str, list[float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    labels = {"plain": ("without", PLAIN_WEIGHT), "prior": ("with a public\ntext as prior", PRIOR)}
    for name, (label, colour) in labels.items():
        axes.plot(epsilons, found[name], marker="o", color=colour)
        last = (epsilons[-1], found[name][-1])
        axes.annotate(label, last, (8, 0), textcoords="offset points", va="center", color=colour)
    axes.set(xlabel="epsilon", ylabel="n-grams found that somebody holds", xscale="log")
    axes.set(ylim=(0, None), xlim=(epsilons[0] / 1.1, epsilons[-1] * 1.6))
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("public-text"))
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilons", default="0.5,1,2,4")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    epsilons = [float(each) for each in asked.epsilons.split(",")]

    write_corpora(asked.out, asked.users)
    private = dphh.Corpus(asked.out / "private.parquet", user="user", text="text")
    truth = dphh.exact_ngrams(private, max_n=MAX_N)
    known = {
        "plain": {},
        "prior": {
            "prior": asked.out / "public.parquet",
            "prior_text": "text",
            "prior_is_public": True,
        },
    }
    rows: list[list[float | str]] = []
    found: dict[str, list[float]] = {name: [] for name in known}
    for epsilon in epsilons:
        for name, prior in known.items():
            plan = dphh.ngrams(
                private, max_n=MAX_N, epsilon=epsilon, delta=DELTA, max_items=30, counts=0, **prior
            )
            true, spurious = np.zeros(MAX_N), 0
            book = dphh.Ledger(asked.out / "ledger.sqlite", create=True)
            for _ in range(asked.runs):
                release = plan.run(ledger=book, again=True)
                levels = dphh.evaluate(release, truth)
                true += levels["true"].to_numpy()
                spurious += (levels["released"] - levels["true"]).sum()
            true /= asked.runs
            found[name].append(true.sum())
            rows.append([epsilon, name, *true, true.sum(), spurious / asked.runs])
            by_length = ", ".join(f"{each:,.0f}" for each in true)
            print(f"epsilon {epsilon:g}, {name}: {true.sum():,.0f} found, by length {by_length}")
    with (asked.out / "found.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                [
                    "epsilon",
                    "run",
                    *(f"length {n}" for n in range(1, MAX_N + 1)),
                    "all",
                    "held by nobody",
                ],
                *rows,
            ]
        )
    picture(asked.out / "found.png", epsilons, found)


if __name__ == "__main__":
    main()
