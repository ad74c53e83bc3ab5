"""The Gboard paper's experiments on a population that is made up: Figure 1 and Table 1.

    python examples/gboard_experiments.py [--out DIR] [--users-per-level 200000] [--quick]

Coverage is the share of all contributions whose word was found. Every user draws 8 of 10,000 words
of 5 to 12 letters by a long-tailed law (the word of rank r in proportion to 1 / (r + 100)), and
types those of the first 1,000 twice: that a user's own favourites are those of all is what sets
greedy and random sampling apart, and it is an assumption. Of a user's words 3 are reported at most.
With 200,000 users a level and 15 levels there are 3 million users; the paper has 15 million, of 60
days each. The data are no secret, so nothing is booked in a ledger.

Figure 1: coverage against the local epsilon, one pass, greedy sampling; the dotted line is without
randomisation. Table 1, at epsilon 10: greedy sampling, random sampling, and random sampling in two
passes of half as many users a level; and these at the local epsilon that the paper's population and
central epsilon allow, by what sums of its reports tell. Then coverage by what sums tell of a whole
user (`--only users`). Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from dphh import Corpus, Plan, ldp_trie
from dphh.engines import open_host
from dphh.mechanisms.ldp_trie.run import ldp_trie_levels
from dphh.reader.corpus import as_sequences
from dphh.reader.rows import Limits
from dphh.udfs.noise.randomness import SystemRandomness

LEVELS, KEEP, REPORTS = 15, 10_000, 3
#: The paper's own numbers, by which its promises are made: 60 reports of 500,000 users a level.
PAPER_OPTIONS: dict[str, Any] = {
    "delta": 1e-10, "users_per_level": 500_000, "contributions": 60,
    "max_length": LEVELS, "keep": KEEP,
}  # fmt: skip
PAPER_CENTRAL_EPSILON = 0.315
#: What all reports of a user may tell, in sums.
USER_EPSILONS = (1.0, 2.0, 4.0)
DRAWS, WORDS, SHIFT, TYPED_TWICE = 8, 10_000, 100, 1000
EPSILONS = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0)
#: What Table 1 of the paper says, beside ours.
TABLE_1_SETTINGS = (
    ("greedy sampling, one pass", "greedy", 1, "77.1%"),
    ("random sampling, one pass", "random", 1, "83.1%"),
    ("random sampling, two passes", "random", 2, "92.1%"),
)


def write_population(path: Path, users: int) -> None:
    """The same population every time: who contributes which word, one row each."""
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false; SET preserve_insertion_order = false")
        con.execute(
            f"""
            COPY (
                WITH drawn AS (
                    SELECT
                        i // {DRAWS} AS person,
                        CAST(floor({SHIFT} * (
                            pow({WORDS / SHIFT + 1}, hash(i, 'word') / 18446744073709551616.0) - 1
                        )) AS INTEGER) AS rank
                    FROM range({users} * {DRAWS}) AS r(i)
                )
                SELECT
                    person,
                    left(
                        translate(
                            CAST(hash(rank // 20, 'stem') AS VARCHAR)[:4]
                            || CAST(hash(rank, 'ending') AS VARCHAR),
                            '0123456789', 'etaoinshrd'
                        ),
                        CAST(5 + hash(rank, 'length') % 8 AS INTEGER)
                    ) AS word
                FROM drawn, range(2) AS times(again)
                WHERE again = 0 OR rank < {TYPED_TWICE}
            ) TO '{path}' (FORMAT parquet)
            """
        )


def words_found(plan: Plan, corpus: Corpus) -> set[str]:
    """The words that a run of the plan finds."""
    found: set[str] = set()
    host = open_host("duckdb", corpus, SystemRandomness(), Limits())
    try:
        for done in ldp_trie_levels(plan.price, host, lambda _, draw: draw()):
            ended = done.rows.filter(done.rows["ended"])
            found.update(ended["item"].to_pylist())
    finally:
        host.close()
    return found


def without_randomisation(plan: Plan) -> Plan:
    """The same run without randomisation. NOT private."""
    levels = tuple(replace(level, size=1, numerator=2**64 - 1) for level in plan.levels)
    return replace(plan, price=replace(plan.price, levels=levels))


def experiments(
    path: Path, per_level: int, epsilons: tuple[float, ...], only: str | None
) -> dict[str, Any]:
    corpus = as_sequences(Corpus(str(path), user="person", item="word"), 1)
    with duckdb.connect() as con:
        counts = dict(con.execute(f"SELECT word, count(*) FROM '{path}' GROUP BY word").fetchall())
    total = sum(counts.values())

    def plan_of(epsilon: float | None, sampling: Any, passes: int, **other: Any) -> Plan:
        return ldp_trie(
            corpus, local_epsilon=epsilon, delta=1e-10, users_per_level=per_level // passes,
            contributions=REPORTS, max_length=LEVELS, keep=KEEP, sampling=sampling, passes=passes,
            **other,
        )  # fmt: skip

    def coverage(plan: Plan) -> float:
        found = words_found(plan, corpus)
        share = sum(count for word, count in counts.items() if word in found) / total
        print(f"{plan['sampling']}, {plan['passes']} passes, epsilon {plan.privacy.epsilon:g}: "
              f"{share:.1%} of contributions", flush=True)  # fmt: skip
        return share

    if only == "users":
        return {"users": by_user_epsilon(coverage, plan_of)}
    print("without randomisation:", end=" ")
    return {
        "limit": coverage(without_randomisation(plan_of(10.0, "greedy", 1))),
        "figure": [(epsilon, coverage(plan_of(epsilon, "greedy", 1))) for epsilon in epsilons],
        "table": [
            (name, coverage(plan_of(10.0, sampling, passes)), paper)
            for name, sampling, passes, paper in TABLE_1_SETTINGS
        ]
        + [by_central_epsilon(coverage, plan_of)],
        "users": by_user_epsilon(coverage, plan_of),
    }


def by_central_epsilon(
    coverage: Callable[[Plan], float], plan_of: Callable[..., Plan]
) -> tuple[str, float, str]:
    """The local epsilon that the paper's 30 million reports hide within its central 0.315."""
    local = ldp_trie(**PAPER_OPTIONS, central_epsilon=PAPER_CENTRAL_EPSILON).privacy.epsilon
    name = f"random sampling, two passes, at local epsilon {local:.4g}"
    return name, coverage(plan_of(local, "random", 2)), "92.1%"


def by_user_epsilon(
    coverage: Callable[[Plan], float], plan_of: Callable[..., Plan]
) -> list[tuple[float, str, float, float]]:
    """Coverage by what all reports of a user may tell: with the local epsilon that keeps to it for
    the paper's population (its 30 million reports a level), and for this one."""
    found = []
    for epsilon in USER_EPSILONS:
        papers = ldp_trie(**PAPER_OPTIONS, user_epsilon=epsilon).privacy.epsilon
        own = plan_of(None, "random", 2, user_epsilon=epsilon)
        for whose, plan in (("the paper's", plan_of(papers, "random", 2)), ("this one", own)):
            local = plan.privacy.epsilon
            print(f"user-level {epsilon:g} for {whose}, local {local:.4g}:", end=" ")
            found.append((epsilon, whose, local, coverage(plan)))
    return found


def write_users(found: list[tuple[float, str, float, float]], out: Path) -> None:
    """The figure and table of coverage by user-level epsilon."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from colours import COLOURS

    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4))
    for colour, whose in zip(COLOURS, ("the paper's", "this one"), strict=False):
        of = [(epsilon, 100 * share) for epsilon, who, _, share in found if who == whose]
        axes.plot(*zip(*of, strict=True), "-o", color=colour, label=f"population: {whose}")
    axes.axhline(92.1, linestyle=":", color=COLOURS[2], label="the paper, at local epsilon 10")
    axes.set_title("How much is found, by what sums tell of a whole user", fontsize=10)
    axes.set(xlabel="user-level epsilon", ylabel="coverage, % of contributions", ylim=(0, 100))
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(out / "figure-users.png", dpi=150)
    with (out / "table-users.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["user-level epsilon", "population", "local epsilon", "coverage"])
        rows.writerows((e, who, f"{local:.4g}", f"{share:.1%}") for e, who, local, share in found)


def write_figure_and_table(found: dict[str, Any], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from colours import COLOURS

    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4))
    epsilons, shares = zip(*found["figure"], strict=True)
    axes.plot(
        epsilons, [100 * share for share in shares], "-o", color=COLOURS[0], label="LDP TrieHH"
    )
    axes.axhline(100 * found["limit"], linestyle=":", color=COLOURS[1], label="no randomisation")
    axes.set_title("How much of what people type is found, by local epsilon", fontsize=10)
    axes.set(xlabel="local epsilon", ylabel="coverage, % of contributions", ylim=(0, 100))
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(out / "figure-1.png", dpi=150)
    with (out / "table-1.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["setting", "coverage", "in the paper"])
        rows.writerows((name, f"{share:.1%}", paper) for name, share, paper in found["table"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("gboard-experiments"))
    parser.add_argument("--users-per-level", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true", help="Two points of the figure only.")
    parser.add_argument("--only", choices=["users"], help="One part only.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "population.parquet"
        write_population(path, asked.users_per_level * LEVELS)
        epsilons = (4.0, 10.0) if asked.quick else EPSILONS
        found = experiments(path, asked.users_per_level, epsilons, asked.only)
        if "users" in found:
            write_users(found["users"], asked.out)
        if asked.only is None:
            write_figure_and_table(found, asked.out)


if __name__ == "__main__":
    main()
