"""Draws a second, ours beside OpenDP's integer Gaussian, and the time to build each table.

    python -m tests.benchmarks.bench_noise [millions of draws of ours, 10 unless told]

One process, held to one core where the system allows it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import opendp.prelude as dp

from dphh.privacy.rounded_gaussian import rounded_gaussian
from dphh.udfs.draws.noise import draw_rounded_gaussian
from dphh.udfs.draws.randomness import SystemRandomness

SIGMAS = (1024, 4000, 12_000, 131_072)
OPENDP_DRAWS = 100_000


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The fastest of some runs: what else the machine does only slows."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(times))


def opendp_rate(sigma: int) -> float:
    """Integer draws a second: one noisy vector of zeros."""
    domain = dp.vector_domain(dp.atom_domain(T=int))
    noised = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(sigma))
    zeros = [0] * OPENDP_DRAWS
    return OPENDP_DRAWS / seconds(lambda: noised(zeros))


def row(sigma: int, draws: int) -> str:
    system = SystemRandomness()
    table = seconds(lambda: rounded_gaussian(sigma), times=1)
    guide = seconds(lambda: draw_rounded_gaussian(system, sigma, 1, "bench"), times=1)
    ours = draws / seconds(lambda: draw_rounded_gaussian(system, sigma, draws, "bench"))
    theirs = opendp_rate(sigma)
    return (
        f"| {sigma} | {table:.2f} | {guide:.2f} | {ours / 1e6:.1f} | {theirs / 1e6:.3f} "
        f"| {ours / theirs:.0f} |"
    )


def main() -> None:
    draws = int(float(sys.argv[1] if len(sys.argv) > 1 else "10") * 1e6)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    dp.enable_features("contrib")
    system = SystemRandomness()
    blocks = max(1, draws >> 16)
    took = seconds(lambda: [system.words(1 << 16, "bench") for _ in range(blocks)])
    print(f"words from the system: {(blocks << 16) / took / 1e6:.1f} million a second\n")
    print("| sigma | table, s | guide, s | ours, million/s | OpenDP, million/s | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    for sigma in SIGMAS:
        print(row(sigma, draws))


if __name__ == "__main__":
    main()
