"""`python -m tests.mutants [WORD ...] [--jobs N]`: all mutants, or those with a word in the
name."""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutants.plant import plant_all
from tests.mutants.planted import MUTANTS


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("words", nargs="*", help="parts of the names of mutants")
    asked.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    options = asked.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if not options.words or any(word in mutant.name for word in options.words)
    ]
    if not chosen:
        sys.exit(f"no mutant's name has {' or '.join(options.words)} in it")
    verdicts = plant_all(chosen, options.jobs)
    survived = [verdict for verdict in verdicts if not verdict.caught]
    print(f"{len(verdicts)} planted, {len(verdicts) - len(survived)} caught")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
