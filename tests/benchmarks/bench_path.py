"""The path accountant: what choosing theta and p for a plan takes, and what one exact delta takes.

    python tests/benchmarks/bench_path.py

CPU seconds of one process.
"""

from __future__ import annotations

import time

from dphh.mechanisms.trie.path import path_delta
from dphh.mechanisms.trie.path_choice import choose_path

LEVELS = 10
PROMISES = [(1.0, 1e-8), (2.0, 1e-8), (4.0, 1.5e-8), (4.0, 2.3e-12)]


def main() -> None:
    for epsilon, delta in PROMISES:
        start = time.process_time()
        chosen = choose_path(epsilon, delta, LEVELS)
        middle = time.process_time()
        path_delta(epsilon, chosen.p, chosen.theta, LEVELS)
        end = time.process_time()
        print(
            f"({epsilon:g}, {delta:g}): choosing {middle - start:.2f} s, "
            f"one delta {1000 * (end - middle):.0f} ms"
        )


if __name__ == "__main__":
    main()
