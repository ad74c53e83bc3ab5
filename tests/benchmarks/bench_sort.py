"""What a level must do at least: bring the pairs of key and user of all positions into order.

    python tests/benchmarks/bench_sort.py [--pairs 137_000_000] [--threads 2]

Seconds and processor seconds, on so many threads, for pairs of eight bytes: to copy them once; what
a radix sort of 48 bits would move at this pace, twelve bits a pass, where a pass reads a pair twice
and writes it once; and NumPy's sort of pieces that stay in the processor's cache, as the kernel
sorts (`PIECE`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dphh.udfs.kernel.contributions import PIECE

BITS, PASSES = 48, 4
#: A copy reads and writes a pair; a pass reads it once more.
COPIES_IN_A_PASS = 1.5


def on_threads(threads: int, pairs: int, step: Callable[[slice], None]) -> tuple[float, float]:
    """Seconds and processor seconds of a step on every piece of the pairs."""
    share = -(-pairs // (threads * PIECE)) * PIECE

    def of_thread(first: int) -> None:
        for start in range(first, min(first + share, pairs), PIECE):
            step(slice(start, start + PIECE))

    wall, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(of_thread, range(0, pairs, share)))
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=137_000_000)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    pairs = np.random.default_rng(1).integers(0, 1 << BITS, asked.pairs, dtype=np.uint64)
    beside = np.ones_like(pairs)

    def copy(some: slice) -> None:
        beside[some] = pairs[some]

    def sort(some: slice) -> None:
        pairs[some].sort()

    copied = on_threads(asked.threads, asked.pairs, copy)
    moved = tuple(PASSES * COPIES_IN_A_PASS * each for each in copied)
    rows = {
        f"copied once ({2 * pairs.nbytes / copied[0] / 1e9:.0f} GB a second)": copied,
        f"what {PASSES} passes move, at this pace": moved,
        "sorted in pieces": on_threads(asked.threads, asked.pairs, sort),
    }
    print(f"{asked.pairs:,} pairs, {asked.threads} threads\n{'':<40}{'s':>8}{'CPU s':>8}")
    for name, (seconds, processors) in rows.items():
        print(f"{name:<40}{seconds:>8.2f}{processors:>8.2f}")


if __name__ == "__main__":
    main()
