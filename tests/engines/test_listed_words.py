"""Level 1 with a public list of words: both rounds on every engine.

The oracles share no code with what they test: the specification in SQL, and a newcomer's part in
plain Python, by the proof (docs/prior.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm

from dphh import Corpus
from dphh.levels.ngrams import ListedWordsLevel
from dphh.mechanisms.counts.of_found import Counting
from dphh.mechanisms.ngrams.forecast.levels import draw_words_by_list
from dphh.mechanisms.ngrams.forecast.listed_words import OUTSIDE, WordsRelease, words_step
from dphh.mechanisms.ngrams.forecast.price import budget_of, listed_words
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.public.counting import prior_of_items
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.reading import Words
from tests.engines.levels import host_on
from tests.engines.plain import Forecast, Plain
from tests.engines.watched import (
    DRAWN,
    Watched,
    check_norms,
    drawing,
    in_round_1,
    in_round_2,
    to_lists,
)

Rows = Sequence[tuple[str, Sequence[str]]]
LISTED = [f"l{number:03}" for number in range(60)]
PRIOR = prior_of_items({(word,): int(9_000 / (1 + i)) for i, word in enumerate(LISTED)}, 1)


def level_of(epsilon: float, max_items: int, delta: float = 1e-2, max_n: int = 1) -> Any:
    budget = budget_of(epsilon, delta, max_n, max_items, Counting(), with_list=True)
    return listed_words(budget, max_n, max_items, len(PRIOR), 0.01)


def drawn(
    engine: str, rows: Rows, level: ListedWordsLevel, randomness: Any, low: bool = False
) -> tuple[WordsRelease, Watched]:
    schema = {"who": pl.String, "what": pl.List(pl.String)}
    frame = pl.DataFrame([*rows], schema=schema, orient="row")
    corpus = Corpus(frame, user="who", text="what", as_="list")
    seen: list[Watched] = []

    class Watching:
        """The level's step, whose rounds are watched."""

        def run(self, of_engine: Any) -> Any:
            seen.append(Watched(of_engine, low))
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
@pytest.mark.parametrize("engine", [*DRAWN, "spark"])
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
    out = told.passing
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


def what_one_adds(
    level: ListedWordsLevel, rows: Rows, words: set[str], told: Watched, noises: dict
) -> dict:
    """By the proof: what a user who counts for all of these words adds to D's noised tables."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for user, tokens in rows:
        users[user] |= {*tokens}

    def named(word: str) -> str:
        return str(LISTED.index(word)) if word in LISTED else f"other {word}"

    list_bin, own = to_lists(told.unit_1, len(words))
    adds = {("level 1/list sizes", str(-1 - list_bin)): own}
    g = {}
    for word in words:
        adds["level 1/round 1", named(word)] = in_round_1(told.unit_1, len(words))
        noisy = noises["level 1/round 1", named(word)] + sum(
            in_round_1(told.unit_1, len(others)) for others in users.values() if word in others
        )
        if word in LISTED:
            row = told.valid.right[LISTED.index(word)], told.law.of(np.array([noisy]))[0]
            g[word] = int(told.weights[row])
        else:
            g[word] = 0 if noisy >= level.first_threshold_grid else 32
    for word, x in in_round_2(told.unit_2, g).items():
        adds["level 1/round 2", named(word)] = x
    return adds


def shown(release: WordsRelease, told: Watched) -> list[Any]:
    """With what the driver heard of the words that are not on the list."""
    out = told.passing
    others = [column.tolist() for column in (out.keys, out.bins, out.first, out.others.second)]
    told_of = [told.first.counts.tolist(), told.first.lists.tolist(), told.negatives.tolist()]
    return [told_of, others, out.others.words.to_pylist(), release.to_table().to_pydict()]


@pytest.mark.parametrize("engine", DRAWN)
@pytest.mark.parametrize(("seed", "epsilon"), [(1, 1.0), (2, 4.0), (4, 60.0)])
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
    check_norms("level 1", without[1], adds)


@pytest.mark.parametrize("engine", DRAWN)
def test_how_many_words_of_the_list_are_held_shows_nowhere(engine):
    """A word that one user alone holds is a row like any other: with noise alone, without the user.
    All of the list is in every table, for any data."""
    level = level_of(4.0, 3)
    for rows in ([("a", ["x"])], [("a", LISTED)], [("a", []), ("b", LISTED[:1])]):
        _, told = drawn(engine, rows, level, SeededRandomness(5))
        assert told.first.counts.sum() == len(LISTED)
        assert (told.first.counts.sum(axis=1) == told.valid.sizes).all()
        assert told.negatives.sum() <= len(LISTED)


@pytest.mark.parametrize("engine", DRAWN)
def test_a_user_of_many_other_words_counts_for_so_many_of_them(engine):
    """And for all of the list beside; which ones, is the user's own."""
    own = [f"own {number}" for number in range(400)]
    level = level_of(20.0, 30)
    low = ListedWordsLevel(**{**vars(level), "second_threshold_grid": -(2**60)})
    _, told = drawn(engine, [("u", [*own, *LISTED[:9]]), ("v", own[:7])], low, SeededRandomness(1))
    words = told.passing.others.words.to_pylist()
    assert len(words) == len({*words, *own[:7]}) and 30 <= len(words) <= 37
    again = drawn(engine, [("u", [*LISTED[:9], *own[::-1], *own])], low, SeededRandomness(1))
    others = again[1].passing.others
    assert {*others.words.to_pylist()} | {*own[:7]} == {*words}


@pytest.mark.parametrize("max_items", [1, 7, 100])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_new_words_of_a_user_pass_no_more_often_than_is_priced(epsilon, max_items):
    """For any number of new words among any number of others, by the noise's own tail."""
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
