"""D and D + u under noise that makes up for what u adds: every noised table is then the same.

A level of the forecast ladder is private because all that it shows is a function of its noised
tables, and because u moves their sums by no more than was priced. So here D + u is run with the
noise of D, less what u adds by the proof (`docs/ngrams.md`, points 1 and 2), worked out in plain
Python from u's own texts and from what the run of D showed. Whatever else hung on u, such as the
weight of somebody else, a bin, a class or a number of grams, would show in what is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

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
from dphh.public.counted_texts import prior_of_items
from dphh.testing import SeededRandomness
from dphh.udfs.draws import noise
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import host_on

Rows = Sequence[tuple[str, str]]
#: What an engine draws for, and the name of the row.
Draw = tuple[str, str]

WORDS = [f"w{number}" for number in range(12)]
SIGMA_GRID = 2**10
LEVELS = (2, 3, 4)
#: Where each engine's steps take their noise from.
DRAWN = {"duckdb": "dphh.udfs.draws.noise", "polars": "dphh.engines.polars.host"}


@dataclass
class Seen:
    """Of a run: what it released, and what every round was told and drew."""

    released: list[ForecastRelease] = field(default_factory=list)
    ladders: list[Ladder] = field(default_factory=list)
    rounds: list[Any] = field(default_factory=list)
    noise: dict[Draw, int] = field(default_factory=dict)


class Watched:
    """An engine's rounds; keeps what the driver says and hears."""

    def __init__(self, rounds: Any) -> None:
        self.of_engine = rounds

    def first_round(self, level: int, valid: Any, law: Any, unit: int) -> Any:
        self.valid, self.unit_1 = valid, unit
        self.first = self.of_engine.first_round(level, valid, law, unit)
        return self.first

    def second_round(self, weights: Any, unit: int) -> Any:
        self.weights, self.unit_2 = weights, unit
        self.negatives = self.of_engine.second_round(weights, unit)
        return self.negatives

    def passed(self, thresholds: Any) -> Any:
        self.passing = self.of_engine.passed(thresholds)
        return self.passing


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
    with host_on(engine, corpus, SeededRandomness(3)) as host, drawing(engine, seen, less):
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


@contextmanager
def drawing(engine: str, seen: Seen, less: dict[Draw, int]) -> Iterator[None]:
    draw = noise.draw_rounded_gaussian

    def drawn(randomness: Any, sigma: int, count: int, purpose: str, keys: Any = None) -> Any:
        found = draw(randomness, sigma, count, purpose, keys)
        names = [] if keys is None else keys.to_pylist()
        seen.noise |= {(purpose, name): int(x) for name, x in zip(names, found, strict=True)}
        return found - np.array([less.get((purpose, name), 0) for name in names], dtype=np.int64)

    with patch(f"{DRAWN[engine]}.draw_rounded_gaussian", drawn):
        yield


def held(ladder: Ladder, texts: Sequence[str]) -> set[int]:
    """The valid grams of a user: side by side stand two grams that were released."""
    keys = set()
    for text in texts:
        places = [WORDS.index(word) if word in WORDS else None for word in text.split()]
        for rung in [*ladder.rungs[1:], None]:
            pairs = [
                None if left is None or right is None else left << 32 | right
                for left, right in pairwise(places)
            ]
            if rung is None:
                keys |= {pair for pair in pairs if pair is not None}
            else:
                at = {key: place for place, key in enumerate(rung.keys.tolist())}
                places = [at.get(pair) for pair in pairs]
    return keys


def what_one_adds(seen: Seen, rows: Rows, texts: Sequence[str]) -> dict[Draw, int]:
    """By the proof: what a user of these texts adds to D's noised tables, by the rows' bins."""
    users: dict[str, list[str]] = {}
    for user, text in rows:
        users.setdefault(user, []).append(text)
    adds: dict[Draw, int] = {}
    law = bins(SIGMA_GRID)
    for level, ladder, rounds in zip(LEVELS, seen.ladders, seen.rounds, strict=True):
        keys = held(ladder, texts)
        if not keys:
            continue
        sums = dict.fromkeys(keys, 0)
        for others in (held(ladder, of_user) for of_user in users.values()):
            for key in keys & others:
                sums[key] += isqrt(rounds.unit_1**2 * 49 // (50 * len(others)))
        plain = isqrt(rounds.unit_1**2 * 49 // (50 * len(keys)))
        sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
        list_bin = sum(size <= len(keys) for size in sizes) - 1
        adds[f"{level}/list sizes", str(-1 - list_bin)] = isqrt(rounds.unit_1**2 // 50)
        g = {}
        for key in keys:
            adds[f"{level}/round 1", str(key)] = plain
            noisy = sums[key] + seen.noise[f"{level}/round 1", str(key)]
            row = class_of(rounds.valid, key), law.of(np.array([noisy]))[0]
            g[key] = int(rounds.weights[row])
        norm = isqrt(sum(x * x for x in g.values()) - 1) + 1
        for key, x in g.items():
            adds[f"{level}/round 2", str(key)] = rounds.unit_2 * x // norm
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


def shown(seen: Seen) -> list[list[Any]]:
    return [
        [
            rounds.first.counts.tolist(),
            rounds.first.lists.tolist(),
            rounds.negatives.tolist(),
            *(column.tolist() for column in vars(rounds.passing).values()),
            released.to_table().to_pydict(),
        ]
        for rounds, released in zip(seen.rounds, seen.released, strict=True)
    ]


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


@pytest.mark.parametrize("engine", DRAWN)
@pytest.mark.parametrize(
    ("seed", "users", "mu"), [(1, 60, 0.08), (2, 60, 0.3), (3, 1, 0.04), (4, 60, 1.0), (5, 1, 0.08)]
)
def test_noise_that_makes_up_for_a_newcomer_makes_the_same_release(
    engine, seed, users, mu, tmp_path
):
    rows, newcomer = corpus_and_newcomer(seed, users)
    without = climbed(engine, tmp_path, rows, mu, {})
    adds = what_one_adds(without, rows, [text for _, text in newcomer])
    assert adds
    first = Random(seed).randrange(len(rows))
    with_user = climbed(engine, tmp_path, [*rows[:first], *newcomer, *rows[first:]], mu, adds)
    assert shown(with_user) == shown(without)
    assert all(len(released.keys) > 5 for released in without.released)
    check_norms(without, adds)


@pytest.mark.parametrize("engine", DRAWN)
@pytest.mark.parametrize(("seed", "users", "mu"), [(1, 60, 0.08), (2, 60, 0.3), (4, 60, 1.0)])
def test_the_same_with_a_prior_that_lifts_what_the_newcomer_holds(
    engine, seed, users, mu, tmp_path
):
    """A pair that the public text has 100 times as often as chance would."""
    rows, newcomer = corpus_and_newcomer(seed, users)
    said = [text.split() for _, text in newcomer]
    lifted = next([*pair] for text in said for pair in pairwise(text) if {*pair} <= {*WORDS})
    items = [[word] for word in WORDS] + [lifted, ["w0", "w1"], ["w5", "w5"]]
    items = [item for place, item in enumerate(items) if item not in items[:place]]
    counts = [100 if len(item) == 1 else 9_000 if item == lifted else 3 for item in items]
    prior = prior_of_items(dict(zip(map(tuple, items), counts, strict=True)), LEVELS[-1])
    without = climbed(engine, tmp_path, rows, mu, {}, prior)
    of_lifted = WORDS.index(lifted[0]) << 32 | WORDS.index(lifted[1])
    assert LIFTS[class_of(without.rounds[0].valid, of_lifted) % len(LIFTS)] >= 10
    adds = what_one_adds(without, rows, [text for _, text in newcomer])
    assert adds["2/round 1", str(of_lifted)] > 0
    with_user = climbed(engine, tmp_path, [*rows, *newcomer], mu, adds, prior)
    assert shown(with_user) == shown(without)
    assert all(len(released.keys) > 5 for released in without.released)
    check_norms(without, adds)


def check_norms(without: Seen, adds: dict[Draw, int]) -> None:
    # Two tables a level, each moved by the unit at most.
    for level, rounds in zip(LEVELS, without.rounds, strict=True):
        of_rounds = (("round 1", "list sizes"), rounds.unit_1), (("round 2",), rounds.unit_2)
        for tables, unit in of_rounds:
            purposes = [f"{level}/{table}" for table in tables]
            assert sum(x * x for (to, _), x in adds.items() if to in purposes) <= unit**2
