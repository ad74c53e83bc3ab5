"""The experiments of the TrieHH papers, in shape: figures 5 to 9, F1 against SFP, path and paper.

    python examples/triehh_experiments.py [--data DIR] [--out triehh-experiments] [--runs 2000]

DIR holds tweets.parquet (user_id, text); without it a corpus is made up. Words by the papers'
preprocessing, users resampled by hash to 658,769. A user's one word is its most frequent (of
equally frequent ones the first it wrote), or is drawn once a run in proportion to its frequency.
Users and words are in triehh_population.py, runs in triehh_runs.py.

Figures 5 to 9 take the preprint's batch as printed, which costs more than the epsilon it is
labelled with (see triehh_figures.py). The last two compare at an (epsilon, delta) that holds; for
`paper` by the published theorem, in one direction. Tables are printed and written as CSV. The
randomness is seeded: nothing here is private. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from baselines.sfp import sfp
from colours import COLOURS, band
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from triehh_population import Floats, Integers, load
from triehh_runs import Bits, SamplingWay, Simulation, by_frequency

from dphh.testing import SeededRandomness

TWEETS_FOLDER = Path(__file__).parents[2] / "shared" / "data"
USERS, QUICK_USERS = 658_769, 40_000
RECALL_EPSILONS = (1.0, 2.0, 4.0, 8.0)
DISCOVERY_EPSILONS = (1.0, 2.0)
#: The (epsilon, delta) of the last figure, as in the path accountant's documentation.
BUDGETS = ((1.0, 1e-8), (2.0, 1e-8), (4.0, 2.3e-12))
SFP_EPSILONS, SFP_DELTA, SFP_RUNS = (1.0, 2.0, 4.0), 2.3e-12, 5


class Folder:
    """Where figures and tables go; and whether the papers' findings hold."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.verdicts: list[tuple[bool, str]] = []
        out.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, figure: Any) -> None:
        figure.tight_layout()
        figure.savefig(self.out / f"{name}.png", dpi=110)
        plt.close(figure)

    def table(
        self,
        name: str,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        shown: Sequence[Sequence[object]] | None = None,
    ) -> None:
        """All rows as CSV; on the screen those to be shown, or all."""
        with (self.out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        shown = rows if shown is None else shown
        cells = [
            [f"{x:.4g}" if isinstance(x, float) else str(x) for x in row]
            for row in (header, *shown)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            print("    " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)))
        if len(rows) > len(shown):
            print(f"    {len(rows):,} rows in {name}.csv")

    def check(self, holds: bool, what: str) -> None:
        self.verdicts.append((bool(holds), what))


def new_figure(title: str, x: str, y: str) -> tuple[Any, Any]:
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    _label_axes(axes, title, x, y)
    return figure, axes


def _label_axes(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.3)


def draw_discovery(folder: Folder, sim: Simulation, runs: int, *, several: bool) -> None:
    """Figures 5 and 7."""
    number, kind = (7, "several words a user") if several else (5, "one word a user")
    print(f"Figure {number}: discovery rate by frequency, {kind}")
    figure, axes = new_figure(
        f"Figure {number}: how often a word is found, by its frequency\n({kind}, {runs:,} runs)",
        "frequency of the word",
        "discovery rate",
    )
    n, rows, all_runs = sim.population.users, [], []
    for colour, epsilon in zip(COLOURS, DISCOVERY_EPSILONS, strict=False):
        name = f"epsilon {epsilon:g}"
        done = sim.run(name, sim.preprint_way(epsilon), runs, several=several)
        all_runs.append(done)
        middle, mean, half = done.curve()
        axes.plot(middle / n, mean, color=colour, label=f"{name}, mean")
        low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
        axes.fill_between(middle / n, low, high, color=colour, alpha=0.2)
        share, rates = done.frequency[done.findable] / n, done.rates[done.findable]
        axes.plot(share, rates, ".", color=colour, markersize=2, alpha=0.4)
        if not several:
            axes.plot(share, done.bound, "--", color=colour, label=f"{name}, worst case")
        for word, f, r, b in zip(done.findable.tolist(), share, rates, done.bound, strict=True):
            rows.append((epsilon, sim.population.words[word], float(f), float(r), float(b)))
        if not several:
            error = np.sqrt(np.maximum(done.bound * (1 - done.bound), 1e-4) / runs)
            below = int(np.sum(rates < done.bound - 4.5 * error))
            gap = float(np.max(rates - done.bound))
            folder.check(
                below == 0 and gap > 0.1,
                f"Figure 5, {name}: {below} of {len(rates):,} words below the bound; "
                f"shared prefixes lift a word by up to {gap:.2f}",
            )
    common = all_runs[1].findable
    more = float(np.mean(all_runs[1].rates[common] - all_runs[0].rates[common]))
    folder.check(more > 0, f"Figure {number}: larger epsilon finds more (on average {more:+.4f})")
    axes.set_xscale("log")
    dots = Line2D([], [], color="0.5", marker=".", linestyle="", label="dots: one word each")
    drawn, _ = axes.get_legend_handles_labels()
    axes.legend(handles=[*drawn, band("band: 95% of the words"), dots], fontsize=8)
    folder.save(f"figure-{number:02d}", figure)
    header = ("epsilon", "word", "frequency", "rate", "worst case")
    folder.table(f"figure-{number:02d}", header, rows, rows[:5])


def draw_recalls(folder: Folder, sim: Simulation, runs: int) -> None:
    """Figures 6 and 8."""
    ks = np.arange(10, 501, 10)
    at: dict[tuple[int, float], Floats] = {}
    long: dict[int, Bits] = {}  # by rank: words of more letters than the levels reach
    for number, several in ((6, False), (8, True)):
        kind = "several words a user" if several else "one word a user"
        print(f"Figure {number}: recall of the top K, {kind}")
        title = f"Figure {number}: how many of the K most frequent words are found"
        figure, axes = new_figure(f"{title}\n({kind}, {runs} runs)", "K", "recall of the top K")
        rows = []
        for colour, epsilon in zip(COLOURS, RECALL_EPSILONS, strict=False):
            name = f"epsilon {epsilon:g}"
            done = sim.run(name, sim.preprint_way(epsilon), runs, several=several)
            recall = done.recall(ks)
            at[number, epsilon] = recall.mean(axis=0)
            long[number] = done.trie.steps[by_frequency(done.frequency)] > done.trie.levels
            rows += _recall_curve(axes, ks, recall, colour, name, (epsilon,))
        _legend_of_bands(axes)
        folder.save(f"figure-{number:02d}", figure)
        shown = [row for row in rows if row[1] in (50, 100, 250, 350, 500)]
        folder.table(f"figure-{number:02d}", ("epsilon", "K", "recall", "sd"), rows, shown)
        means = [float(at[number, epsilon].mean()) for epsilon in RECALL_EPSILONS]
        folder.check(
            all(a < b for a, b in pairwise(means)),
            f"Figure {number}: recall grows with epsilon",
        )
    for number, k in ((6, 250), (8, 350)):
        column = int(np.flatnonzero(ks == k)[0])
        four, eight = (float(at[number, epsilon][column]) for epsilon in (4.0, 8.0))
        beyond = int(long[number][:k].sum())
        folder.check(
            eight > 0.95 * (1 - beyond / k),
            f"Figure {number}: the top {k} recalled at nearly 1 with a single-digit epsilon "
            f"({four:.3f} at 4, {eight:.3f} at 8; too long to be found: {beyond})",
        )
    better = float(np.mean([at[8, e].mean() - at[6, e].mean() for e in RECALL_EPSILONS]))
    folder.check(better > 0, f"Figure 8 over 6: several words recall better ({better:+.3f})")


def _recall_curve(
    axes: Any, ks: Integers, recall: Floats, colour: str, name: str, key: tuple[object, ...]
) -> list[tuple[Any, ...]]:
    mean, spread = recall.mean(axis=0), recall.std(axis=0)
    axes.plot(ks, mean, color=colour, label=name)
    axes.fill_between(ks, mean - 1.96 * spread, mean + 1.96 * spread, color=colour, alpha=0.2)
    return [(*key, int(k), float(m), float(s)) for k, m, s in zip(ks, mean, spread, strict=True)]


def _legend_of_bands(axes: Any) -> None:
    drawn, _ = axes.get_legend_handles_labels()
    axes.legend(handles=[*drawn, band("band: 95% of the runs")], fontsize=8)


def draw_unit_sizes(folder: Folder, sim: Simulation, runs: int) -> None:
    """Figure 9."""
    print("Figure 9: unit sizes, several words a user, epsilon 2")
    ks = np.arange(10, 501, 10)
    title = "Figure 9: how many of the K most frequent words are found, by the unit"
    figure, axes = new_figure(f"{title}\n(epsilon 2, {runs} runs)", "K", "recall of the top K")
    rows, means = [], []
    for colour, unit in zip(COLOURS, (1, 2, 3, 4), strict=False):
        levels = sim.trie(unit).levels
        way = sim.preprint_way(2.0, levels)
        done = sim.run(f"unit {unit}", way, runs, several=True, unit=unit)
        recall = done.recall(ks)
        means.append(float(recall.mean()))
        name = f"unit {unit} (L = {levels}, m = {way.batch:,})"
        rows += _recall_curve(axes, ks, recall, colour, name, (unit, levels, way.batch))
    _legend_of_bands(axes)
    folder.save("figure-09", figure)
    header = ("unit", "levels", "batch", "K", "recall", "sd")
    folder.table("figure-09", header, rows, [row for row in rows if row[3] in (100, 250, 500)])
    gains = [b - a for a, b in pairwise(means)]
    said = ", ".join(f"{gain:+.3f}" for gain in gains)
    folder.check(min(gains) > -0.005, f"Figure 9: larger units recall no less ({said})")
    folder.check(
        gains[0] == max(gains), f"Figure 9: the first doubling gains most, then less ({said})"
    )


def draw_against_sfp(
    folder: Folder, sim: Simulation, runs: int, functions: int, epsilons: Sequence[float]
) -> None:
    """F1 as the harmonic mean of precision (reported words that users hold) and recall (of the
    top K)."""
    print("TrieHH and SFP, one word a user")
    people, ks = sim.population, np.arange(10, 501, 10)
    held = [people.words[i] for i in people.single.tolist()]
    counts = people.single_counts
    number = {word: i for i, word in enumerate(people.words)}
    rank = np.empty(len(counts), dtype=np.int64)
    rank[by_frequency(counts)] = np.arange(len(counts))
    rows: list[tuple[Any, ...]] = []
    best: dict[tuple[str, float], float] = {}
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.2))
    for epsilon in epsilons:
        results: list[tuple[str, float, float, Floats]] = []
        for name, way in (
            ("TrieHH, path", sim.path_way(epsilon, SFP_DELTA)),
            ("TrieHH, paper", sim.paper_way(epsilon, SFP_DELTA)),
        ):
            done = sim.run(f"{name}, epsilon {epsilon:g}", way, runs, several=False)
            real = [float(np.mean(counts[f] > 0)) if len(f) else 1.0 for f in done.found]
            size = float(np.mean([len(f) for f in done.found]))
            results.append((name, size, float(np.mean(real)), done.recall(ks).mean(axis=0)))
        for threshold in (20, 80):
            started = time.perf_counter()
            reported, true, hits = 0, 0, np.zeros(len(ks))
            for _ in range(SFP_RUNS):
                result = sfp(
                    held,
                    epsilon=epsilon,
                    delta=SFP_DELTA,
                    threshold=threshold,
                    functions=functions,
                    randomness=sim.randomness,
                )
                ids = [number[word] for word in result.words if word in number]
                real_ids = np.array([i for i in ids if counts[i] > 0], dtype=np.int64)
                reported, true = reported + len(result.words), true + len(real_ids)
                hits += np.searchsorted(np.sort(rank[real_ids]), ks) / ks
            precision = true / reported if reported else 1.0
            name = f"SFP, T = {threshold}"
            results.append((name, reported / SFP_RUNS, precision, hits / SFP_RUNS))
            took = time.perf_counter() - started
            print(
                f"    {name}, epsilon {epsilon:g}: local epsilon {result.local_epsilon:.3f}, "
                f"{SFP_RUNS} runs in {took:.1f} s"
            )
        styles = zip(COLOURS, ("-", "--", ":", "-."), strict=False)  # where they lie on one another
        for (colour, style), (name, size, precision, recall) in zip(styles, results, strict=False):
            f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
            best[name, epsilon] = float(f1.mean())
            for k, r, f in zip(ks.tolist(), recall, f1, strict=True):
                rows.append((epsilon, name, size, precision, k, float(r), float(f)))
            if epsilon == epsilons[-1]:
                for panel, values in zip(
                    panels, (np.full(len(ks), precision), recall, f1), strict=True
                ):
                    panel.plot(ks, values, style, color=colour, lw=2, label=name)
    for panel, what in zip(panels, ("precision", "recall of the top K", "F1"), strict=True):
        _label_axes(panel, what[0].upper() + what[1:], "K", what)
    figure.suptitle(
        f"TrieHH beside the sketch SFP, epsilon {epsilons[-1]:g}, delta {SFP_DELTA:g}", fontsize=11
    )
    panels[0].legend(fontsize=8)
    folder.save("figure-sfp", figure)
    header = ("epsilon", "method", "reported", "precision", "K", "recall", "F1")
    folder.table("figure-sfp", header, rows, [row for row in rows if row[4] in (50, 100, 250)])
    for epsilon in epsilons:
        mine = best["TrieHH, paper", epsilon]
        other = max(best["SFP, T = 20", epsilon], best["SFP, T = 80", epsilon])
        folder.check(
            mine > other,
            f"SFP, epsilon {epsilon:g}: F1 averaged over K {best['TrieHH, path', epsilon]:.3f} "
            f"(path), {mine:.3f} (paper), {other:.3f} (the better SFP)",
        )


def _users(found: float) -> str:
    return "no word" if math.isnan(found) else f"{found:,.0f} users"


def _ratio_as_text(ratio: float) -> str:
    return "not to be told how much" if math.isnan(ratio) else f"{ratio:.1f} times"


def draw_path_and_paper(folder: Folder, sim: Simulation, runs: int) -> None:
    """A figure that the papers do not have."""
    print("Path and paper at equal (epsilon, delta), one word a user")
    figure, panels = plt.subplots(1, len(BUDGETS), figsize=(15, 4.4), sharey=True)
    rows: list[tuple[Any, ...]] = []
    for panel, (epsilon, delta) in zip(panels, BUDGETS, strict=True):
        rarest = {}
        ways: tuple[SamplingWay, SamplingWay] = (
            sim.path_way(epsilon, delta),
            sim.paper_way(epsilon, delta),
        )
        for colour, name, way in zip(COLOURS, ("path", "paper"), ways, strict=False):
            done = sim.run(f"{name} ({epsilon:g}, {delta:g})", way, runs, several=False)
            holders = done.frequency[done.findable]
            panel.plot(holders, done.rates[done.findable], ".", color=colour, markersize=2)
            panel.plot(holders, done.bound, "--", color=colour, linewidth=1)
            rarest[name] = done.rarest()
            label = f"{name}: {_users(rarest[name][0])}"
            panel.axvline(rarest[name][0], color=colour, linewidth=1, label=label)
            chance = way.sampling.p
            rows.append(
                (
                    *(epsilon, delta, name, way.theta, float(chance)),
                    *(float(np.mean([len(f) for f in done.found])), *rarest[name]),
                )
            )
        ratios = [b / a for a, b in zip(rarest["path"], rarest["paper"], strict=True)]
        rarer, typically, at_worst = (_ratio_as_text(ratio) for ratio in ratios)
        folder.check(
            min(ratios[0], ratios[2]) >= 10,
            f"path against paper at ({epsilon:g}, {delta:g}): the rarest word found with "
            f"probability 0.9 is {rarer} rarer, 10 to 20 expected ({_users(rarest['path'][0])} "
            f"against {_users(rarest['paper'][0])}); where nine words in ten are, {typically}; in "
            f"the worst case {at_worst} ({rarest['path'][2]:,} against {rarest['paper'][2]:,})",
        )
        _label_axes(panel, f"epsilon {epsilon:g}, delta {delta:g}", "users who hold the word", "")
        panel.set_xscale("log")
        panel.legend(fontsize=8, title="rarest found 9 times in 10", title_fontsize=8)
    panels[0].set_ylabel("discovery rate (dashed: worst case)")
    figure.suptitle(
        "How often a word is found, by how many hold it: the path accounting and the paper's "
        "(dots: one word each; dashed: worst case)",
        fontsize=11,
    )
    folder.save("figure-path", figure)
    header = ("epsilon", "delta", "accounting", "theta", "rate", "words", "rarest word")
    folder.table("figure-path", (*header, "nine in ten", "worst case"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=TWEETS_FOLDER, help="folder with tweets.parquet"
    )
    parser.add_argument("--out", type=Path, default=Path("triehh-experiments"))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument(
        "--quick", action="store_true", help="40,000 users, 20 runs, a small sketch"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.perf_counter()
    quick = options.quick
    people, said = load(options.data, QUICK_USERS if quick else USERS, 4_000 if quick else 46_000)
    runs = min(options.runs, 20) if quick else options.runs
    few = max(2, min(runs // 2, 100))
    print(f"{people.users:,} users, {len(people.words):,} words, {said}")
    leaders = by_frequency(people.single_counts)[:5]
    shares = [f"{people.words[i]} {people.single_counts[i] / people.users:.4f}" for i in leaders]
    print(f"    most frequent: {', '.join(shares)}")
    folder = Folder(options.out)
    sim = Simulation(people, SeededRandomness(options.seed))
    draw_discovery(folder, sim, runs, several=False)
    draw_discovery(folder, sim, runs, several=True)
    draw_recalls(folder, sim, few)
    draw_unit_sizes(folder, sim, few)
    draw_path_and_paper(folder, sim, runs)
    draw_against_sfp(folder, sim, few, *((64, (4.0,)) if quick else (2048, SFP_EPSILONS)))
    print("Do the papers' shapes hold?")
    otherwise = "does not show in so few runs" if quick else "FAILS"
    for holds, what in folder.verdicts:
        print(f"    {'holds' if holds else otherwise}: {what}")
    print(f"{time.perf_counter() - started:.0f} s in all; figures and tables in {folder.out}")


if __name__ == "__main__":
    main()
