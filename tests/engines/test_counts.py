"""`counts=` of what a run finds, whatever finds it.

`test_plain_sql.py` has the sums of public keys as the specification has, on every engine;
`test_engines_agree.py` compares releases with counts.
"""

from collections import Counter
from functools import cache, wraps
from math import sqrt

import numpy as np
import polars as pl
import pytest

from dphh import Corpus, items, ngrams, trie
from dphh.consistency import check_consistency
from dphh.mechanisms.counts import run as counts_levels
from dphh.mechanisms.counts.of_found import COUNTS_NOTE
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.gathering import Gathering

LOOSE = {"epsilon": 8.0, "delta": 1e-4}
FINDS = {
    "items": lambda corpus, **more: items(corpus, method="gaussian", **LOOSE, **more),
    "adaptive": lambda corpus, **more: items(corpus, method="adaptive", **LOOSE, **more),
    "sips": lambda corpus, **more: items(corpus, method="sips", **LOOSE, **more),
    "dpne": lambda corpus, **more: ngrams(corpus, max_n=3, method="dpne", **LOOSE, **more),
    "forecast": lambda corpus, **more: ngrams(corpus, max_n=3, method="forecast", **LOOSE, **more),
}
TEXTS = ["new york is big", "york new", "new york new york", "san francisco", "rare"]
SHARED = [(user, TEXTS[user % 5]) for user in range(300)] + [(999, text) for text in TEXTS]


class ExactCounts:
    """A test's randomness but for the counts, whose noise it inverts to zero."""

    is_test = True

    def __init__(self):
        self.others = SeededRandomness(5)

    def random_words(self, count, purpose, keys=None):
        if purpose.startswith("counts"):
            return np.full(count, 2**64 - 1, dtype=np.uint64)
        return self.others.random_words(count, purpose, keys)


def held_by(tokens):
    """How many users hold these tokens side by side, looked up row by row."""
    text = f" {' '.join(tokens)} "
    return len({user for user, row in SHARED if text in f" {row} "})


@pytest.mark.parametrize("how", FINDS)
def test_all_that_is_found_is_counted_and_what_fewer_users_hold_is_left_out(written, how):
    all_of_it, some = (
        FINDS[how](written(SHARED), counts=0.3, **floor).run(randomness=ExactCounts(), again=True)
        for floor in ({}, {"min_users": 100})
    )
    rows = all_of_it.to_arrow().to_pylist()
    assert {row["item"] for row in rows} >= {"new", "york"}
    for row in rows:
        assert row["users"] == held_by(row["tokens"])
        assert row["low"] <= row["users"] <= row["high"]
    assert all_of_it.table.schema.names[3:] == ["score", "users", "low", "high", "estimate"]
    assert all_of_it.manifest["counting"]["counted"] == len(rows)
    drew = all_of_it.manifest.get("drawn", all_of_it.manifest["events"])
    # Whatever was given back. A ladder's one event has its counts in it.
    assert sum(event.get("note") == COUNTS_NOTE for event in drew) == (how != "forecast")
    enough = [row for row in rows if row["low"] >= 100]
    assert 0 < len(enough) < len(rows)
    assert [row["tokens"] for row in some] == [row["tokens"] for row in enough]
    for family in some.manifest["counting"]["families"]:
        of_it, kept_of_it = (
            [row for row in those if family["length"] in (None, len(row["tokens"]))]
            for those in (rows, some)
        )
        assert (family["counted"], family["kept"]) == (len(of_it), len(kept_of_it))


@pytest.mark.parametrize("how", FINDS)
def test_the_corpus_is_read_once_to_find_and_to_count(written, monkeypatch, how):
    shipped, read = Gathering.add, []

    @wraps(shipped)
    def add(gathering, users, *more):
        read.append(len(users))
        return shipped(gathering, users, *more)

    monkeypatch.setattr(Gathering, "add", add)
    release = FINDS[how](written(SHARED), counts=0.3).run(randomness=ExactCounts())
    assert release.manifest["counting"]["counted"]
    assert sum(read) == len(SHARED)


@pytest.mark.parametrize("how", FINDS)
def test_groups_change_nothing_of_what_is_found(tmp_path, engine, how):
    """Where texts end the group is told beside the words: also of more groups than words."""
    groups = [f"group {number}" for number in range(40)]
    rows = [(user, text, groups[(user + place) % 40]) for place, (user, text) in enumerate(SHARED)]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what", "where"], orient="row").write_parquet(path)
    corpus = Corpus(path, user="who", text="what")
    alike, by_group = (
        FINDS[how](corpus, counts=0.3, **by).run(randomness=ExactCounts(), engine=engine)
        for by in ({}, {"by": "where", "groups": groups[:30]})
    )
    found = {(*row["tokens"],): row["score"] for row in alike}
    assert {(*row["tokens"],): row["score"] for row in by_group} == found
    for row in by_group:
        text = f" {' '.join(row['tokens'])} "
        users = {
            user
            for user, held, group in rows
            if text in f" {held} "
            and row["group_name"] == (group if group in groups[:30] else "other")
        }
        assert row["users"] == len(users)


def test_beyond_what_can_be_counted_the_first_of_each_level_are(written, monkeypatch):
    monkeypatch.setattr(counts_levels, "MOST_KEYS", 4)
    release = FINDS["dpne"](written(SHARED), counts=0.3).run(randomness=SeededRandomness(1))
    counted = [(row["level"], row["users"] is not None) for row in release]
    for level, number in ((1, 2), (2, 1), (3, 1)):
        known = [known for of, known in counted if of == level]
        assert known == [True] * number + [False] * (len(known) - number)
    assert release.manifest["counting"]["counted"] == 4
    assert repr(release)  # a row that was not counted shows its score


@cache
def written_by_many():
    """What 2,500 users in three countries wrote: words and sayings by Zipf's law, of one to four
    words; and how many of them hold each run of words, in each country and in all."""
    random = np.random.default_rng(1)
    words = 1 / np.arange(1, 301)
    sayings = [
        " ".join(f"s{first}w{place}" for place in range(2 + first % 3)) for first in range(60)
    ]
    rows, holders = [], Counter()
    for user in range(2_500):
        country = ("DE", "US", "FR")[int(random.choice(3, p=[0.6, 0.3, 0.1]))]
        held = set()
        for _ in range(3):
            drawn = [f"w{word}" for word in random.choice(300, 4, p=words / words.sum())]
            drawn.append(sayings[int(random.choice(60, p=words[:60] / words[:60].sum()))])
            rows.append((user, " ".join(drawn), country))
            of_row = rows[-1][1].split()
            held |= {
                tuple(of_row[start : start + length])
                for length in range(1, 5)
                for start in range(len(of_row) - length + 1)
            }
        holders.update((gram, group) for gram in held for group in (country, None))
    frame = pl.DataFrame(rows, ["who", "what", "country"], orient="row")
    return Corpus(frame, user="who", text="what"), holders


@pytest.mark.slow
@pytest.mark.parametrize("least", [None, 30])
@pytest.mark.parametrize("groups", [{}, {"by": "country", "groups": ["DE", "US"]}])
def test_of_the_intervals_of_thirty_runs_no_more_miss_than_is_said(groups, least):
    """In all, and of each length, group and third by size: by the true size where all is shown, as
    the largest by noise miss more often; by what is shown where `min_users` chose. Of that, fewer
    hold half as much at most."""
    corpus, holders = written_by_many()
    floor = {} if least is None else {"min_users": least}
    plan = ngrams(
        corpus, max_n=4, epsilon=4.0, delta=1e-5, max_items=20, counts=0.3, **groups, **floor
    )
    shares = {}
    for seed in range(30):
        release = plan.run(engine="polars", randomness=SeededRandomness(seed), again=True)
        check_consistency(release)
        of_rows = []
        for row in release:
            group = {"other": "FR"}.get(row.get("group_name"), row.get("group_name"))
            of_rows.append((row, holders[tuple(row["tokens"]), group]))
        of_rows.sort(key=lambda pair: pair[1] if least is None else pair[0]["users"])
        of_family = {}
        for place, (row, truth) in enumerate(of_rows):
            missed = not row["low"] <= truth <= row["high"]
            third = f"third {3 * place // len(of_rows)}"
            for family in ("all", len(row["tokens"]), row.get("group_name"), third):
                of_family.setdefault(family, []).append((missed, truth < (least or 0)))
        for family, found in of_family.items():
            shares.setdefault(family, []).append(np.mean(found, axis=0))
    assert {"all", 1, 2, 3} <= shares.keys()
    for family, of_runs in shares.items():
        missed, fewer = np.vstack([of_runs, np.zeros((30 - len(of_runs), 2))]).T
        assert missed.mean() <= 0.05 + 3 * missed.std() / sqrt(30), family
        assert fewer.mean() <= 0.025 + 3 * fewer.std() / sqrt(30), family


# Of a trie each leaf is counted, and nothing above it.

BEGINNINGS = ["new york is big", "york new", "new york", "new york", "rare"]
#: Users of one row; of several; of the same row twice; and one of everything, and of nothing.
TRIE_SCHEMA = (
    [(user, BEGINNINGS[user % 5]) for user in range(400)]
    + [(user, "york new") for user in range(60)]
    + [(user, "new york") for user in range(0, 400, 7)]
    + [(999, text) for text in [*BEGINNINGS, "", None]]
)
READINGS = {
    "words": ({}, {}, str.split),
    "units": (
        {"text": None, "item": "what"},
        {"unit": 3},
        lambda text: [text[at : at + 3] for at in range(0, len(text), 3)],
    ),
}


def grow(corpus, **more):
    return trie(corpus, **{**LOOSE, "max_length": 4, "counts": 0.3, "max_items": 20, **more})


def leaves(rows):
    """The rows that no other row goes on from, by looking at every pair."""
    below = [(row["tokens"][: len(row["tokens"]) - (not row["ended"])], row) for row in rows]
    return [
        row
        for row in rows
        if row["ended"] or all(begin != row["tokens"] or other is row for begin, other in below)
    ]


def begun_by(row, read):
    """How many users hold a sequence that begins so, or is it, looked up row by row."""
    tokens = row["tokens"]

    def holds(sequence):
        return sequence == tokens if row["ended"] else sequence[: len(tokens)] == tokens

    return len({user for user, text in TRIE_SCHEMA if text is not None and holds(read(text))})


@pytest.mark.parametrize("how", READINGS)
def test_each_leaf_is_counted_and_nothing_above_it(written, how):
    reading, more, read = READINGS[how]
    release = grow(written(TRIE_SCHEMA, **reading), **more).run(randomness=ExactCounts())
    rows = release.to_arrow().to_pylist()
    counted = leaves(rows)
    assert counted
    assert sum(row["users"] is not None for row in rows) == len(counted)
    for row in counted:
        assert row["users"] == begun_by(row, read)
        assert row["low"] <= row["users"] <= row["high"]
    if how == "words":
        ends = {row["item"]: row["ended"] for row in counted}
        assert ends == {"new york": True, "york new": True, "rare": True, "new york is big": False}
    assert release.table.schema.names[3:] == ["score", "ended", "users", "low", "high", "estimate"]
