"""What each of many runs of `items` on the tweets takes in processor seconds, as they are and
prepared: means after the first two runs, of other epsilons where draws are real.

python -m tests.benchmarks.sweep [--runs N]
"""

import argparse
import tempfile
import time
from itertools import product
from pathlib import Path
from statistics import mean

from dphh import Corpus, Ledger, items, prepared
from dphh.testing import SeededRandomness
from tests.benchmarks.items_found import TWEETS


def seconds_of_a_run(corpus: Corpus, engine: str, method: str, seeded: bool, runs: int) -> float:
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite", create=True)
        for run in range(runs + 2):
            start = time.process_time()
            epsilon = 1.0 if seeded else 1 + run / 100
            plan = items(corpus, epsilon=epsilon, delta=1e-6, method=method, counts=0)
            randomness = SeededRandomness(run) if seeded else None
            plan.run(engine=engine, ledger=ledger, randomness=randomness, progress=lambda _: None)
            spent.append(time.process_time() - start)
    return mean(spent[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    corpus = Corpus(TWEETS, user="user_id", text="text")
    both = corpus, prepared(corpus)
    for engine, method in product(("polars", "duckdb"), ("gaussian", "auto")):
        took = [
            seconds_of_a_run(each, engine, method, seeded, runs)
            for seeded in (False, True)
            for each in both
        ]
        print(f"| {engine}, {method}", *(f"{each:.2f}" for each in took), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
