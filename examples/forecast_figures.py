"""What the forecast ladder finds beside DPNE: by length, by epsilon, by corpus, and part by part.

    python examples/forecast_figures.py NAME=FILE.parquet ... [--user user_id] [--text text]
        [--max-n 5] [--epsilon 4] [--max-items 30] [--runs 1] [--out FOLDER]

Each FILE is a corpus; the second and the third figure are of the first one. Writes figure-1.png
(by length, each corpus), figure-2.png (totals by epsilon, with DPNE's decay tried), figure-3.png
(each part of the ladder left out by itself) and all numbers as forecast.csv. Every run spends from
a ledger of its own in the folder, so give it data that may be read so often. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter

import dphh

DELTA = 1e-7
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DECAYS = (0.8, 1.0, 1.25)
#: Okabe and Ito's: told apart by all eyes.
FORECAST, DPNE, DECAYED = "#0072B2", "#D55E00", "#999999"
LADDER, PAPER = "forecast ladder", "DPNE"


class Runs:
    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.corpora = {
            name: dphh.Corpus(
                path, user=asked.user, text=asked.text, split="white space", lower=False
            )
            for name, path in (each.split("=", 1) for each in asked.corpora)
        }
        self.rows: list[list[Any]] = []

    def found(self, corpus: str, what: str, **changes: Any) -> list[float]:
        """How many n-grams are released, by length: the mean of `--runs` runs."""
        asked = self.asked
        options = {"epsilon": asked.epsilon, "max_items": asked.max_items, **changes}
        options |= {"max_n": asked.max_n, "delta": DELTA, "counts": 0}
        plan = dphh.ngrams(self.corpora[corpus], **options)
        each = []
        book = dphh.Ledger(asked.out / "ledger.sqlite", create=True)
        for _ in range(asked.runs):
            levels = plan.run(ledger=book, again=True).to_polars()["level"]
            each.append([int((levels == n).sum()) for n in range(1, asked.max_n + 1)])
        mean: list[float] = np.mean(each, axis=0).tolist()
        self.rows.append([corpus, what, options["epsilon"], *mean, sum(mean)])
        print(corpus, what, options["epsilon"], mean, round(sum(mean), 1), flush=True)
        return mean


def draw_by_length(runs: Runs) -> None:
    figure, panels = plt.subplots(
        1, len(runs.corpora), figsize=(5.2 * len(runs.corpora), 4), squeeze=False
    )
    for name, axes in zip(runs.corpora, panels[0], strict=True):
        lengths = np.arange(1, runs.asked.max_n + 1)
        for offset, method, label, colour in (
            (-0.2, "dpne", PAPER, DPNE),
            (0.2, "forecast", LADDER, FORECAST),
        ):
            counts = runs.found(name, label, method=method)
            bars = axes.bar(lengths + offset, counts, 0.4, color=colour, label=label)
            axes.bar_label(bars, [f"{count:,.0f}" for count in counts], fontsize=7)
        label_axes(axes, f"{name}, epsilon {runs.asked.epsilon:g}", "words of an n-gram")
        axes.set_xticks(lengths)
    save(figure, runs, 1)


def draw_by_epsilon(runs: Runs) -> None:
    name, figure = next(iter(runs.corpora)), plt.figure(figsize=(6, 4))
    axes = figure.add_subplot()
    totals = [sum(runs.found(name, LADDER, epsilon=epsilon)) for epsilon in EPSILONS]
    axes.plot(EPSILONS, totals, "-o", color=FORECAST, lw=2, label=LADDER)
    tried = {}
    for decay in DECAYS:
        shares = [decay ** (-2 * k) for k in range(runs.asked.max_n)]
        label, options = f"DPNE, decay {decay:g}", {"method": "dpne", "shares": shares}
        tried[decay] = [sum(runs.found(name, label, epsilon=e, **options)) for e in EPSILONS]
    axes.plot(EPSILONS, tried[1.0], "-s", color=DPNE, lw=2, label=PAPER)
    best = np.max([*tried.values()], axis=0)
    axes.plot(EPSILONS, best, "--D", color=DECAYED, label="DPNE, the best decay of each")
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    label_axes(axes, f"{name}, delta {DELTA:g}", "epsilon")
    save(figure, runs, 2)


def even_weights(rows: Any, *_: Any) -> Any:
    from dphh.mechanisms.ngrams.forecast.plan_round import WEIGHTS

    return np.full(len(rows.n), int(np.argmin(np.abs(WEIGHTS - 1))))


#: For each part of the ladder, what the objects of these names are replaced by to leave it out.
REPLACEMENTS_BY_PART: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a posterior a little wider": {
        "dphh.mechanisms.ngrams.forecast.plan_round.widened_posteriors": lambda by_bin: by_bin
    },
    "saturation": {
        "dphh.mechanisms.ngrams.forecast.two_rounds.weight_scaling": lambda *_: lambda g: g
    },
    "classes of half a nat: of one": {"dphh.mechanisms.ngrams.ladder.classes.LOG_STEP": 1.0},
    "60 passes of deconvolution: 20": {"dphh.mechanisms.ngrams.forecast.plan_round.EM_PASSES": 20},
    "solved weights: plain ones": {
        "dphh.mechanisms.ngrams.forecast.plan_round._AlternatingChoice.best_weights": even_weights,
        "dphh.mechanisms.ngrams.forecast.plan_round._AlternatingChoice.first_weights": even_weights,
    },
    "parts of purses by worth: even ones": {
        "dphh.mechanisms.ngrams.forecast.two_rounds.parts_of_round_2": lambda level, levels, *_: [
            0.5 / (climb + 1) for climb in range(levels - level + 1)
        ]
    },
}


@contextmanager
def part_replaced(part: str) -> Iterator[None]:
    with ExitStack() as stack:
        for where, instead in REPLACEMENTS_BY_PART[part].items():
            stack.enter_context(patch(where, instead))
        yield


def draw_by_part(runs: Runs) -> None:
    name, figure = next(iter(runs.corpora)), plt.figure(figsize=(7, 3.6))
    axes = figure.add_subplot()
    totals = {}
    for part in REPLACEMENTS_BY_PART:
        with part_replaced(part):
            totals[part] = sum(runs.found(name, f"without {part}"))
    paper = sum(runs.found(name, PAPER, method="dpne"))
    names = ["all of the ladder", *list(totals)[1:], PAPER]
    colours = [FORECAST] + [DECAYED] * (len(totals) - 1) + [DPNE]
    bars = axes.barh(names, [*totals.values(), paper], color=colours)
    axes.bar_label(bars, [f"{total:,.0f}" for total in [*totals.values(), paper]], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("n-grams released")
    axes.set_title(f"{name}, epsilon {runs.asked.epsilon:g}: each part left out by itself")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, runs, 3)


def label_axes(axes: Any, title: str, across: str) -> None:
    axes.set(title=title, xlabel=across, ylabel="n-grams released")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def save(figure: Any, runs: Runs, number: int) -> None:
    figure.tight_layout()
    figure.savefig(runs.asked.out / f"figure-{number}.png", dpi=150)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--user", default="user_id")
    parser.add_argument("--text", default="text")
    parser.add_argument("--max-n", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--max-items", type=int, default=30)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("forecast-figures"))
    runs = Runs(parser.parse_args(arguments))
    runs.asked.out.mkdir(parents=True, exist_ok=True)
    draw_by_length(runs)
    draw_by_epsilon(runs)
    draw_by_part(runs)
    with (runs.asked.out / "forecast.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["corpus", "run", "epsilon", *range(1, runs.asked.max_n + 1), "total"])
        rows.writerows(runs.rows)


if __name__ == "__main__":
    main()
