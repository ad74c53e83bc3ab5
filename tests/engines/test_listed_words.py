"""Level 1 with a public list of words: both rounds on every engine.

The oracles share no code with what they test: the specification in SQL, and a newcomer's part in
plain Python, by the proof (docs/prior.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isqrt
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dphh import Corpus
from dphh.levels.ngrams import ListedWordsLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.levels import draw_words_by_list
from dphh.mechanisms.ngrams.forecast.listed_words import OUTSIDE, WordsRelease, words_step
from dphh.mechanisms.ngrams.forecast.price import budget_of, listed_words
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.public.counted_texts import prior_of_items
from dphh.testing import SeededRandomness
from dphh.udfs.draws import noise
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import host_on
from tests.engines.plain import Forecast, Plain

ENGINES = ("duckdb", "polars")
DRAWN = {"duckdb": "dphh.udfs.draws.noise", "polars": "dphh.engines.polars.host"}
Rows = Sequence[tuple[str, Sequence[str]]]
LISTED = [f"l{number:03}" for number in range(60)]
PRIOR = prior_of_items({(word,): int(9_000 / (1 + i)) for i, word in enumerate(LISTED)}, 1)


def level_of(epsilon: float, max_items: int, delta: float = 1e-2, max_n: int = 1) -> Any:
    budget = budget_of(epsilon, delta, max_n, max_items, Counting(), with_list=True)
    return listed_words(budget, max_n, max_items, len(PRIOR), 0.01)


class Seen:
    """An engine's rounds, and what they were told and said."""

    def __init__(self, rounds: Any, low: bool) -> None:
        self.of_engine, self.low = rounds, low

    def first_round(self, level: int, valid: Any, law: Any, unit: int) -> Any:
        self.valid, self.law, self.unit_1 = valid, law, unit
        self.first = self.of_engine.first_round(level, valid, law, unit)
        return self.first

    def second_round(self, weights: Any, unit: int) -> Any:
        self.weights, self.unit_2 = weights, unit
        self.negatives = self.of_engine.second_round(weights, unit)
        return self.negatives

    def passed(self, thresholds: Any) -> Any:
        """With `low`, whatever is above 0 in round 2 passes, so that most sums of it are seen."""
        self.thresholds = np.ones_like(thresholds) if self.low else thresholds
        self.out = self.of_engine.passed(self.thresholds)
        return self.out


def drawn(
    engine: str, rows: Rows, level: ListedWordsLevel, randomness: Any, low: bool = False
) -> tuple[WordsRelease, Seen]:
    schema = {"who": pl.String, "what": pl.List(pl.String)}
    frame = pl.DataFrame([*rows], schema=schema, orient="row")
    corpus = Corpus(frame, user="who", text="what", as_="list")
    seen: list[Seen] = []

    class Watching:
        """The level's step, whose rounds are watched."""

        def run(self, of_engine: Any) -> Any:
            seen.append(Seen(of_engine, low))
            return words_step(level, PRIOR, 1, 1 / level.total_sigma).run(seen[0])

    step: Any = Watching()
    with host_on(engine, corpus, randomness) as host:
        host.gather("users", Words(ends=True))
        table = draw_words_by_list(host, step, PRIOR.vocabulary, level.max_items, "level 1")
    return WordsRelease.from_table(table), seen[0]


def corpus_of(seed: int, users: int) -> list[tuple[str, list[str]]]:
    """Words of the list and others, some users with many others; half of the list is nobody's."""
    random = Random(seed)
    others = [*(f"o{number}" for number in range(40)), "é", "日本", "7", "a\x1f", "\0"]
    rows = []
    for _ in range(2 * users):
        many = random.random() < 0.1
        tokens = random.choices(LISTED[:30], k=random.randint(0, 9))
        tokens += random.choices(others, k=random.randint(0, 30 if many else 3))
        random.shuffle(tokens)
        rows.append((f"user {random.randrange(users)}", tokens))
    return rows


@pytest.mark.on_spark
@pytest.mark.parametrize("engine", [*ENGINES, "spark"])
@pytest.mark.parametrize(("seed", "max_items"), [(1, 4), (2, 1), (3, 100)])
def test_both_rounds_are_the_plain_ones(engine, seed, max_items):
    """Raw sums, rows, signs and what passes, of all that somebody holds; of all else, how many."""
    rows = corpus_of(seed, 80)
    level = level_of(20.0, max_items)
    found, told = drawn(engine, rows, level, SeededRandomness(seed), low=True)
    classes, columns = np.indices(told.weights.shape).reshape(2, -1)

    def of_rows(values: Any, name: str, beside: tuple[int, int]) -> Any:
        return pa.table(
            {
                "class": [*classes, -1, -1],
                "bin": [*columns, 0, 1],
                name: [*values.ravel().tolist(), *beside],
            }
        )

    group = np.floor(np.log(PRIOR.grams[0].counts / PRIOR.total) / 0.5).astype(int)
    public = Forecast(
        level.sigma_grid,
        told.unit_1,
        told.unit_2,
        LIST_SIZES.tolist(),
        pa.table(
            {
                "gram": [[word] for word in LISTED],
                "key": [str(number) for number in range(len(LISTED))],
                "class": group - group.min(),
            }
        ),
        bins=pa.table({"bin": np.arange(len(told.law.starts)), "start": told.law.starts}),
        weights=of_rows(told.weights, "weight", (32, 0)),
        thresholds=of_rows(told.thresholds, "threshold", (level.second_threshold_grid, -(2**62))),
    )
    plain = Plain(rows, SeededRandomness(seed)).listed_rounds(level, public, "level 1")
    assert plain.lists == told.first.lists.tolist()
    out = told.out
    of_list = zip(out.keys.tolist(), out.bins, out.first, out.second, strict=True)
    passed = {(LISTED[key],): [group[key] - group.min(), *row] for key, *row in of_list}
    others = out.others
    of_others = zip(
        others.words.to_pylist(), others.early, others.first, others.second, strict=True
    )
    passed |= {(word,): [-1, *row] for word, *row in of_others}
    held = {
        gram: row
        for gram, row in plain.held.items()
        if (row[0] >= 0 and row[-1] > 0)
        or (row[0] < 0 and (row[1] == 1 or row[-1] >= level.second_threshold_grid))
    }  # fmt: skip
    assert {gram: passed[gram] for gram in passed.keys() & plain.held.keys()} == held
    assert plain.passed.keys() == held.keys()
    assert len({row[0] for row in held.values()}) > 3
    # The rest is of the list and nobody's.
    assert all(word.startswith("l") for (word,) in passed.keys() - plain.held.keys())
    counts, negatives = np.zeros_like(told.weights), np.zeros_like(told.weights)
    for (of_class, column), (number, below) in plain.signs.items():
        counts[of_class, column], negatives[of_class, column] = number, below
    absent, absent_negative = told.first.counts - counts, told.negatives - negatives
    assert absent.min() >= absent_negative.min() >= 0
    assert (told.first.counts.sum(axis=1) == np.bincount(group - group.min())).all()
    assert {*found.words.to_pylist()} == {word for (word,) in passed}


# D and D + u, under noise that makes up for what u adds.


@contextmanager
def drawing(engine: str, noises: dict, less: dict) -> Iterator[None]:
    draw = noise.draw_rounded_gaussian

    def of(randomness: Any, sigma: int, count: int, purpose: str, keys: Any = None) -> Any:
        made = draw(randomness, sigma, count, purpose, keys)
        names = [] if keys is None else keys.to_pylist()
        noises.update({(purpose, name): int(x) for name, x in zip(names, made, strict=True)})
        return made - np.array([less.get((purpose, name), 0) for name in names], dtype=np.int64)

    with patch(f"{DRAWN[engine]}.draw_rounded_gaussian", of):
        yield


def what_one_adds(
    level: ListedWordsLevel, rows: Rows, words: set[str], told: Seen, noises: dict
) -> dict:
    """By the proof: what a user who counts for all of these words adds to D's noised tables."""
    users: dict[str, set[str]] = {}
    for user, tokens in rows:
        users.setdefault(user, set()).update(tokens)

    def named(word: str) -> str:
        return str(LISTED.index(word)) if word in LISTED else f"other {word}"

    plain = isqrt(told.unit_1**2 * 49 // (50 * len(words)))
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24] + [2**power for power in range(5, 15)]
    of_lists = -1 - (sum(size <= len(words) for size in sizes) - 1)
    adds = {("level 1/list sizes", str(of_lists)): isqrt(told.unit_1**2 // 50)}
    g = {}
    for word in words:
        own = sum(
            isqrt(told.unit_1**2 * 49 // (50 * len(others)))
            for others in users.values()
            if word in others
        )
        adds["level 1/round 1", named(word)] = plain
        noisy = own + noises["level 1/round 1", named(word)]
        if word in LISTED:
            row = told.valid.right[LISTED.index(word)], told.law.of(np.array([noisy]))[0]
            g[word] = int(told.weights[row])
        else:
            g[word] = 0 if noisy >= level.first_threshold_grid else 32
    norm = isqrt(sum(x * x for x in g.values()) - 1) + 1
    for word, x in g.items():
        adds["level 1/round 2", named(word)] = told.unit_2 * x // norm
    return adds


def shown(release: WordsRelease, told: Seen) -> list[Any]:
    out = told.out
    return [
        told.first.counts.tolist(),
        told.first.lists.tolist(),
        told.negatives.tolist(),
        out.keys.tolist(),
        out.bins.tolist(),
        out.first.tolist(),
        out.others.words.to_pylist(),
        out.others.second.tolist(),
        release.to_table().to_pydict(),
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("seed", "epsilon"), [(1, 1.0), (2, 4.0), (3, 20.0), (4, 60.0)])
def test_noise_that_makes_up_for_a_newcomer_makes_the_same_release(engine, seed, epsilon):
    """Whatever else hung on the newcomer, such as somebody else's weight, would show."""
    random = Random(seed)
    rows = [
        (user, [w for w in tokens if w[0] in "lo"][:12]) for user, tokens in corpus_of(seed, 60)
    ]
    rows += [("all", [*LISTED, *(f"o{number}" for number in range(40))])]
    level = level_of(epsilon, 100)
    words = {*random.sample(LISTED, 20), *(f"o{number}" for number in range(0, 40, 3))}
    noises: dict = {}
    with drawing(engine, noises, {}):
        without = drawn(engine, rows, level, SeededRandomness(seed))
    adds = what_one_adds(level, rows, words, without[1], noises)
    newcomer = [("new", sorted(words)[:9]), ("new", sorted(words))]
    with drawing(engine, {}, adds):
        with_user = drawn(engine, [*newcomer, *rows], level, SeededRandomness(seed))
    assert shown(*with_user) == shown(*without)
    assert len(without[0].words) > 3
    told = without[1]
    for tables, unit in ((("round 1", "list sizes"), told.unit_1), (("round 2",), told.unit_2)):
        purposes = [f"level 1/{table}" for table in tables]
        assert sum(x * x for (to, _), x in adds.items() if to in purposes) <= unit**2


@pytest.mark.parametrize("engine", ENGINES)
def test_how_many_words_of_the_list_are_held_shows_nowhere(engine):
    """A word that one user alone holds is a row like any other: with noise alone, without the user.
    All of the list is in every table, for any data."""
    level = level_of(4.0, 3)
    for rows in ([("a", ["x"])], [("a", LISTED)], [("a", []), ("b", LISTED[:1])]):
        _, told = drawn(engine, rows, level, SeededRandomness(5))
        assert told.first.counts.sum() == len(LISTED)
        assert (told.first.counts.sum(axis=1) == told.valid.sizes).all()
        assert told.negatives.sum() <= len(LISTED)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_user_of_many_other_words_counts_for_so_many_of_them(engine):
    """And for all of the list beside; which ones, is the user's own."""
    own = [f"own {number}" for number in range(400)]
    level = level_of(20.0, 30)
    low = ListedWordsLevel(**{**vars(level), "second_threshold_grid": -(2**60)})
    _, told = drawn(engine, [("u", [*own, *LISTED[:9]]), ("v", own[:7])], low, SeededRandomness(1))
    words = told.out.others.words.to_pylist()
    assert len(words) == len({*words, *own[:7]}) and 30 <= len(words) <= 37
    again = drawn(engine, [("u", [*LISTED[:9], *own[::-1], *own])], low, SeededRandomness(1))
    others = again[1].out.others
    assert {*others.words.to_pylist()} | {*own[:7]} == {*words}


def test_no_more_words_that_nobody_holds_come_through_than_is_said():
    """On average. One word in 60 is somebody's; b is 1. On one engine: under a seed the other
    releases the same, as `test_engines_agree` has it."""
    level = level_of(4.0, 3)
    rows = [(f"u{user}", [LISTED[40]]) for user in range(200)]
    spurious = [
        len(
            {*drawn("polars", rows, level, SeededRandomness(seed))[0].words.to_pylist()}
            - {LISTED[40]}
        )
        for seed in range(60)
    ]
    # Were it twice as many: a mean of 2, and a chance below 1e-4 of staying under.
    assert np.mean(spurious) <= 1.4


@pytest.mark.parametrize("max_items", [1, 7, 100])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_new_words_of_a_user_pass_no_more_often_than_is_priced(epsilon, max_items):
    """For any number of new words among any number of others, by the noise's own tail."""
    from scipy.stats import norm

    level = level_of(epsilon, max_items, delta=1e-6)
    for unit, most, name, part in (
        (level.first_unit, 49 / 50, "first", 0.05),
        (level.second_unit, 1.0, "second", 0.95),
    ):
        threshold = getattr(level, f"{name}_threshold_grid")
        worst = max(
            new * norm.sf((threshold - 0.5 - int(unit * (most / new) ** 0.5)) / level.sigma_grid)
            for new in range(1, max_items + 1)
        )
        assert 0.97 * part * 0.25e-6 <= worst <= part * 0.25e-6
    assert OUTSIDE == 32


def test_a_release_comes_back_from_the_journal_as_it_was():
    words = pa.array(["b", "a", "é"])
    release = WordsRelease(words, np.array([1.0, 2.0, 3.0]), 1.5)
    back = WordsRelease.from_table(release.to_table())
    assert back.words.to_pylist() == ["a", "b", "é"]
    assert (back.masses.tolist(), back.budget) == ([2.0, 1.0, 3.0], 1.5)
    nothing = WordsRelease.from_table(WordsRelease(words[:0], np.empty(0), 1.0).to_table())
    assert len(nothing.words) == len(nothing.masses) == 0
