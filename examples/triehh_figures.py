"""Draw the computable figures of the TrieHH preprint: 2, 3, 4 and 10 to 16, as PNGs.

    python examples/triehh_figures.py [--out triehh-figures]

Solid lines follow the preprint as printed: theta = ceil(log10 n + 6) and, by its Corollary 2,
gamma = (e^(epsilon/L) - 1) / (10 e^(epsilon/L)) sqrt(n). Its proof has theta where it prints 10, so
a solid line labelled epsilon costs more than that; dashed lines divide by theta and keep epsilon.
The numbers that the captions and the text state are printed. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from baselines.triehh import theorem_epsilon
from colours import COLOURS
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from triehh_knob import knob
from triehh_printed import log10_theta, preprint_delta
from triehh_votes import FixedSize, Floats, discovery_rate, hypergeometric_tail

LEVELS = 10
EPSILONS = (1.0, 2.0, 4.0, 8.0)
LENGTHS = (1, 10, 50, 100)
#: A function of users, theta and epsilon: how many users are drawn at a level.
Rule = Callable[[Floats, Floats, float], Floats]


def preprint_batch(users: Floats, theta: Floats, epsilon: float) -> Floats:
    """The preprint's Corollary 2 as printed, cut where Theorem 1 ends; 0 where gamma is below 1."""
    return within_theorem(-math.expm1(-epsilon / LEVELS) / 10 * users, users, theta)


def published_batch(users: Floats, theta: Floats, epsilon: float) -> Floats:
    """With theta in place of 10, as the published Corollary 1 has it."""
    return within_theorem(-math.expm1(-epsilon / LEVELS) / theta * users, users, theta)


def within_theorem(batch: Floats, users: Floats, theta: Floats) -> Floats:
    whole = np.floor(np.minimum(batch, users / (theta + 1)))
    return np.where((whole**2 >= users) & (users >= 1e4), whole, 0.0)


LINES_AND_RULES: tuple[tuple[str, Rule], ...] = (("-", preprint_batch), ("--", published_batch))


def thetas_of(users: Floats) -> Floats:
    return np.array([log10_theta(max(10**4, int(n))) for n in users], dtype=np.float64)


def worst_case_rates(
    rule: Rule, users: Floats, epsilon: float, frequency: float | Floats
) -> Floats:
    """Worst-case discovery rates; 0 where the rule draws no user."""
    theta = thetas_of(users)
    batch = rule(users, theta, epsilon)
    holders = np.floor(frequency * users)
    tail = hypergeometric_tail(holders, users, np.maximum(batch, 1), theta)
    return np.where(batch > 0, tail**LEVELS, 0.0)


def populations_needed(rule: Rule, epsilon: float, frequencies: Floats) -> Floats:
    """The least n at which each frequency is found 9 times in 10: by decades, then bisection."""
    needed = np.full_like(frequencies, math.nan)
    for exponent in range(4, 10):
        low = np.full_like(frequencies, 10.0**exponent if exponent > 4 else 9999.0)
        high = np.full_like(frequencies, 10.0 ** (exponent + 1))
        here = np.isnan(needed) & (worst_case_rates(rule, high, epsilon, frequencies) >= 0.9)
        while np.any(here) and np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            enough = worst_case_rates(rule, middle, epsilon, frequencies) >= 0.9
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        needed = np.where(here, high, needed)
    return needed


class Figures:
    """Makes figures of one form and saves them into a folder."""

    def __init__(self, out: Path) -> None:
        self.out = out
        out.mkdir(parents=True, exist_ok=True)

    def axes(self, title: str, setting: str, x: str, y: str) -> Any:
        """New axes: the title says what is shown, the line below it for which setting."""
        _, axes = plt.subplots(figsize=(6, 4.4))
        axes.set_title(f"{title}\n({setting})", fontsize=10)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.3)
        return axes

    def save(self, number: int, axes: Any) -> None:
        path = self.out / f"figure-{number:02d}.png"
        axes.figure.tight_layout()
        axes.figure.savefig(path, dpi=110)
        plt.close(axes.figure)
        print(f"figure {number:2d}: {path}")


def add_legend(axes: Any, labels: list[str]) -> None:
    """Colours by label, and the two rules by line."""
    lines = [
        Line2D([], [], color=c, label=label) for c, label in zip(COLOURS, labels, strict=False)
    ]
    lines.append(Line2D([], [], color="black", linestyle="-", label="as printed: divided by 10"))
    lines.append(Line2D([], [], color="black", linestyle="--", label="mended: divided by theta"))
    axes.legend(handles=lines, fontsize=8)


def frequency_by_epsilon(figures: Figures, number: int, users: int, largest: float) -> None:
    """Figures 2 and 14."""
    theta = log10_theta(users)
    axes = figures.axes(
        f"Figure {number}: how often a sequence is found, by its frequency",
        f"n = {users:,}, L = {LEVELS}, theta = {theta}",
        "frequency of the sequence",
        "worst-case discovery rate",
    )
    frequencies = np.linspace(0, largest, 400)
    all_users = np.full_like(frequencies, users)
    for colour, epsilon in zip(COLOURS, EPSILONS, strict=False):
        for style, rule in LINES_AND_RULES:
            found = worst_case_rates(rule, all_users, epsilon, frequencies)
            axes.plot(frequencies, found, style, color=colour)
            batch = int(rule(all_users[:1], thetas_of(all_users[:1]), epsilon)[0])
            cost = theorem_epsilon(users, theta, batch, LEVELS)
            first = frequencies[np.argmax(found >= 0.9)] if found[-1] >= 0.9 else math.nan
            print(
                f"    epsilon {epsilon:g}, {rule.__name__}: m = {batch:,}, costs {cost:.3f}, "
                f"found 9 times in 10 from frequency {first:.4f}"
            )
    add_legend(axes, [f"epsilon = {epsilon:g}" for epsilon in EPSILONS])
    figures.save(number, axes)


def population_by_epsilon(
    figures: Figures,
    number: int,
    frequency: float,
    largest: float,
    epsilons: tuple[float, ...] = EPSILONS,
) -> None:
    """Figures 3 and 15."""
    axes = figures.axes(
        f"Figure {number}: how often a sequence is found, by the number of users",
        f"frequency of the sequence {frequency:g}, L = {LEVELS}",
        "population size n",
        "worst-case discovery rate",
    )
    users = np.floor(np.geomspace(1e4, largest, 400))
    for colour, epsilon in zip(COLOURS, epsilons, strict=False):
        for style, rule in LINES_AND_RULES:
            axes.semilogx(
                users, worst_case_rates(rule, users, epsilon, frequency), style, color=colour
            )
            needed = populations_needed(rule, epsilon, np.array([frequency]))[0]
            print(f"    epsilon {epsilon:g}, {rule.__name__}: 9 times in 10 from n = {needed:,.0f}")
    add_legend(axes, [f"epsilon = {epsilon:g}" for epsilon in epsilons])
    figures.save(number, axes)


def population_by_frequency(figures: Figures) -> None:
    """Figure 4."""
    axes = figures.axes(
        "Figure 4: users that it takes to find a sequence 9 times in 10",
        f"worst-case discovery rate at least 0.9, L = {LEVELS}",
        "frequency of the sequence",
        "population size n",
    )
    frequencies = np.geomspace(1e-3, 1e-1, 60)
    for colour, epsilon in zip(COLOURS, EPSILONS, strict=False):
        for style, rule in LINES_AND_RULES:
            needed = populations_needed(rule, epsilon, frequencies)
            axes.loglog(frequencies, needed, style, color=colour)
    add_legend(axes, [f"epsilon = {epsilon:g}" for epsilon in EPSILONS])
    figures.save(4, axes)


def epsilon_by_population(figures: Figures) -> None:
    """Figure 10."""
    axes = figures.axes(
        "Figure 10: what the theorem costs, by the number of users",
        "theta = ceil(log10 n + 6), gamma = 1",
        "log10 n",
        "epsilon",
    )
    exponents = np.linspace(4, 10, 200)
    for colour, length in zip(COLOURS, LENGTHS, strict=False):
        epsilons = []
        for exponent in exponents:
            users = round(10.0**exponent)
            root = math.isqrt(users - 1) + 1
            epsilons.append(theorem_epsilon(users, log10_theta(users), root, length))
        axes.semilogy(exponents, epsilons, color=colour, label=f"L = {length}")
    axes.legend(fontsize=8)
    figures.save(10, axes)
    for users, said in ((10**4, "above 10"), (10**7, "below 0.5")):
        batch = math.isqrt(users - 1) + 1
        epsilon = theorem_epsilon(users, log10_theta(users), batch, 100)
        print(f"    n = {users:,}, L = 100: epsilon = {epsilon:.3f} (the text says {said})")


def frequency_by_batch(figures: Figures, number: int, users: int, largest: float) -> None:
    """Figures 11 and 13, at theta = 11 as both captions say (the rule gives 12 at n = 10^6)."""
    theta = 11
    axes = figures.axes(
        f"Figure {number}: how often a sequence is found, by its frequency and the batch",
        f"n = {users:,}, L = {LEVELS}, theta = {theta}",
        "sequence frequency",
        "worst-case discovery rate",
    )
    frequencies = np.linspace(0, largest, 400)
    for colour, gamma in zip(COLOURS, (1, 2, 5, 10, 20), strict=False):
        batch = math.ceil(gamma * math.sqrt(users))
        epsilon = theorem_epsilon(users, theta, batch, LEVELS)
        holders = np.floor(frequencies * users)
        found = discovery_rate(FixedSize(users, batch), theta, LEVELS, holders)
        label = f"m = {batch:,} (epsilon {epsilon:.2f})"
        axes.plot(frequencies, found, color=colour, label=label)
        print(f"    {label}")
    axes.legend(fontsize=8)
    figures.save(number, axes)
    rule = 1 / (100 * users)
    print(f"    delta = {preprint_delta(theta):.2e} at theta {theta}; 1/(100 n) = {rule:.0e}")


def knob_of_k(figures: Figures, number: int, users: int) -> None:
    """Figures 12 and 16."""
    theta, batch = log10_theta(users), math.isqrt(users - 1) + 1
    axes = figures.axes(
        f"Figure {number}: which (epsilon, delta) one run has, by the choice of K",
        f"n = {users:,}, L = 1, gamma = 1, theta = {theta}",
        "K",
        "log10 delta",
    )
    ks = np.arange(theta, math.isqrt(users))
    epsilons, deltas = knob(users, theta, batch, 1, ks)
    axes.plot(ks, np.log10(deltas), color=COLOURS[0], label="log10 delta (left)")
    axes.yaxis.label.set_color(COLOURS[0])
    other = axes.twinx()
    other.semilogy(ks, epsilons, "--", color=COLOURS[1], label="epsilon (right)")
    other.set_ylabel("epsilon", color=COLOURS[1])
    axes.legend(handles=[*axes.lines, *other.lines], fontsize=8, loc="center right")
    figures.save(number, axes)
    print(
        f"    K = {ks[0]}: ({epsilons[0]:.3f}, {deltas[0]:.1e}); "
        f"K = {ks[-1]}: ({epsilons[-1]:.4f}, {deltas[-1]:.1e})"
    )


def table_1() -> None:
    print("Table 1: n, m, theta, delta, epsilon for L = 1 and L = 10")
    for exponent in (4, 6, 8, 10):
        users, batch = 10**exponent, 10 ** (exponent // 2)
        theta = log10_theta(users)
        one, ten = (theorem_epsilon(users, theta, batch, length) for length in (1, 10))
        delta = preprint_delta(theta)
        print(f"    10^{exponent:<2}  {batch:>7,}  {theta}  {delta:.2e}  {one:.3g}  {ten:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("triehh-figures"))
    figures = Figures(parser.parse_args().out)
    table_1()
    frequency_by_epsilon(figures, 2, 10**6, 0.01)
    population_by_epsilon(figures, 3, 0.01, 1e6)
    population_by_frequency(figures)
    epsilon_by_population(figures)
    frequency_by_batch(figures, 11, 10**6, 0.04)
    knob_of_k(figures, 12, 10**6)
    frequency_by_batch(figures, 13, 10**5, 0.1)
    frequency_by_epsilon(figures, 14, 10**5, 0.03)
    population_by_epsilon(figures, 15, 0.1, 1e5, (0.5, 1.0, 1.5, 2.0))
    knob_of_k(figures, 16, 10**5)


if __name__ == "__main__":
    main()
