"""Processor seconds of the default `ngrams` against the size of a corpus, and a picture of them.

    python tests/benchmarks/scaling.py FIGURES.csv PICTURE.png

Running text (`running_text.py`) of 10^6 to 10^8 words by 19,320 users, and of 10^8 words by up to
10^7 users; n up to 5. Each row is one process, its imports included; the floor is as in
`bench_text.py`. Rows that the file has already are not measured again, and new ones are added.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from measuring import measured  # type: ignore[import-not-found]

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
BY_WORDS = [(words, 19_320) for words in (10**6, 10**7, 10**8)]
BY_USERS = [(10**8, users) for users in (19_320, 10**5, 10**6, 10**7)]
#: What is measured: the arguments of `bench_text.py` after the corpus.
WAYS = {
    "floor": ("floor",),
    "DuckDB": ("ngrams", "duckdb", "forecast", "5", "8GB"),
    "Polars": ("ngrams", "polars", "forecast", "5", ""),
}
COLOURS = {"floor": "#000000", "DuckDB": "#0072B2", "Polars": "#D55E00"}
#: By the words, the users and the way: processor seconds.
Figures = dict[tuple[int, int, str], float]


def read(path: Path) -> Figures:
    if not path.exists():
        return {}
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {(int(r["words"]), int(r["users"]), r["way"]): float(r["cpu"]) for r in rows}


def measure(path: Path, words: int, users: int, ways: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = str(Path(folder) / "text.parquet")
        sizes = (f"--words={words}", f"--users={users}")
        writer = str(HERE / "running_text.py")
        subprocess.run([sys.executable, writer, corpus, *sizes], check=True)
        for way in ways:
            kind, *options = WAYS[way]
            child = (sys.executable, str(HERE / "bench_text.py"), "--child", kind, corpus, *options)
            seconds, processors, megabytes = measured(*child)
            add(
                path, [words, users, way, f"{seconds:.2f}", f"{processors:.2f}", f"{megabytes:.0f}"]
            )


def add(path: Path, row: list[Any]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(["words", "users", "way", "seconds", "cpu", "megabytes"])
        writer.writerow(row)


def draw(figures: Figures, picture: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for way in WAYS:
        style = {"label": way, "color": COLOURS[way], "marker": "o", "markersize": 4}
        left.plot([w for w, _ in BY_WORDS], [figures[*size, way] for size in BY_WORDS], **style)
        right.plot([u for _, u in BY_USERS], [figures[*size, way] for size in BY_USERS], **style)
    left.set(xlabel="words, of 19,320 users", ylabel="processor seconds")
    right.set(xlabel="users, of 100 million words")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(picture, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path)
    parser.add_argument("picture", type=Path)
    asked = parser.parse_args()
    for words, users in sorted({*BY_WORDS, *BY_USERS}):
        known = read(asked.figures)
        if ways := [way for way in WAYS if (words, users, way) not in known]:
            measure(asked.figures, words, users, ways)
    draw(read(asked.figures), asked.picture)


if __name__ == "__main__":
    main()
