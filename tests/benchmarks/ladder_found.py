"""How many n-grams the forecast ladder finds by length, and how near to the truth it counts them.

python -m tests.benchmarks.ladder_found [--runs N] [--counts C] [--only NAME] [--engine E]

Tweets and MSNBC, which others use; and three corpora that no constant was chosen on: words by
Zipf's law without any phrase, short logs of 20 kinds of events, and long texts.
"""

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from dphh import Corpus, Ledger, exact_ngrams, ngrams
from tests.benchmarks.corpora import running_text

DATA = Path(__file__).parents[2].parent / "shared/data"


def words_without_phrases(path: Path) -> None:
    rng, kinds = np.random.default_rng(1), 20_000
    shares = np.cumsum(1 / (np.arange(kinds) + 2.7) ** 1.05)
    words = np.searchsorted(shares, rng.random((30_000, 20)) * shares[-1])
    texts = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    pl.DataFrame({"who": range(len(texts)), "what": texts}).write_parquet(path)


def event_logs(path: Path) -> None:
    """20 kinds of events. One in four is drawn anew; the others follow the one before."""
    rng, kinds, users = np.random.default_rng(2), 20, 20_000
    popular = 1 / np.arange(1, kinds + 1)
    follows = rng.permutation(kinds)
    events = [rng.choice(kinds, users, p=popular / popular.sum())]
    for _ in range(11):
        anew = rng.choice(kinds, users, p=popular / popular.sum())
        events.append(np.where(rng.random(users) < 0.25, anew, follows[events[-1]]))
    texts = [" ".join(f"e{event}" for event in row) for row in np.stack(events, 1).tolist()]
    pl.DataFrame({"who": range(users), "what": texts}).write_parquet(path)


def long_texts(path: Path) -> None:
    running_text(path, 3_000_000, 3_000)


#: For each corpus: its file or what makes it, epsilon, the longest length, and max_items.
CORPORA: dict[str, tuple[Any, float, int, int]] = {
    "tweets": (DATA / "tweets.parquet", 4.0, 5, 30),
    "tweets, 1": (DATA / "tweets.parquet", 1.0, 5, 30),
    "msnbc": (DATA / "msnbc.parquet", 1.0, 6, 10),
    "no phrases": (words_without_phrases, 2.0, 4, 30),
    "event logs": (event_logs, 1.0, 5, 20),
    "long texts": (long_texts, 2.0, 4, 300),
}


def measure(name: str, folder: Path, asked: argparse.Namespace) -> None:
    source, epsilon, max_n, max_items = CORPORA[name]
    path, user, text = folder / "corpus.parquet", "who", "what"
    if isinstance(source, Path):
        path, user, text = source, "user_id", "text"
    else:
        source(path)
    corpus = Corpus(path, user=user, text=text)
    options = {} if asked.counts is None else {"counts": asked.counts}
    plan = ngrams(corpus, max_n=max_n, epsilon=epsilon, delta=1e-7, max_items=max_items, **options)
    found, spent, known = [], [], []
    exact = {}
    if asked.counts != 0:
        rows = exact_ngrams(corpus, max_n=max_n)
        exact = dict(
            zip(map(tuple, rows["tokens"].to_list()), rows["exact_users"].to_list(), strict=True)
        )
    for number in range(asked.runs):
        ledger = Ledger(folder / f"{number}.sqlite", create=True)
        start = time.process_time()
        release = plan.run(engine=asked.engine, ledger=ledger, progress=lambda _: None)
        spent.append(time.process_time() - start)
        rows = release.to_polars()
        found.append(Counter(rows["level"].to_list()))
        if asked.counts != 0:
            true = np.array([exact.get(tuple(tokens), 0) for tokens in rows["tokens"].to_list()])
            users, low, high = (rows[column].to_numpy() for column in ("users", "low", "high"))
            holds = (low <= true) & (true <= high)
            known.append((np.mean(high - low), np.mean(np.abs(users - true)), np.mean(holds)))
    by_length = [round(mean(run[length] for run in found)) for length in range(1, max_n + 1)]
    totals = [sum(run.values()) for run in found]
    said = f"{name}, epsilon {epsilon:g}: {mean(totals):,.0f} {totals}, by length {by_length}"
    if known:
        width, error, coverage = np.mean(known, axis=0)
        said += f"; width {width:.0f}, error {error:.1f}, coverage {coverage:.3f}"
    print(f"{said}; CPU {min(spent):.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--counts", type=float, help="0 for none; the product's default if left out"
    )
    parser.add_argument("--only", choices=CORPORA)
    parser.add_argument("--engine", default="duckdb")
    asked = parser.parse_args()
    for name in [asked.only] if asked.only else CORPORA:
        source = CORPORA[name][0]
        if not isinstance(source, Path) or source.exists():
            with TemporaryDirectory() as folder:
                measure(name, Path(folder), asked)


if __name__ == "__main__":
    main()
