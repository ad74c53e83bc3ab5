"""Every engine agrees with the specification, `sql/plain/`, integer for integer, under one seed.

Noise and salts follow from the seed and from what they are drawn for. What is drawn for valid grams
that nobody holds is not compared draw by draw: an engine draws how many pass, the specification
each by itself. Both have one law (tests/unit/test_spurious.py); which grams those are, is compared.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from itertools import product

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphh import Corpus, items
from dphh.levels import SetUnionLevel
from dphh.testing import SeededRandomness
from tests.conftest import NoNoise
from tests.engines.ladders import EVERYTHING, check_ladder, climbed, grams_of, valid
from tests.engines.levels import bare_level, in_rounds
from tests.engines.plain import Plain

FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])
#: Separators, escapes, NUL, words of eight bytes and more, and what is no token.
WORDS = st.sampled_from(
    ["a", "b", "é", "日本", "\0", "\x1f", "a\x1f", "eight by", "nine byte", "", None]
)
TEXTS = st.one_of(st.none(), st.lists(WORDS, max_size=9))
#: Few users: so several rows of each, the same tokens again and again, and some over any cap.
ROWS = st.lists(st.tuples(st.integers(-2, 3), TEXTS), min_size=1, max_size=14)
SEEDS = st.integers(0, 2**32)


def corpus_of(rows) -> Corpus:
    schema = {"who": pl.Int64, "what": pl.List(pl.String)}
    frame = pl.DataFrame([*rows], schema=schema, orient="row")
    return Corpus(frame, user="who", text="what", as_="list")


# Set union


@given(rows=ROWS, cap=st.integers(1, 4), bits=st.integers(2, 12), seed=SEEDS)
@FEW
def test_a_set_union_of_anything_is_the_plain_one(engine, rows, cap, bits, seed):
    level = bare_level(cap, bits=bits)
    plain = Plain(rows, SeededRandomness(seed)).set_union(level, "round 1")
    assert in_rounds(engine, corpus_of(rows), SeededRandomness(seed), [level]) == [plain]


@given(
    rows=ROWS,
    cap=st.integers(1, 3),
    thresholds=st.tuples(*[st.integers(200, 3000)] * 3),
    seed=SEEDS,
)
@FEW
def test_each_round_of_sips_is_the_plain_one(engine, rows, cap, thresholds, seed):
    planned = items(epsilon=8, delta=1e-3, max_items=cap, method="sips").levels
    levels = [
        replace(level, threshold_grid=threshold, sigma_grid=150)
        for level, threshold in zip(planned, thresholds, strict=True)
        if isinstance(level, SetUnionLevel)
    ]
    plain = Plain(rows, SeededRandomness(seed))
    expected = [plain.set_union(level, f"round {level.round}") for level in levels]
    assert in_rounds(engine, corpus_of(rows), SeededRandomness(seed), levels) == expected


# DPNE


@PRUNINGS
@given(
    rows=ROWS,
    thresholds=st.lists(st.integers(100, 1000), min_size=2, max_size=4),
    cap=st.integers(1, 4),
    sigma=st.sampled_from([100, 400]),
    seed=SEEDS,
)
@FEW
def test_every_level_of_dpne_is_the_plain_one(engine, pruning, rows, thresholds, cap, sigma, seed):
    caps = [100, *[cap] * (len(thresholds) - 1)]
    asked = {"caps": caps, "sigma": sigma, "pruning": pruning, "seed": seed}
    check_ladder(engine, corpus_of(rows), rows, thresholds, **asked)


@PRUNINGS
@pytest.mark.parametrize("kind", ["text", "uuid", "uint64", "hugeint", "date", "boolean", "double"])
def test_over_full_users_keep_what_the_plain_form_keeps_whatever_names_them(engine, kind, pruning):
    """Which grams they keep hangs on their names, as text."""
    texts = [(n, [f"w{(7 * n + i * i) % 11}" for i in range(12)]) for n in range(2 * 30)]
    rows = [(n % 30, tokens) for n, tokens in texts]
    name = {
        "text": "'user ' || who",
        "uuid": f"CAST('{str(uuid.UUID(int=0))[:-2]}' || (10 + who) AS UUID)",
        "uint64": "18446744073709551615::UBIGINT - who::UBIGINT",
        "hugeint": "(1::HUGEINT << 100) + who",
        "date": "DATE '2020-01-01' + who::INTEGER",
        "boolean": "who % 2 = 0",
        "double": "who + 0.25::DOUBLE",
    }[kind]
    con = duckdb.connect()
    con.register(
        "frame",
        pl.DataFrame({"who": [u for u, _ in rows], "what": [t for _, t in rows]}).to_arrow(),
    )
    source = con.sql(f"SELECT {name} AS who, what FROM frame")
    corpus = Corpus(source, user="who", text="what", as_="list")
    asked = {"caps": [5, 4, 3], "sigma": 200, "pruning": pruning, "users": name}
    assert check_ladder(engine, corpus, rows, [1, 300, 300], **asked) > 15


# The specification by itself


@PRUNINGS
@pytest.mark.parametrize("level", [2, 3])
def test_every_valid_gram_takes_part_in_the_plain_form(pruning, level):
    """Held grams with their weights; and all others that are valid, with a weight of 0."""
    rows = [(1, ["a", "b", "c", "a"]), (2, ["b", "c"]), (3, ["x"])]
    below = [{("a",), ("b",), ("c",)}, {("a", "b"), ("b", "c"), ("c", "a")}]
    plain = Plain(rows, NoNoise())
    for n, grams in enumerate(below[: level - 1], start=1):
        plain.release(n, [*grams])
    planned = climbed("duckdb", corpus_of(rows), [1] * level, pruning=pruning)[-1].level
    found = plain.dpne(planned, "level", EVERYTHING)
    assert found.keys() == {
        gram for gram in product("abc", repeat=level) if valid(gram, below, pruning)
    }
    held = set().union(*(grams_of(tokens, level) for _, tokens in rows))
    assert {gram for gram, weight in found.items() if weight} == found.keys() & held
    plain.forget(level)
    assert plain.dpne(planned, "level", 1, absent=False).keys() == held & found.keys()
