"""D and D + u under noise that makes up for what u adds: every noised table is then the same.

A level of the forecast ladder is private because all that it shows is a function of its noised
tables, and because u moves their sums by no more than was priced. So here D + u is run with the
noise of D, less what u adds by the proof (`docs/ngrams.md`, points 1 and 2), worked out in plain
Python from u's own texts and from what the run of D showed. Whatever else hung on u, such as the
weight of somebody else, a bin, a class or a number of grams, would show in what is released.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.mechanisms.ngrams.forecast.climb import ForecastRelease, Step, begun
from dphh.mechanisms.ngrams.forecast.levels import draw_level
from dphh.mechanisms.ngrams.ladder.lift import LIFTS, public_lift
from dphh.mechanisms.ngrams.ladder.placed import Placed
from dphh.mechanisms.ngrams.ladder.rungs import Ladder, first_ladder
from dphh.prior import Prior
from dphh.privacy.forecast_rounds import bins
from dphh.public.counting import prior_of_items
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import host_on
from tests.engines.watched import (
    DRAWN,
    Draw,
    Watched,
    check_norms,
    drawing,
    grams_held,
    in_round_1,
    in_round_2,
    to_lists,
)

Rows = Sequence[tuple[str, str]]
WORDS = [f"w{number}" for number in range(12)]
SIGMA_GRID = 2**10
LEVELS = (2, 3, 4)


@dataclass
class Seen:
    """Of a run: what it released, and what every round was told and drew."""

    released: list[ForecastRelease] = field(default_factory=list)
    ladders: list[Ladder] = field(default_factory=list)
    rounds: list[Watched] = field(default_factory=list)
    noise: dict[Draw, int] = field(default_factory=dict)

    def shown(self) -> list[Any]:
        tables = [released.to_table().to_pydict() for released in self.released]
        return [*(rounds.said() for rounds in self.rounds), *tables]


@dataclass
class Watching:
    """A step whose rounds are watched."""

    step: Step
    rounds: list[Watched]

    def run(self, of_engine: Any) -> ForecastRelease:
        self.rounds.append(Watched(of_engine))
        return self.step.run(self.rounds[-1])


def climbed(
    engine: str,
    folder: Path,
    rows: Rows,
    mu: float,
    less: dict[Draw, int],
    prior: Prior | None = None,
) -> Seen:
    """All levels above the words, which are all released; `less`: by how much draws are less."""
    seen = Seen()
    run = begun(
        len(WORDS), np.geomspace(3.0, 90.0, len(WORDS)), 0.9, LEVELS[-1], mu, 30.0, SIGMA_GRID
    )
    ladder = first_ladder(pa.array(WORDS), "both")
    path = folder / "corpus.parquet"
    table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
    table.write_parquet(path)
    corpus = Corpus(path, user="who", text="what")
    with (
        host_on(engine, corpus, SeededRandomness(3)) as host,
        drawing(engine, seen.noise, less),
    ):
        host.gather("users", Words(ends=True))
        placed = Placed(host)
        for level in LEVELS:
            lift = None
            if prior is not None:
                numbers = [WORDS.index(word) for word in prior.vocabulary.to_pylist()]
                lift = public_lift(prior, np.array(numbers), ladder.rungs)
            step = Watching(run.step(lift), seen.rounds)
            table = draw_level(placed, step, ladder, str(level))  # type: ignore[arg-type]
            released = ForecastRelease.from_table(table)
            seen.ladders.append(ladder)
            seen.released.append(released)
            ladder, run = ladder.with_next(released.keys), run.after(released)
    return seen


def what_one_adds(seen: Seen, rows: Rows, texts: Sequence[str]) -> dict[Draw, int]:
    """By the proof: what a user of these texts adds to D's noised tables, by the rows' bins."""
    users: defaultdict[str, list[str]] = defaultdict(list)
    for user, text in rows:
        users[user].append(text)
    adds: dict[Draw, int] = {}
    law = bins(SIGMA_GRID)
    for level, ladder, rounds in zip(LEVELS, seen.ladders, seen.rounds, strict=True):
        keys = grams_held(ladder, WORDS, texts)
        if not keys:
            continue
        sums = dict.fromkeys(keys, 0)
        for others in (grams_held(ladder, WORDS, of_user) for of_user in users.values()):
            for key in keys & others:
                sums[key] += in_round_1(rounds.unit_1, len(others))
        plain = in_round_1(rounds.unit_1, len(keys))
        list_bin, own = to_lists(rounds.unit_1, len(keys))
        adds[f"{level}/list sizes", str(-1 - list_bin)] = own
        g = {}
        for key in keys:
            adds[f"{level}/round 1", str(key)] = plain
            noisy = sums[key] + seen.noise[f"{level}/round 1", str(key)]
            row = class_of(rounds.valid, key), law.of(np.array([noisy]))[0]
            g[key] = int(rounds.weights[row])
        for key, x in in_round_2(rounds.unit_2, g).items():
            adds[f"{level}/round 2", str(key)] = x
    return adds


def class_of(valid: Any, key: int) -> int:
    left, right = key >> 32, key % 2**32
    of_forecasts = int(valid.left[left] + valid.right[right])
    if valid.public is None:
        return of_forecasts
    public = valid.public
    lacking = of_forecasts + int(public.shifts[public.left[left] + public.right[right]])
    listed = dict(zip(public.keys.tolist(), public.classes.tolist(), strict=True))
    return listed.get(key, lacking)


def corpus_and_newcomer(seed: int, users: int) -> tuple[Rows, Rows]:
    """Every gram of the newcomer is somebody's, so that what is held is held on both sides. Two
    users hold nearly all grams, and where noise is large give nothing to any of them in round 1."""
    random = Random(seed)
    long = random.choices(WORDS, k=900)
    rows = [("all", " ".join(long)), ("all again", " ".join(reversed(long)))]
    for user in range(users):
        for _ in range(random.randint(1, 3)):
            start = random.randrange(880)
            rows.append((f"u{user}", " ".join(long[start : start + random.randint(1, 20)])))
    newcomer = [("new", "never released")]
    for length in random.choice([(2,), (1, 5, 40), (900,), (3, 3, 7)]):
        start = random.randrange(901 - length)
        newcomer.append(("new", " ".join(long[start : start + length])))
    random.shuffle(rows)
    return rows, newcomer


def prior_that_lifts(texts: Sequence[str]) -> tuple[Prior, int]:
    """One that has a pair of these texts 100 times as often as chance would; and that pair."""
    said = [text.split() for text in texts]
    lifted = next([*pair] for text in said for pair in pairwise(text) if {*pair} <= {*WORDS})
    items = [[word] for word in WORDS] + [lifted, ["w0", "w1"], ["w5", "w5"]]
    items = [item for place, item in enumerate(items) if item not in items[:place]]
    counts = [100 if len(item) == 1 else 9_000 if item == lifted else 3 for item in items]
    prior = prior_of_items(dict(zip(map(tuple, items), counts, strict=True)), LEVELS[-1])
    return prior, WORDS.index(lifted[0]) << 32 | WORDS.index(lifted[1])


@pytest.mark.parametrize("engine", DRAWN)
@pytest.mark.parametrize(
    ("seed", "users", "mu", "with_prior"),
    [(1, 60, 0.08, False), (3, 1, 0.04, False), (4, 60, 1.0, False), (5, 1, 0.08, False),
     (1, 60, 0.08, True), (2, 60, 0.3, True)],
)  # fmt: skip
def test_noise_that_makes_up_for_a_newcomer_makes_the_same_release(
    engine, seed, users, mu, with_prior, tmp_path
):
    rows, newcomer = corpus_and_newcomer(seed, users)
    texts = [text for _, text in newcomer]
    prior, lifted = prior_that_lifts(texts) if with_prior else (None, 0)
    without = climbed(engine, tmp_path, rows, mu, {}, prior)
    adds = what_one_adds(without, rows, texts)
    assert adds
    if with_prior:
        assert LIFTS[class_of(without.rounds[0].valid, lifted) % len(LIFTS)] >= 10
        assert adds["2/round 1", str(lifted)] > 0
    first = Random(seed).randrange(len(rows))
    with_user = climbed(
        engine, tmp_path, [*rows[:first], *newcomer, *rows[first:]], mu, adds, prior
    )
    assert with_user.shown() == without.shown()
    assert all(len(released.keys) > 5 for released in without.released)
    for level, rounds in zip(LEVELS, without.rounds, strict=True):
        check_norms(str(level), rounds, adds)
