"""D and D + u under noise that makes up for what u adds: every noised table is then the same.

A level of the forecast ladder is private because all that it shows is a function of its noised
tables, and because u moves their sums by no more than was priced. So here D + u is run with the
noise of D, less what u adds by the proofs (docs/ngrams.md, points 1 and 2; docs/prior.md), worked
out in plain Python from u's own texts and from what the run of D showed. Whatever else depended on
u, such as the weight of somebody else, a bin, a class or a number of grams, would show.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from math import isqrt
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus, ngrams
from dphh.mechanisms.ngrams.ladder.classes import LIFTS
from dphh.mechanisms.ngrams.ladder.rungs import first_ladder
from dphh.testing import SeededRandomness
from dphh.udfs.noise.sampler import draw_rounded_gaussian
from tests.engines.forecasts import Watched, levels_of, on_grid

#: What an engine draws for, and the name of the row.
Draw = tuple[str, str]
#: Where each engine's steps take their noise from.
DRAWN = {"duckdb": "dphh.udfs.noise.sampler", "polars": "dphh.engines.polars.host"}
Rows = Sequence[tuple[str, str]]
Texts = Sequence[str]
WORDS = [f"w{number:02}" for number in range(12)]
#: With a prior, its list has these; no word is held by the newcomer alone.
LISTED = WORDS[:9]


@contextmanager
def drawing(engine: str, drawn: dict[Draw, int], less: Mapping[Draw, int]) -> Iterator[None]:
    """Writes down the noise of each row, which is then `less` by so much."""

    def of(randomness: Any, sigma: int, count: int, purpose: str, keys: Any = None) -> Any:
        found = draw_rounded_gaussian(randomness, sigma, count, purpose, keys)
        names = [] if keys is None else keys.to_pylist()
        drawn.update({(purpose, name): int(x) for name, x in zip(names, found, strict=True)})
        return found - np.array([less.get((purpose, name), 0) for name in names], dtype=np.int64)

    with patch(f"{DRAWN[engine]}.draw_rounded_gaussian", of):
        yield


def grams_held(ladder: Any, words: Sequence[str], texts: Sequence[str]) -> set[int]:
    """The valid grams of a user: side by side stand two grams that were released."""
    keys: set[int] = set()
    for text in texts:
        places = [words.index(word) if word in words else None for word in text.split()]
        for rung in [*ladder.rungs[1:], None]:
            pairs = [
                None if left is None or right is None else left << 32 | right
                for left, right in pairwise(places)
            ]
            if rung is None:
                keys |= {pair for pair in pairs if pair is not None}
            else:
                at = {key: place for place, key in enumerate(rung.keys.tolist())}
                places = [at.get(pair) for pair in pairs]  # type: ignore[arg-type]
    return keys


def in_round_1(unit: int, number: int) -> int:
    """What a user of so many grams adds to each of them."""
    return isqrt(unit * unit * 49 // (50 * number))


def to_lists(unit: int, number: int) -> tuple[int, int]:
    """To which list size such a user adds, and how much."""
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
    return sum(size <= number for size in sizes) - 1, isqrt(unit * unit // 50)


def in_round_2(unit: int, g: Mapping[Any, int]) -> dict[Any, int]:
    """What a user adds to each of their grams, whose rows have these weights."""
    norm = isqrt(sum(x * x for x in g.values()) - 1) + 1
    return {gram: unit * x // norm for gram, x in g.items()}


def check_norms(purpose: str, rounds: Watched, adds: Mapping[Draw, int]) -> None:
    """Two tables a level, each moved by the unit at most."""
    for tables, unit in zip((("round 1", "list sizes"), ("round 2",)), rounds.units, strict=True):
        purposes: Collection[str] = [f"{purpose}/{table}" for table in tables]
        assert sum(x * x for (to, _), x in adds.items() if to in purposes) <= unit**2


def corpus_and_newcomer(seed: int, with_prior: bool) -> tuple[Rows, Rows]:
    """Every gram of the newcomer is somebody's, so that what is held is held on both sides. Two
    users hold nearly all grams, and on a coarse grid give nothing to any of them in round 1."""
    random = Random(seed)
    long = random.choices(WORDS, k=900)
    rows = [("all", " ".join(long)), ("all again", " ".join(reversed(long)))]
    for user in range(60):
        for _ in range(random.randint(1, 3)):
            start = random.randrange(880)
            rows.append((f"u{user}", " ".join(long[start : start + random.randint(1, 20)])))
    newcomer = [] if with_prior else [("new", "never released")]
    for length in random.choice([(2,), (1, 5, 40), (900,), (3, 3, 7)]):
        start = random.randrange(901 - length)
        newcomer.append(("new", " ".join(long[start : start + length])))
    random.shuffle(rows)
    return rows, newcomer


def lifted_pair(texts: Sequence[str]) -> list[str]:
    """A pair of these texts: the prior has it 100 times as often as chance would."""
    pairs = (pair for text in texts for pair in pairwise(text.split()))
    return next([*pair] for pair in pairs if {*pair} <= {*LISTED})


def prior_with(lifted: list[str]) -> pl.DataFrame:
    counts = {(word,): 100 for word in LISTED} | {("w00", "w01"): 3, ("w05", "w05"): 3}
    counts[lifted[0], lifted[1]] = 9_000
    return pl.DataFrame({"item": [[*item] for item in counts], "count": [*counts.values()]})


def words_held(texts: Sequence[str]) -> set[Any]:
    """As level 1 with a list names them."""
    words = {word for text in texts for word in text.split()}
    return {LISTED.index(word) if word in LISTED else f"other {word}" for word in words}


def weight_in_round_2(rounds: Watched, key: Any, noisy: int) -> int:
    """By what round 1 showed of a gram: its class and its bin."""
    if isinstance(key, str):  # a word that the list lacks
        return 0 if noisy >= rounds.valid.rule_for_unlisted.first_threshold else 32
    column = rounds.law.bin_of(np.array([noisy]))[0]
    return int(rounds.weights[class_of(rounds.valid, key), column])


def class_of(valid: Any, key: int) -> int:
    of_forecasts = int(valid.left[key >> 32] + valid.right[key % 2**32])
    public = valid.public
    lacking = of_forecasts + int(public.shifts[public.left[key >> 32] + public.right[key % 2**32]])
    listed = dict(zip(public.keys.tolist(), public.classes.tolist(), strict=True))
    return listed.get(key, lacking)


def what_one_adds(
    rounds: Watched, held_by: Any, noise: dict[Draw, int], users: Sequence[Texts], own: Texts
) -> dict[Draw, int]:
    """By the proofs: what a user of these texts adds to a level's noised tables."""
    purpose = f"ngrams/forecast, level {rounds.level}"
    keys = held_by(own)
    if not keys:
        return {}
    sums = dict.fromkeys(keys, 0)
    for others in map(held_by, users):
        for key in keys & others:
            sums[key] += in_round_1(rounds.unit_1, len(others))
    plain = in_round_1(rounds.unit_1, len(keys))
    list_size_bin, of_lists = to_lists(rounds.unit_1, len(keys))
    adds = {(f"{purpose}/list sizes", str(-1 - list_size_bin)): of_lists}
    g = {}
    for key in keys:
        adds[f"{purpose}/round 1", str(key)] = plain
        noisy = sums[key] + noise[f"{purpose}/round 1", str(key)]
        g[key] = weight_in_round_2(rounds, key, noisy)
    for key, x in in_round_2(rounds.unit_2, g).items():
        adds[f"{purpose}/round 2", str(key)] = x
    check_norms(purpose, rounds, adds)
    return adds


def what_is_added(
    done: Sequence[Any], seen: Sequence[Watched], noise: dict[Draw, int], rows: Rows, newcomer: Rows
) -> dict[Draw, int]:
    """Of all levels of D's run."""
    users: defaultdict[str, list[str]] = defaultdict(list)
    for user, text in rows:
        users[user].append(text)
    own = [text for _, text in newcomer]
    adds: dict[Draw, int] = {}
    if seen[0].level > 1:  # level 1 is rounds of a set union, of which the first finds all
        held = {word for text in own for word in text.split()}
        each = isqrt(4 ** done[0].level.grid_bits // len(held))
        adds = {("ngrams/words/round 1", word): each for word in held}
    ladder = first_ladder(pa.array(WORDS))
    for rounds in seen:
        held_by = words_held if rounds.level == 1 else partial(grams_held, ladder, WORDS)
        adds |= what_one_adds(rounds, held_by, noise, [*users.values()], own)
        if rounds.level > 1:
            ladder = ladder.with_next(rounds.passed_keys)
    return adds


def shown(done: Sequence[Any], seen: Sequence[Watched]) -> list[Any]:
    levels = [(step.level, step.rows.sort_by("item").to_pydict()) for step in done]
    return [*levels, *(rounds.said() for rounds in seen)]


@pytest.mark.parametrize("engine", DRAWN)
@pytest.mark.parametrize(
    ("seed", "epsilon", "grid", "with_prior"),
    [(1, 20, None, False), (3, 20, 8, False), (4, 60, None, False), (5, 20, 40, False),
     (7, 20, None, True), (2, 20, 60, True)],
)  # fmt: skip
def test_noise_that_makes_up_for_a_newcomer_makes_the_same_release(
    engine, seed, epsilon, grid, with_prior
):
    rows, newcomer = corpus_and_newcomer(seed, with_prior)
    asked: dict[str, Any] = {"max_n": 4, "max_items": 20, "epsilon": epsilon, "delta": 1e-2}
    if with_prior:
        lifted = lifted_pair([text for _, text in newcomer])
        asked |= {"prior": prior_with(lifted), "prior_is_public": True}

    def ran(rows: Rows, less: dict[Draw, int]) -> tuple[Any, Any, dict[Draw, int]]:
        noise: dict[Draw, int] = {}
        frame = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
        corpus = Corpus(frame, user="who", text="what")
        plan = on_grid(grid, ngrams(corpus, **asked))
        with drawing(engine, noise, less):
            return *levels_of(engine, plan, SeededRandomness(3)), noise

    done, seen, noise = ran(rows, {})
    adds = what_is_added(done, seen, noise, rows, newcomer)
    first = Random(seed).randrange(len(rows))
    with_user = ran([*rows[:first], *newcomer, *rows[first:]], adds)
    assert shown(*with_user[:2]) == shown(done, seen)
    words = [row["item"] for step in done for row in step.rows.to_pylist() if row["level"] == 1]
    assert sorted(words) == WORDS
    assert all(len(rounds.passed_keys) > 5 for rounds in seen)
    if with_prior:
        key = WORDS.index(lifted[0]) << 32 | WORDS.index(lifted[1])
        of_pairs = seen[1]
        assert LIFTS[class_of(of_pairs.valid, key) % len(LIFTS)] >= 10
        assert adds["ngrams/forecast, level 2/round 1", str(key)] > 0
