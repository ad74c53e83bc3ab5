"""A set-union method of one's own: each user's weights are in proportion to a public list's.

Who knows beforehand which words matter can say so: of a user's norm, a listed word gets more than
others do. A user's vector keeps its L2 norm, so the release is a Gaussian one, and a threshold that
holds for any weights keeps back new words (docs/composition.md, "Thresholds for any weights").
Rounds, shares, noise and thresholds of the shipped methods are options (docs/items.md, "By hand").
To ship such a method, put this file beside the others in `dphh/mechanisms/set_union/`, its line
into `methods.py`, and its claim into tests (docs/architecture.md, "A set-union method").

python -m examples.own_method
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from dphh import Corpus, Ledger, Release, items, verify
from dphh.engines.host import DrawOnce, Host
from dphh.mechanisms.counts.of_found import CountsOptions
from dphh.mechanisms.running import Draws, steps_of
from dphh.mechanisms.set_union.draws import draw_words
from dphh.mechanisms.set_union.levels import (
    DrawnRound,
    ReweighedLevel,
    SetUnionLevel,
    round_level,
    threshold_delta,
)
from dphh.mechanisms.set_union.methods import METHODS, SetUnionMethod
from dphh.mechanisms.terms import (
    NOISE_TABLE_NOTE,
    Priced,
    arithmetic_delta,
    checked_arithmetic_delta,
)
from dphh.privacy.events import DeltaEvent, GaussianEvent
from dphh.privacy.gaussian import gaussian_sigma
from dphh.privacy.set_union import grid_bits
from dphh.udfs.kernel.contributions import ONE_W
from dphh.udfs.kernel.positions import ValuesByWord

#: Public: words with all of a w of 1, and the w of every other word.
LISTED = pa.array(["fever", "cough", "rash"])
W = ValuesByWord(LISTED, np.full(len(LISTED), ONE_W), other_value=ONE_W // 4)
THEOREM = (
    "one Gaussian release of what users add, at any weights of a public list, and a threshold that "
    "holds for any weights, composed exactly (docs/composition.md); both directions"
)


def price(epsilon: float, delta: float, max_items: int, counting: CountsOptions) -> Priced:
    """Half of delta pays for the noise, and half for new items."""
    spare = arithmetic_delta(max_items, epsilon) + counting.arithmetic_delta(epsilon)
    spare = checked_arithmetic_delta(spare, epsilon, delta)
    total = gaussian_sigma(epsilon, delta / 2 - spare)
    sigma = counting.sigma_of_finding(total)
    level = round_level(ReweighedLevel, grid_bits(sigma, max_items), sigma, max_items, delta / 2, 1)
    events = (
        GaussianEvent(level.sigma, note="weights by a list"),
        DeltaEvent(threshold_delta(level), note="new items over the threshold"),
        *counting.counts_events(total),
        DeltaEvent(spare, note=NOISE_TABLE_NOTE),
    )
    shares = (("Gaussian curve", delta / 2 - spare), ("new items", delta / 2), ("draws", spare))
    return Priced((level,), events, shares)


def run(levels: Sequence[SetUnionLevel], host: Host, once: DrawOnce) -> Iterator[DrawnRound]:
    (level,) = levels
    yield level, once("items/by list", partial(draw_words, host, level, "items/by list", w=W))


def draws(levels: Sequence[SetUnionLevel]) -> Draws:
    """What `run` asks, for `plan.sql()`."""
    (level,) = levels
    steps = "words_of_round", "released_words"
    yield "items/by list", steps_of(level, "items/by list", *steps, released=None)


BY_LIST = SetUnionMethod(THEOREM, price, run, draws)


def main(engine: str = "duckdb") -> Release:
    METHODS["by list"] = BY_LIST
    common = "the and of to in is on it at"
    texts = [f"{common} {'fever' if user % 9 else 'lunch'} {user}" for user in range(400)]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.parquet"
        pl.DataFrame({"who": range(400), "note": texts}).write_parquet(notes)
        corpus, ledger = Corpus(notes, user="who", text="note"), Ledger(f"{folder}/ledger.sqlite")
        ledger.add("notes", corpus, 2.0, 1e-6)
        plan = items(corpus, epsilon=1.0, delta=1e-7, max_items=20, method="by list")
        out = f"{folder}/found"
        release = plan.run(engine=engine, ledger=ledger, out=out)
        print(release.to_polars(), *ledger.runs(), *verify(out, ledger=ledger), sep="\n")
    return release


if __name__ == "__main__":
    main(*sys.argv[1:])
