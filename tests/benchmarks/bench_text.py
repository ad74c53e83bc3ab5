"""`ngrams` on running text beside its floor: reading, splitting and numbering the same words.

    python tests/benchmarks/bench_text.py [--words 20_000_000] [--users 20_000] [--max-n 5]
        [--methods dpne,forecast] [--engines duckdb,polars] [--memory 3GB] [--lmplz FILE]

The corpus is generated (`running_text.py`). Every row is a process of its own, imports and planning
included: seconds, processor seconds of all threads, how many times the floor's these are, words a
second of a processor, and peak memory. `--lmplz` is the estimator of KenLM, where it was built: it
counts the same n-grams of the same texts, exactly and without users.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import measured  # type: ignore[import-not-found]

#: One phrase more or less: what a user may add to a length.
MAX_ITEMS = 300


def floor(path: str) -> None:
    import duckdb
    import pyarrow as pa

    con = duckdb.connect(config={"threads": 2})
    reader = con.sql(f"SELECT string_split(body, ' ') AS tokens FROM '{path}'").to_arrow_reader()
    words = pa.chunked_array(batch.column("tokens").flatten() for batch in reader)
    words.dictionary_encode()


def ngrams(path: str, engine: str, method: str, max_n: str, memory: str) -> None:
    import dphh

    corpus = dphh.Corpus(path, user="author", text="body", split="white space", lower=False)
    bound = {"max_items": MAX_ITEMS} if method == "dpne" else {}
    plan = dphh.ngrams(corpus, max_n=int(max_n), epsilon=1, delta=1e-7, method=method, **bound)
    limits = {"threads": 2, "memory_limit": memory} if engine == "duckdb" else {}
    with tempfile.TemporaryDirectory() as folder:
        plan.run(engine=engine, ledger=Path(folder) / "ledger.sqlite", **limits)


def lines(path: str, out: str) -> None:
    import duckdb

    duckdb.connect().execute(
        f"COPY (SELECT body FROM '{path}') TO '{out}' (FORMAT csv, HEADER false, QUOTE '')"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=20_000_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--max-n", default="5")
    parser.add_argument("--methods", default="dpne,forecast")
    parser.add_argument("--engines", default="duckdb,polars")
    parser.add_argument("--memory", default="3GB", help="of DuckDB's whole process")
    parser.add_argument("--lmplz", type=Path)
    parser.add_argument("--corpus", type=Path, help="one that stands already")
    asked = parser.parse_args()
    this = (sys.executable, __file__, "--child")
    with tempfile.TemporaryDirectory() as folder:
        path = asked.corpus or Path(folder) / "text.parquet"
        if asked.corpus is None:
            writer = Path(__file__).with_name("running_text.py")
            sizes = (f"--words={asked.words}", f"--users={asked.users}")
            subprocess.run([sys.executable, str(writer), str(path), *sizes], check=True)
        ways = {"floor: read, split, number": (*this, "floor", str(path))}
        for method in asked.methods.split(","):
            for engine in asked.engines.split(","):
                command = (*this, "ngrams", str(path), engine, method, asked.max_n, asked.memory)
                ways[f"{method}, {engine}"] = command
        if asked.lmplz:
            texts = Path(folder) / "texts.txt"
            subprocess.run([*this, "lines", str(path), str(texts)], check=True)
            ways["lmplz, exact"] = (
                str(asked.lmplz), "-o", asked.max_n, "-S", asked.memory[:-1], "-T", folder,
                "--text", str(texts), "--arpa", os.devnull, "--discount_fallback",
            )  # fmt: skip
        print(f"{asked.words:,} words of {asked.users:,} users, n up to {asked.max_n}")
        print(f"{'':<28}{'s':>8}{'CPU s':>8}{'floors':>8}{'words/CPU s':>14}{'MB':>8}")
        base = None
        for name, command in ways.items():
            seconds, processors, megabytes = measured(*command)
            base = base or processors
            print(
                f"{name:<28}{seconds:>8.1f}{processors:>8.1f}{processors / base:>8.1f}"
                f"{asked.words / processors:>14,.0f}{megabytes:>8,.0f}",
                flush=True,
            )


CHILDREN = {"floor": floor, "ngrams": ngrams, "lines": lines}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        CHILDREN[sys.argv[2]](*sys.argv[3:])
    else:
        main()
