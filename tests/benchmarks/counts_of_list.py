"""`python -m tests.benchmarks.counts_of_list CORPUS --user U --text T --of LIST`: how far counts of
a public list are from the truth, how wide their intervals are, and how many hold it.

The truth is the same run without noise, in which no user is bounded. A seed a run.
"""

import argparse
from tempfile import TemporaryDirectory

import numpy as np

import dphh
from dphh.testing import SeededRandomness
from tests.conftest import NoNoise

asked = argparse.ArgumentParser(description=__doc__)
asked.add_argument("corpus")
asked.add_argument("--user", required=True)
asked.add_argument("--text", required=True)
asked.add_argument("--of", required=True)
asked.add_argument("--by")
asked.add_argument("--groups", default="")
asked.add_argument("--epsilon", type=float, default=1.0)
asked.add_argument("--delta", type=float, default=1e-7)
asked.add_argument("--max-held", type=int, nargs="*", default=[])
asked.add_argument("--runs", type=int, default=3)
options = asked.parse_args()
corpus = dphh.Corpus(options.corpus, user=options.user, text=options.text)
grouped = {"by": options.by, "groups": options.groups} if options.by else {}


with TemporaryDirectory() as folder:
    ledger = dphh.Ledger(f"{folder}/ledger", create=True)

    def columns(randomness, max_held):
        plan = dphh.counts(
            corpus, of=options.of, epsilon=options.epsilon, delta=options.delta,
            max_held=max_held, **grouped,
        )  # fmt: skip
        release = plan.run(ledger=ledger, randomness=randomness, again=True)
        table = release.to_polars().sort("item", *(["group_name"] if grouped else []))
        return release.manifest["levels"][0], *(table[x].to_numpy() for x in COLUMNS)

    COLUMNS = "users", "low", "high"
    _, truth, *_ = columns(NoNoise(), 10**6)
    print("max_held   noise   error   width   of rarer half   of commoner   hold the truth")
    for max_held in [None, *options.max_held]:
        told = []
        for seed in range(options.runs):
            level, users, low, high = columns(SeededRandomness(seed), max_held)
            rare = truth <= np.median(truth)
            width, holds = high - low, (low <= truth) & (truth <= high)
            error = np.abs(users - truth).mean()
            told.append([level["max_items"], level["sigma"], error, width.mean(),
                         width[rare].mean(), width[~rare].mean(), holds.mean()])  # fmt: skip
        of = "chosen" if max_held is None else "given"
        numbers = "  ".join(f"{x:9,.1f}" for x in np.mean(told, axis=0)[:-1])
        print(f"{numbers}  {np.mean(told, axis=0)[-1]:.3f}  ({of})")
