"""The shapes of the n-gram paper's figures (Kim et al. 2021, section 3) on a generated corpus.

    python examples/dpne_figures.py [--out dpne-figures] [--quick] [--users N] [--threads N]

Writes the corpus, a ledger of its own and, into the same folder, figure-1.png to figure-4.png,
table-3.csv and table-4.csv; then says which of the paper's shapes hold, with numbers. The corpus
(`reddit_like.py`) is made up, so exact counts may be shown beside what was released. Each
point is one run with fresh noise: numbers differ a little from time to time. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import duckdb
import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pyarrow as pa
from baselines.dpne import found_by as found_by_dpne
from baselines.dpsu import Method, found_by, priced
from colours import COLOURS, shades
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from reddit_like import Sizes, write_corpus

import dphh

LONGEST = 9
LENGTHS = range(1, LONGEST + 1)
BASE_OPTIONS: dict[str, Any] = {
    "method": "dpne", "max_n": LONGEST, "epsilon": 4.0, "delta": 1e-7, "max_items": 100,
    "counts": 0,
}  # fmt: skip
DEFAULT_ETA = 0.01  # dphh's own default, as the paper's

SHORT, LONG = slice(0, 2), slice(LONGEST - 4, LONGEST)  # 1- and 2-grams; 6- to 9-grams
EXACT_MAY_BE_SHOWN = "Generated corpus: exact counts may be shown."
#: Where at least K users hold fewer n-grams than this, the share released is not drawn, as it
#: would be chance.
FEWEST_GRAMS = 10


@dataclass(frozen=True)
class Sweeps:
    """The settings that the figures go through."""

    max_items: tuple[int, ...] = (10, 30, 100, 300, 1000)
    epsilon: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0, 8.0)
    spurious: tuple[float, ...] = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
    decay: tuple[float, ...] = (0.8, 0.9, 1.0, 1.25, 1.6)
    held_by: tuple[int, ...] = (10, 30, 100, 300, 1000)


QUICK = Sweeps(
    max_items=(10, 100, 1000),
    epsilon=(2.0, 4.0, 8.0),
    spurious=(0.01, 0.05, 0.2),
    decay=(0.8, 1.0, 1.6),
)


@dataclass(frozen=True)
class Shape:
    """One of the paper's findings, and whether it is seen here."""

    letter: str
    claim: str
    holds: bool
    evidence: str

    def sentence(self, is_small: bool) -> str:
        """The verdict in words. On a small corpus noise may hide a shape."""
        verdict = "does not show on so small a corpus" if is_small else "DOES NOT HOLD"
        verdict = "holds" if self.holds else verdict
        return f"({self.letter}) {verdict}: {self.claim}\n      {self.evidence}"


class Runs:
    """A corpus and its ledger; every setting is run once, however many figures show it."""

    def __init__(self, out: Path, sizes: Sizes, threads: int | None) -> None:
        self.out = out
        self.threads = threads
        self.path = out / "corpus.parquet"
        write_corpus(self.path, sizes)
        self.corpus = dphh.Corpus(
            self.path, user="author", text="body", split="white space", lower=False
        )
        self.ledger = dphh.Ledger(out / "ledger.sqlite", create=True)
        self.seconds = 0.0
        self._done: dict[tuple[tuple[str, Any], ...], dphh.Release] = {}
        with duckdb.connect() as con:
            con.execute("CREATE TABLE posts AS FROM read_parquet(?)", [str(self.path)])
            authors, posts, words, grams = con.execute(
                """
                WITH lengths AS (SELECT author, len(string_split(body, ' ')) AS n FROM posts)

                SELECT
                    count(DISTINCT author),
                    count(*),
                    sum(n),
                    sum(list_sum([greatest(n - k, 0) FOR k IN range(9)])) / 9
                FROM lengths
                """
            ).fetchall()[0]
        #: How many n-grams of one length an author wrote, the mean over authors and lengths.
        self.mean_grams = grams / authors
        self.line = (
            f"Generated corpus, not Reddit itself: {authors:,} authors, {posts:,} posts, "
            f"{words / 1e6:.1f} million words, about {self.mean_grams:.0f} n-grams of each length "
            "an author."
        )

    def release(self, **changes: Any) -> dphh.Release:
        options = {"spurious": DEFAULT_ETA, **BASE_OPTIONS, **changes}
        key = tuple(sorted(options.items()))
        if key not in self._done:
            start = time.perf_counter()
            plan = dphh.ngrams(self.corpus, **options)
            self._done[key] = plan.run(
                ledger=self.ledger, threads=self.threads, progress=lambda _: None
            )
            self.seconds += time.perf_counter() - start
        return self._done[key]

    def counts(self, **changes: Any) -> list[int]:
        """How many n-grams were released, by length."""
        levels = {x["level"]: x["released"] for x in self.release(**changes).manifest["levels"]}
        return [levels.get(length, 0) for length in LENGTHS]

    def baseline(self, method: Method, max_n: int = LENGTHS[-1]) -> list[int]:
        """How many n-grams a set union of whole n-grams finds, by length."""
        asked = {"epsilon": BASE_OPTIONS["epsilon"], "delta": BASE_OPTIONS["delta"]}
        plan = priced(method, max_n=max_n, max_items=BASE_OPTIONS["max_items"], **asked)
        found = found_by(plan, self.corpus)
        return [found.filter(level=length).height for length in LENGTHS]

    def single_lengths(self) -> list[int]:
        """For each length, what set union finds with the whole budget spent there."""
        return [self.baseline("single", k)[k - 1] for k in LENGTHS]

    def single_side(self) -> list[int]:
        """How many n-grams DPNE finds if a gram's beginning and its last word are enough."""
        plan = dphh.ngrams(spurious=DEFAULT_ETA, **BASE_OPTIONS)
        found = found_by_dpne(plan, self.corpus, "single")
        return [found.filter(level=length).height for length in LENGTHS]


def figure_1(runs: Runs, _: Sweeps) -> list[Shape]:
    found = {
        "DPNE": runs.counts(),
        "dpsu-all": runs.baseline("all"),
        "dpsu-even": runs.baseline("even"),
        "dpsu-single": runs.single_lengths(),
    }
    labels = {
        "DPNE": "DPNE",
        "dpsu-all": "set union of all lengths at once (dpsu-all)",
        "dpsu-even": "set union, budget shared evenly (dpsu-even)",
        "dpsu-single": "set union, whole budget on one length (dpsu-single)",
    }
    figure, axes = plt.subplots(figsize=(9, 5.6))
    for (name, counts), marker, colour in zip(found.items(), "osD^", COLOURS, strict=False):
        style = "--" if name == "dpsu-single" else "-"
        axes.plot(LENGTHS, counts, style, marker=marker, color=colour, lw=2, label=labels[name])
    axes.set_yscale("symlog", linthresh=10)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    label_axes(axes, "What DPNE and plain set unions find", "n-grams released (log scale)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=9)
    save(figure, runs, 1, "Epsilon 4, delta 1e-7, at most 100 n-grams of a length a user")

    rows = [[name, *counts, sum(counts)] for name, counts in found.items()]
    rows[-1][-1] = "-"
    save_table(runs.out / "table-4.csv", ["method", *map(str, LENGTHS), "total"], rows, "Table 4")

    dpne = found["DPNE"]
    plain = [max(pair) for pair in zip(found["dpsu-all"], found["dpsu-even"], strict=True)]
    over_plain = [k for k in LENGTHS if dpne[k - 1] > plain[k - 1]]
    over_single = [k for k in LENGTHS if dpne[k - 1] > found["dpsu-single"][k - 1]]
    return [
        Shape(
            "e",
            "DPNE finds more than dpsu-all and dpsu-even from length 3 on, and more than "
            "dpsu-single, which spends all on one length, for long ones",
            set(over_plain) >= set(LENGTHS[2:]) and LONGEST in over_single,
            f"more than both at lengths {over_plain}, than dpsu-single at {over_single}; "
            f"at 9: DPNE {dpne[-1]:,}, all {found['dpsu-all'][-1]:,}, "
            f"even {found['dpsu-even'][-1]:,}, single {found['dpsu-single'][-1]:,}",
        )
    ]


def figure_2(runs: Runs, sweeps: Sweeps) -> list[Shape]:
    bounds = {bound: runs.counts(max_items=bound) for bound in sweeps.max_items}
    budgets = {epsilon: runs.counts(epsilon=epsilon) for epsilon in sweeps.epsilon}
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2))
    draw_lines(left, bounds, "at most so many n-grams\nof a length a user (Δ₀)")
    label_axes(left, "How many n-grams a user may count for", "n-grams released")
    draw_lines(right, budgets, "epsilon")
    label_axes(right, "What a larger privacy budget finds", "n-grams released")
    save(figure, runs, 2, "Unless said: epsilon 4, delta 1e-7, Δ₀ 100, η 0.01")

    totals = {bound: sum(counts) for bound, counts in bounds.items()}
    middle = min(totals, key=lambda bound: abs(bound - runs.mean_grams))
    upto = [totals[bound] for bound in totals if bound <= middle]
    beyond = max(totals.values()) / max(totals[middle], 1) - 1
    return [
        Shape(
            "a",
            "more with a larger Δ₀ until about the mean number of n-grams a user, little after",
            rises(upto) and beyond < 0.15,
            f"mean {runs.mean_grams:.0f}; totals {listed(totals)}: beyond {middle}, at most "
            f"{beyond:.0%} more",
        ),
        Shape("b", "more with a larger epsilon, at every length", *totals_grow(budgets)),
    ]


def shares_of(decay: float) -> tuple[float, ...]:
    """The shares of the budget by which each length's noise is `decay` of the one below."""
    return tuple(decay ** (-2 * k) for k in range(LONGEST))


def figure_3(runs: Runs, sweeps: Sweeps) -> list[Shape]:
    etas = {eta: runs.counts(spurious=eta) for eta in sweeps.spurious}
    decays = {c: runs.counts(shares=shares_of(c)) for c in sweeps.decay}
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2))
    draw_lines(left, etas, "tolerated share of\nspurious n-grams (η)")
    label_axes(left, "What more tolerated spurious n-grams find", "n-grams released")
    draw_lines(right, decays, "noise of a length over that\nof the one below (c)")
    label_axes(right, "How the budget is shared out over lengths", "n-grams released")
    save(figure, runs, 3, "Unless said: epsilon 4, delta 1e-7, Δ₀ 100, η 0.01, c 1")

    short = {c: sum(counts[SHORT]) for c, counts in decays.items()}
    long = {c: sum(counts[LONG]) for c, counts in decays.items()}
    most = max(decays)
    grows, evidence = totals_grow(etas)
    shared = f"of 1 or 2 words, {listed(short)}; of 6 to 9, {listed(long)}"
    return [
        Shape("c", "more with a larger η, at every length above 1", grows, evidence),
        Shape(
            "d1",
            "c < 1 finds more long n-grams than c = 1, and fewer short ones",
            any(long[c] > long[1.0] and short[c] < short[1.0] for c in decays if c < 1),
            shared,
        ),
        Shape(
            "d2",
            "c > 1 finds more short n-grams than c = 1, and fewer long ones if large",
            short[most] > short[1.0] and long[most] < long[1.0],
            shared,
        ),
    ]


def figure_4(runs: Runs, sweeps: Sweeps) -> list[Shape]:
    both, single = runs.counts(), runs.single_side()
    shares = share_released(runs, sweeps.held_by)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2))
    for counts, offset, colour, label in (
        (both, -0.2, COLOURS[0], "both ends were found (both-side)"),
        (single, 0.2, COLOURS[1], "its beginning and last word were (single-side)"),
    ):
        left.bar([k + offset for k in LENGTHS], counts, 0.4, color=colour, label=label)
    left.legend(title="A longer n-gram is looked at if", fontsize=9)
    label_axes(left, "Which longer n-grams are looked at: the two prunings", "n-grams released")
    left.set_ylim(0, 1.3 * max(*both, *single, 1))

    for (users, drawn), colour, marker in zip(
        shares.items(), shades(len(shares)), "os^Dv<>Pp", strict=False
    ):
        percent = [100 * share for share in drawn.values()]
        label = f"{users:,} users"
        right.plot(list(drawn), percent, "-", marker=marker, color=colour, lw=2, label=label)
    if shares:
        right.legend(
            title="Held by\nat least", fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5)
        )
    right.set_ylim(0, 103)
    label_axes(right, "How much of what many hold is found", "share released, in percent")
    note = f"Epsilon 4, delta 1e-7, Δ₀ 100, η 0.01; shares of {FEWEST_GRAMS} n-grams or more"
    save(figure, runs, 4, note, EXACT_MAY_BE_SHOWN)

    fewer, more = mean_length(both), mean_length(single)
    columns = [[s[k] for s in shares.values() if k in s] for k in LENGTHS]
    return [
        Shape(
            "f",
            "both-side pruning favours short n-grams, single-side long ones",
            sum(both[:4]) > sum(single[:4]) and sum(both[LONG]) < sum(single[LONG]),
            f"lengths 1 to 4: both {sum(both[:4]):,}, single {sum(single[:4]):,}; "
            f"6 to 9: {sum(both[LONG]):,}, {sum(single[LONG]):,}; "
            f"all: {sum(both):,}, {sum(single):,}; mean length {fewer:.2f}, {more:.2f}",
        ),
        Shape(
            "g",
            "of n-grams that at least K users hold, a larger share is found as K rises",
            any(columns) and all(b >= a - 0.02 for column in columns for a, b in pairwise(column)),
            "; ".join(
                f"K = {users:,}: " + ", ".join(f"{k}: {share:.0%}" for k, share in drawn.items())
                for users, drawn in shares.items()
            ),
        ),
    ]


def share_released(runs: Runs, held_by: tuple[int, ...]) -> dict[int, dict[int, float]]:
    """Of the n-grams that at least K users hold (counted exactly), the share that was released: by
    K, then by length."""
    exact = dphh.exact_ngrams(runs.corpus, max_n=LONGEST, threads=runs.threads)
    found = runs.release().to_polars().select("level", "item", found=True)
    held = exact.join(found, on=["level", "item"], how="left")
    shares: dict[int, dict[int, float]] = {}
    for users in held_by:
        for k in LENGTHS:
            many = held.filter((held["level"] == k) & (held["exact_users"] >= users))
            if len(many) >= FEWEST_GRAMS:
                shares.setdefault(users, {})[k] = many["found"].count() / len(many)
    return shares


def table_3(runs: Runs, sweeps: Sweeps) -> list[Shape]:
    """Released n-grams that no user holds. Only a corpus without people may be looked at so."""
    releases = {eta: runs.release(spurious=eta).to_arrow() for eta in sweeps.spurious}
    found = pa.concat_tables(
        t.select(["level", "item"]).append_column("eta", pa.array([eta] * len(t), pa.float64()))
        for eta, t in releases.items()
    )
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.register("found", found)
        con.execute("CREATE TABLE wanted AS SELECT DISTINCT level, item FROM found")
        con.execute(
            "CREATE TABLE texts AS SELECT string_split(body, ' ') AS w FROM read_parquet(?)",
            [str(runs.path)],
        )
        con.execute("CREATE TABLE held (level INTEGER, item VARCHAR)")
        for k in LENGTHS:
            con.execute(
                """
                INSERT INTO held
                WITH grams AS (
                    SELECT unnest([array_to_string(w[i:i + $k - 1], ' ')
                        FOR i IN range(1, len(w) - $k + 2)]) AS item
                    FROM texts
                )

                SELECT DISTINCT $k, item
                FROM grams SEMI JOIN (FROM wanted WHERE level = $k) AS here USING (item)
                """,
                {"k": k},
            )
        spurious = dict(
            con.execute(
                "SELECT eta, count(*) FROM found ANTI JOIN held USING (level, item) GROUP BY eta"
            ).fetchall()
        )
    rows: list[list[Any]] = []
    within = True
    for eta, t in releases.items():
        bad, all_found = spurious.get(eta, 0), max(len(t), 1)
        rows.append([eta, len(t), bad, f"{bad / all_found:.4f}"])
        within = within and bad <= eta * all_found + 3 * sqrt(eta * all_found)
    header = ["tolerated (eta)", "released", "spurious", "actual ratio"]
    save_table(runs.out / "table-3.csv", header, rows, f"Table 3. {EXACT_MAY_BE_SHOWN}")
    return [
        Shape(
            "c",
            "the actual share of spurious n-grams is at most about η",
            within,
            ", ".join(f"η {row[0]}: {row[3]}" for row in rows),
        )
    ]


def mean_length(counts: Sequence[int]) -> float:
    return sum(k * n for k, n in zip(LENGTHS, counts, strict=True)) / max(sum(counts), 1)


def totals_grow(counts_by_setting: dict[float, list[int]]) -> tuple[bool, str]:
    """Whether totals rise strictly with the setting, and the count of each length does not fall by
    more than chance (3 standard deviations); and the totals as text."""
    totals = {setting: sum(counts) for setting, counts in counts_by_setting.items()}
    lengths = all(
        b >= a - 3 * sqrt(a)
        for x, y in pairwise(counts_by_setting.values())
        for a, b in zip(x, y, strict=True)
    )
    return rises(list(totals.values())) and lengths, f"totals {listed(totals)}"


def rises(totals: Sequence[int]) -> bool:
    return len(totals) > 1 and all(a < b for a, b in pairwise(totals))


def listed(totals: dict[Any, int]) -> str:
    return ", ".join(f"{setting:g}: {total:,}" for setting, total in totals.items())


def draw_lines(axes: Axes, counts_by_setting: dict[Any, list[int]], title: str) -> None:
    """One line for each setting, with the setting's total in the legend."""
    for (setting, counts), colour, marker in zip(
        counts_by_setting.items(), shades(len(counts_by_setting)), "os^Dv<>Pp", strict=False
    ):
        label = f"{setting:,g}  ({sum(counts):,} in all)"
        axes.plot(LENGTHS, counts, "-", marker=marker, color=colour, lw=2, ms=5, label=label)
    axes.legend(title=title, fontsize=9, title_fontsize=9)


def label_axes(axes: Axes, title: str, number: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("length of the n-grams, in words")
    axes.set_ylabel(number)
    axes.set_xticks(LENGTHS)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))


def save(figure: Figure, runs: Runs, number: int, *notes: str) -> None:
    figure.tight_layout(rect=(0, 0.035 + 0.035 * len(notes), 1, 1))
    lines_below = [
        runs.line,
        f"After Figure {number} of the paper. {notes[0]}; one run a point.",
        *notes[1:],
    ]
    figure.text(0.012, 0.015, "\n".join(lines_below), fontsize=8, color="0.35")
    figure.savefig(runs.out / f"figure-{number}.png", dpi=150)
    plt.close(figure)


def save_table(path: Path, header: list[str], rows: list[list[Any]], title: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    cells = [header, *[[f"{x:,}" if isinstance(x, int) else str(x) for x in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


FIGURES_AND_TABLES: tuple[Callable[[Runs, Sweeps], list[Shape]], ...] = (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    table_3,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("dpne-figures"))
    parser.add_argument("--quick", action="store_true", help="a small corpus, fewer settings")
    parser.add_argument("--users", type=int, help="authors of the corpus")
    parser.add_argument("--threads", type=int, help="threads; default: one a core")
    asked = parser.parse_args()
    out: Path = asked.out
    out.mkdir(parents=True, exist_ok=True)
    sizes = Sizes()
    small = bool(asked.users or asked.quick)
    if small:
        sizes = replace(sizes, users=asked.users or 8_000)
    start = time.perf_counter()
    runs = Runs(out, sizes, asked.threads)
    print(runs.line)
    shapes: list[Shape] = []
    for draw in FIGURES_AND_TABLES:
        begun = time.perf_counter()
        shapes += draw(runs, QUICK if asked.quick else Sweeps())
        print(f"{draw.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)
    print("\nWhich of the paper's shapes hold here:")
    for shape in sorted(shapes, key=lambda shape: shape.letter):
        print(shape.sentence(small))
    held = sum(shape.holds for shape in shapes)
    print(f"\n{held} of {len(shapes)} show. Figures and tables: {out}")
    took = time.perf_counter() - start
    print(f"{took:.0f} s in all, {time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
