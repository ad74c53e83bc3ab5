"""Counts of 1,000 released items on all of MSNBC, beside the `ngrams` run that found them.

    python tests/benchmarks/bench_counts.py [--data DIR] [--method forecast|dpne] [--repeat 1]

Each run is a process of its own, all on DuckDB; what is compared is its processor time, planning
included and imports not. The last run finds and counts in one budget (`counts=`).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[2]
COST = {"epsilon": 1.0, "delta": 1e-7}
RUNS = ("find", "count", "find and count")


def run(what: str, data: Path, method: str, folder: Path) -> None:
    """One run, its processor time on standard output."""
    from dphh import Corpus, Ledger, counts, ngrams
    from dphh.engines.duckdb import host  # noqa: F401 - imported before the clock starts

    corpus = Corpus(
        str(data / "msnbc.parquet"), user="user_id", text="text", split="white space", lower=False
    )
    out = folder / what
    asked = {"max_n": 6, "max_items": 10, "method": method, **COST}
    before = _processor()
    plan = {
        "find": lambda: ngrams(corpus, **asked),
        "count": lambda: counts(corpus, of=folder / "find", top=1_000, **COST),
        "find and count": lambda: ngrams(corpus, counts=0.3, **asked),
    }[what]()
    release = plan.run(ledger=Ledger(folder / "ledger.sqlite"), engine="duckdb", again=True)
    spent = _processor() - before
    if not out.exists():
        release.save(out)
    print(f"{spent:.3f} {len(release)}")


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE.parent / "shared" / "data")
    parser.add_argument("--method", default="forecast")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run(asked.run, asked.data, asked.method, asked.folder)
        return
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what in RUNS:
            command = [sys.executable, __file__, "--run", what, "--folder", folder]
            command += ["--data", str(asked.data), "--method", asked.method]
            found = [
                subprocess.run(
                    command, check=True, capture_output=True, text=True, cwd=HERE
                ).stdout.split()[-2:]
                for _ in range(asked.repeat)
            ]
            times[what] = min(float(spent) for spent, _ in found)
            share = times[what] / times["find"]
            print(f"{what:<16} {times[what]:6.2f} CPU s  {share:5.2f} of find  {found[-1][1]} rows")


if __name__ == "__main__":
    main()
