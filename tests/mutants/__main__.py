"""`python -m tests.mutants [WORD ...] [--jobs N]`: all mutants, or those whose name has a word."""

import argparse
import os
import sys

from tests.mutants.planted import MUTANTS, plant_all

asked = argparse.ArgumentParser(description=__doc__)
asked.add_argument("words", nargs="*", default=[""], help="parts of the names of mutants")
asked.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
options = asked.parse_args()
chosen = [each for each in MUTANTS if any(word in each.name for word in options.words)]
if not chosen:
    sys.exit(f"no mutant's name has {' or '.join(options.words)} in it")
caught = sum(plant_all(chosen, options.jobs))
print(f"{len(chosen)} planted, {caught} caught")
sys.exit(caught < len(chosen))
