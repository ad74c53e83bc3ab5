"""`python -m tests.audit [WORD ...] [--times N] [--engine NAME]`: measured against claimed.

The table of tests/audit/audits.md: every pair of neighbours, or those with a word in the name.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.audit import cells_prior, cells_union, cells_votes
from tests.audit.measure import Cell, Measured

CELLS = (*cells_union.CELLS, *cells_prior.CELLS, *cells_votes.CELLS)
#: Of many small runs, which cost less on Polars.
MANY_RUNS = (
    *("forecast_new_pair", "forecast_shared_pair", "dpne_new_pair", "counts_over"),
    *("lifted_pair", "ldp_trie_sums", "purse_counts", "purse_counts_without"),
)


def engine_of(cell: Cell) -> str:
    return "polars" if cell.__name__ in MANY_RUNS else "duckdb"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("words", nargs="*", help="parts of the names of cells")
    asked.add_argument("--times", type=int, default=1, help="so many times the daily counts")
    asked.add_argument("--engine", help="else the quicker one for each")
    options = asked.parse_args()
    print("| verb | method | neighbours | epsilon | claimed | measured | exact | trials |")
    print("|---|---|---|---|---|---|---|---|")
    start = time.process_time()
    for cell in CELLS:
        if options.words and not any(word in cell.__name__ for word in options.words):
            continue
        with tempfile.TemporaryDirectory(prefix="dphh-audit-") as folder:
            print(
                line(cell(options.engine or engine_of(cell), Path(folder), options.times)),
                flush=True,
            )
    print(f"\n{time.process_time() - start:.0f} s of processor time")


def line(found: Measured) -> str:
    low, high = found.bounds()
    exact = "" if found.exact is None else f"{found.exact:.4f}"
    trials = found.trials + found.trials_against
    return (
        f"| `{found.verb}` | {found.method} | {found.neighbours} | {found.epsilon:.4g} | "
        f"{found.delta:.4g} | {low:.4f} to {high:.4f} | {exact} | {trials:,} |"
    )


if __name__ == "__main__":
    main()
