"""What four papers print, and what is computed here: DPNE, TrieHH (preprint, published), Gboard.

    python -m examples.reproduce [--all] [--data ../shared/data]

Without --all: what takes minutes. With it, also the experiments whose data cannot be had. Their
scripts run on a made-up corpus, or on a part of the tweets, and say which of a paper's shapes hold.
The folder of --data has msnbc.parquet (user_id, text); rows that lack their data say so. Seeds are
fixed: nothing here is private, and runs pay in a ledger that is thrown away. Seconds are processor
seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent
sys.path.insert(0, str(EXAMPLES))  # its scripts import one another

import numpy as np
import polars as pl
from baselines.dpsu import Baseline, Method, found_by, priced
from baselines.triehh import choose_batch, theorem_epsilon
from k_anonymity import k_anonymity
from numpy.typing import NDArray
from published_amplification import epsilon_by_blocks
from triehh_printed import log10_theta, preprint_delta

from dphh import Corpus, Ledger, ngrams
from dphh.privacy.events import DeltaEvent
from dphh.privacy.set_union import new_item_delta, new_item_threshold
from dphh.testing import SeededRandomness
from dphh.udfs.noise.table import rounded_gaussian
from dphh.udfs.rules.reports import subset_selection

DATA = EXAMPLES.parents[1] / "shared/data"

# DPNE, Table 5

LENGTHS = 6
TABLE_5_DELTA = 1e-7
TABLE_5_OPTIONS: dict[str, Any] = {"epsilon": 1.0, "delta": TABLE_5_DELTA, "max_items": 10}
TABLE_5 = {
    "dpne": (17, 254, 1273, 1954, 2221, 2020),
    "all": (17, 249, 930, 1145, 1007, 768),
    "even": (17, 246, 899, 1107, 996, 766),
    "single": (17, 260, 1483, 2180, 2210, 1819),
}
#: How many n-grams of each length each run released: a row a run.
FoundByLength = NDArray[np.int64]


def msnbc(data: Path) -> Corpus:
    path = data / "msnbc.parquet"
    return Corpus(path, user="user_id", text="text", split="white space", lower=False)


def table_5_of_verb(method: Any, corpus: Corpus, runs: int) -> FoundByLength:
    """Of `ngrams` by this method."""
    plan = ngrams(corpus, max_n=LENGTHS, method=method, counts=0, **TABLE_5_OPTIONS)
    with tempfile.TemporaryDirectory() as folder:  # never the reader's own ledger
        book = Ledger(Path(folder) / "ledger.sqlite", create=True)
        seeds = map(SeededRandomness, range(runs))
        return by_length(
            plan.run(randomness=seed, ledger=book, progress=lambda _: None).to_polars()
            for seed in seeds
        )


def table_5_of(baselines: Iterable[Baseline], corpus: Corpus, runs: int) -> FoundByLength:
    """Of DPSU. What several runs of it find, one after another, counts as one run."""
    several = [*baselines]
    return by_length(
        pl.concat([found_by(each, corpus, randomness=SeededRandomness(run)) for each in several])
        for run in range(runs)
    )


def dpsu(method: Method) -> list[Baseline]:
    """Table 5's baselines. "single" gives each length the whole budget: as many runs as lengths."""
    lengths = range(1, LENGTHS + 1) if method == "single" else [LENGTHS]
    return [priced(method, max_n=length, **TABLE_5_OPTIONS) for length in lengths]


def even_as_printed() -> Baseline:
    """Every length's threshold for the whole of delta / 2, and what that costs: the numbers of the
    row "even" come out so, and the paper's delta does not cover it."""
    (baseline,) = dpsu("even")
    levels, costs = [], []
    for level in baseline.levels:
        noise = rounded_gaussian(level.sigma_grid)
        threshold = new_item_threshold(noise, level.grid_bits, level.max_items, TABLE_5_DELTA / 2)
        levels.append(replace(level, threshold_grid=threshold))
        costs.append(new_item_delta(noise, level.grid_bits, level.max_items, threshold))
    gaussians = [event for event in baseline.events if event.kind == "gaussian"]
    events = (*gaussians, *(DeltaEvent(cost) for cost in costs))
    return replace(baseline, levels=tuple(levels), events=events)


def by_length(releases: Iterable[pl.DataFrame]) -> FoundByLength:
    lengths = range(1, LENGTHS + 1)
    return np.array([[table.filter(level=n).height for n in lengths] for table in releases])


def listed(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


# TrieHH, Table 1


def table_1(exponent: int) -> str:
    """delta, epsilon for L = 1, epsilon for L = 10, at n = 10^exponent and m = sqrt(n)."""
    users, theta = 10**exponent, log10_theta(10**exponent)
    one, ten = (theorem_epsilon(users, theta, 10 ** (exponent // 2), each) for each in (1, 10))
    return f"{preprint_delta(theta):.1e}, {one:.3g}, {ten:.3g}"


def long_sequences(exponent: int) -> str:
    """Epsilon for L = 100 at n = 10^exponent (Figure 10, as its text has it)."""
    users = 10**exponent
    batch = int(np.ceil(np.sqrt(users)))
    return f"{theorem_epsilon(users, log10_theta(users), batch, 100):.3g}"


def corollary_2() -> str:
    """What its batch costs at n = 10^6, L = 10 and epsilon = 4."""
    users = 10**6
    batch = int(-np.expm1(-4.0 / 10) / 10 * users)
    return f"{theorem_epsilon(users, log10_theta(users), batch, 10):.3g}"


def authors_settings() -> str:
    plan = choose_batch(658_769, 4.0, 10, 2.3e-12)
    return f"theta {plan.theta}, {plan.batch / plan.users:.5f} n"


# Gboard

GBOARD_REPORTS, GBOARD_DELTA = 30_000_000, 1e-10


def gboard_k() -> str:
    mechanism = subset_selection(10**6 + 1, 10.0)
    return f"{k_anonymity(mechanism, GBOARD_REPORTS, 10_000)} (45 holds too)"


# The table


@dataclass(frozen=True)
class Printed:
    """A number or a figure of a paper, and the function of the data that computes ours."""

    paper: str
    where: str
    printed: str
    ours: Callable[[Path], str]
    takes_long: bool = False


def computed(function: Callable[..., str], *given: Any) -> Callable[[Path], str]:
    return lambda _: function(*given)


def found(measured: Callable[[Corpus], FoundByLength]) -> Callable[[Path], str]:
    def ours(data: Path) -> str:
        if not (data / "msnbc.parquet").exists():
            return f"needs {data / 'msnbc.parquet'}"
        return listed(measured(msnbc(data))[0].tolist())

    return ours


def shapes(script: str, *options: str, says: str = r"holds: |(\d+ of \d+) show") -> Any:
    """How many of a paper's shapes a script finds to hold, or what else it `says`."""

    def ours(data: Path) -> str:
        if find_spec("matplotlib") is None:
            return "needs matplotlib"
        with tempfile.TemporaryDirectory() as out:
            asked = [option.replace("DATA", str(data)) for option in options]
            command = [sys.executable, str(EXAMPLES / script), "--out", out, *asked]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        matches = [*re.finditer(says, said)]
        if told := [group for match in matches for group in match.groups() if group]:
            return ", ".join(told)
        return f"{len(matches)} shapes hold, {len(re.findall('FAILS: ', said))} fail"

    return ours


DPNE, PREPRINT, PUBLISHED, GBOARD = "DPNE", "TrieHH preprint", "TrieHH published", "Gboard"
OF_DPSU = ("all", "even", "single")
TABLE = (
    Printed(DPNE, "Table 5, DPNE", listed(TABLE_5["dpne"]), found(
        lambda corpus: table_5_of_verb("dpne", corpus, 1))),
    Printed(DPNE, "Table 5, DPSU-all", listed(TABLE_5["all"]), found(
        lambda corpus: table_5_of(dpsu("all"), corpus, 1))),
    Printed(DPNE, "Table 5, DPSU-even (costs 6 delta / 2)", listed(TABLE_5["even"]), found(
        lambda corpus: table_5_of([even_as_printed()], corpus, 1))),
    Printed(DPNE, "the same within its delta", "-", found(
        lambda corpus: table_5_of(dpsu("even"), corpus, 1))),
    Printed(DPNE, "Table 5, DPSU-single (each alone)", listed(TABLE_5["single"]), found(
        lambda corpus: table_5_of(dpsu("single"), corpus, 1))),
    Printed(DPNE, "none: dphh's default", "-", found(
        lambda corpus: table_5_of_verb("forecast", corpus, 1))),
    *(
        Printed(PREPRINT, f"Table 1, n = 10^{n}: delta, eps_1, eps_10", printed,
                computed(table_1, n))
        for n, printed in (
            (4, "1e-06, 0.105, 1.05"), (6, "1e-08, 0.012, 0.12"),
            (8, "1e-10, 0.0014, 0.014"), (10, "1e-13, 0.00016, 0.0016"),
        )
    ),
    Printed(PREPRINT, "Corollary 2, epsilon 4, n = 10^6", "4", computed(corollary_2)),
    Printed(PREPRINT, "Figure 10, n = 10^4, L = 100", "above 10", computed(long_sequences, 4)),
    Printed(PREPRINT, "Figure 10, n = 10^7, L = 100", "below 0.5", computed(long_sequences, 7)),
    Printed(PREPRINT, "Figures 2-4, 10-16", "10 figures", shapes(
        "triehh_figures.py", says=r"figure +(\d+):")),
    Printed(PREPRINT, "Figures 5-9, SFP, on a part of the tweets", "shapes", shapes(
        "triehh_experiments.py", "--data", "DATA"), takes_long=True),
    Printed(PUBLISHED, "settings at (4, 2.3e-12), L = 10", "theta 15, 0.02198 n",
            computed(authors_settings)),
    Printed(GBOARD, "central epsilon, n = 3e7, delta 1e-10", "0.315", computed(
        lambda: f"{epsilon_by_blocks(10.0, GBOARD_REPORTS, GBOARD_DELTA):.5f}")),
    Printed(GBOARD, "k-anonymity, alpha = 0.95", "45", computed(gboard_k)),
    Printed(GBOARD, "Table 1, on made-up users", "77.1%, 83.1%, 92.1%", shapes(
        "gboard_experiments.py", says=r", [12] passes, epsilon 10: ([\d.]+%)"), takes_long=True),
    Printed(DPNE, "Figures 1-4, Table 3, made-up corpus", "9 shapes", shapes("dpne_figures.py"),
            takes_long=True),
)  # fmt: skip


def processor_seconds() -> float:
    """Of this process and of the scripts that it ran."""
    return sum(os.times()[:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also what takes long")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    row = "| {:<16} | {:<44} | {:<38} | {:<38} | {:>7} |".format
    print(row("paper", "where", "printed", "ours", "seconds"))
    print(row(*("-" * width for width in (16, 44, 38, 38, 7))))
    for each in TABLE:
        if asked.all or not each.takes_long:
            start = processor_seconds()
            ours = each.ours(asked.data)
            took = f"{processor_seconds() - start:.1f}"
            print(row(each.paper, each.where, each.printed, ours, took), flush=True)


if __name__ == "__main__":
    main()
