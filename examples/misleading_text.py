"""What a public text costs `ngrams` where it misleads: backwards, shuffled, in another language.

    python examples/misleading_text.py [TEXTS.parquet] [--runs 3] [--epsilons 4,1]

TEXTS.parquet has the columns user_id and text: every second user is private, the others' texts are
the public one. Without it (the tweets that the documentation measures are not given away) the
corpora of `public_text.py` are made. Compares each release with the exact counts, as only the maker
of the data may, and prints a table. Downloads nothing.
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from public_text import write_corpora

import dphh

MAX_N, DELTA = 5, 1e-7
Words = list[list[str]]


def halves(texts: Path | None, folder: Path) -> tuple[Path, Words]:
    """Where the private half lies, and the public texts as words."""
    if texts is None:
        write_corpora(folder, 10_000)
        private = pl.read_parquet(folder / "private.parquet").rename({"user": "user_id"})
        public = pl.read_parquet(folder / "public.parquet")
    else:
        read = pl.read_parquet(texts).with_columns(
            pl.col("user_id").rank("dense").cast(pl.Int64) % 2 == 0,
            words=pl.col("text").str.to_lowercase().str.extract_all("[a-z0-9']+").list.join(" "),
            who="user_id",
        )
        read = read.select("who", text="words", is_private="user_id")
        private = read.filter("is_private").select("text", user_id="who")
        public = read.filter(~pl.col("is_private")).select("text")
    private.write_parquet(folder / "half.parquet")
    return folder / "half.parquet", [text.split() for text in public["text"]]


def shuffled(texts: Words) -> Words:
    """All words in another order, over all texts."""
    words = [word for text in texts for word in text]
    random.Random(1).shuffle(words)
    following = iter(words)
    return [[next(following) for _ in text] for text in texts]


def in_another_language(texts: Words) -> Words:
    """By a permutation of the letters: a few short words are words all the same."""
    letters = list(string.ascii_lowercase)
    random.Random(1).shuffle(letters)
    table = str.maketrans(string.ascii_lowercase, "".join(letters))
    return [[word.translate(table) for word in text] for text in texts]


READ: dict[str, Callable[[Words], Words]] = {
    "as it is": lambda texts: texts,
    "backwards": lambda texts: [text[::-1] for text in texts],
    "its words shuffled": shuffled,
    "in another language": in_another_language,
    "no word in common": lambda texts: [[f"{word}_" for word in text] for text in texts],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilons", default="4,1")
    asked = parser.parse_args()
    if asked.texts is None:
        print("no texts were given: on corpora that are made here")
    with TemporaryDirectory() as made:
        folder = Path(made)
        private, public = halves(asked.texts, folder)
        corpus = dphh.Corpus(private, user="user_id", text="text", split="white space", lower=False)
        truth = dphh.exact_ngrams(corpus, max_n=MAX_N)
        book = dphh.Ledger(folder / "ledger.sqlite", create=True)
        for epsilon in map(float, asked.epsilons.split(",")):
            print(f"\n| public text, epsilon {epsilon:g} | found | by length | held by nobody |")
            print("|---|---|---|---|")
            for name in ("none", *READ):
                prior = {}
                if name != "none":
                    texts = [" ".join(text) for text in READ[name](public)]
                    pl.DataFrame({"text": texts}).write_parquet(folder / f"{name}.parquet")
                    prior = {
                        "prior": folder / f"{name}.parquet",
                        "prior_text": "text",
                        "prior_is_public": True,
                    }
                plan = dphh.ngrams(
                    corpus,
                    max_n=MAX_N,
                    epsilon=epsilon,
                    delta=DELTA,
                    max_items=30,
                    counts=0,
                    **prior,
                )
                found, spurious = np.zeros(MAX_N), 0.0
                for _ in range(asked.runs):
                    release = plan.run(ledger=book, again=True)
                    levels = dphh.evaluate(release, truth)
                    found[: len(levels)] += levels["true"].to_numpy()
                    spurious += (levels["released"] - levels["true"]).sum()
                found /= asked.runs
                by_length = " ".join(f"{each:,.0f}" for each in found)
                absent = f"{spurious / asked.runs:.0f}"
                print(f"| {name} | {found.sum():,.0f} | {by_length} | {absent} |")


if __name__ == "__main__":
    main()
