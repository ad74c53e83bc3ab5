"""Every engine agrees with `tests/specification/`, integer for integer, under one seed.

Noise and salts follow from the seed and from what they are drawn for. What is drawn for valid grams
that nobody holds is not compared draw by draw: an engine draws how many pass, the specification
each by itself. Both have one law (tests/unit/test_ladder.py); which grams those are, is compared.
"""

import uuid
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import isqrt

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphh import Corpus, counts, items, ngrams
from dphh.counting import CountsLevel
from dphh.mechanisms.counts.run import (
    find_items,
    find_listed_items,
    noised_by_key,
    noised_counts,
    noised_histogram,
    noised_rough_counts,
)
from dphh.mechanisms.items.run import items_levels
from dphh.mechanisms.ldp_trie.run import ldp_trie_levels
from dphh.mechanisms.ngrams.ladder.classes import LIFTS
from dphh.mechanisms.set_union.auto import draw_buckets
from dphh.mechanisms.set_union.levels import ChoiceLevel, ReweighedLevel, SetUnionLevel
from dphh.mechanisms.trie.price import VoteLevel
from dphh.testing import SeededRandomness
from dphh.udfs.kernel.gathering import ReadWords
from dphh.udfs.noise.randomness import SEATS
from dphh.udfs.rules.forecast import LIST_SIZE_BIN_STARTS
from tests.conftest import NoNoise
from tests.engines.forecasts import FEW_FINDS, counted_for_few, levels_of, on_grid
from tests.engines.ladders import (
    ALL,
    EVERYTHING,
    check_ladder,
    climbed,
    grams_of,
    valid,
    weights,
)
from tests.engines.levels import bare_level, few, host_on, in_adaptive_rounds, in_rounds, unstored
from tests.engines.plain import Forecast, Plain
from tests.engines.tries import grown, local_plan, prefixes

FEW = few(6)
#: Separators, escapes, NUL, words of eight bytes and more, and what is no token.
WORDS = st.sampled_from(
    ["a", "b", "é", "日本", "\0", "\x1f", "a\x1f", "eight by", "nine byte", "", None]
)
TEXTS = st.one_of(st.none(), st.lists(WORDS, max_size=9))
#: Few users: so several rows of each, the same tokens again and again, and some over any cap.
ROWS = st.lists(st.tuples(st.integers(-2, 3), TEXTS), min_size=1, max_size=14)
SEEDS = st.integers(0, 2**32)


def corpus_of(rows, users=pl.Int64) -> Corpus:
    schema = {"who": users, "what": pl.List(pl.String)}
    frame = pl.DataFrame([*rows], schema=schema, orient="row")
    return Corpus(frame, user="who", text="what", as_="list")


# Set union


@given(rows=ROWS, cap=st.integers(1, 4), bits=st.integers(2, 12), seed=SEEDS)
@FEW
def test_a_set_union_of_anything_is_the_plain_one(engine, rows, cap, bits, seed):
    level = bare_level(cap, bits=bits)
    plain = Plain(rows, SeededRandomness(seed)).set_union(level, "round 1")
    assert in_rounds(engine, corpus_of(rows), SeededRandomness(seed), [level]) == [plain]


@given(rows=ROWS, epsilon=st.sampled_from([0.5, 1.0, 8.0]), seed=SEEDS)
@FEW
def test_optimal_selection_is_the_plain_one(engine, rows, epsilon, seed):
    plan = items(epsilon=epsilon, delta=0.1, max_items=1, counts=0)
    (level,) = plan.levels
    plain = Plain(rows, SeededRandomness(seed)).single_items(level, "items/single")
    with host_on(engine, corpus_of(rows), SeededRandomness(seed)) as host:
        (done,) = items_levels(plan.price, host, unstored)
    found = done.rows.select(["tokens", "score"]).to_pylist()
    assert plain == {tuple(row["tokens"]): row["score"] for row in found}


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


@example(
    rows=[(user, [*"abcdefg"[user:], "h", "i"]) for user in range(5)] + [(5, [*"jklmnopq"])],
    cap=4,
    thresholds=(3000, 3000, 1),  # what no user gives anything is not released by noise
    seed=1,
)
@given(
    rows=ROWS,
    cap=st.integers(1, 4),
    thresholds=st.tuples(*[st.integers(200, 2000)] * 3),
    seed=SEEDS,
)
@FEW
def test_rounds_whose_weights_follow_one_another_are_the_plain_ones(
    engine, rows, cap, thresholds, seed
):
    planned = items(epsilon=8, delta=1e-3, max_items=cap, method="adaptive").levels
    levels = [
        replace(level, threshold_grid=threshold, sigma_grid=sigma)
        for level, threshold, sigma in zip(planned, thresholds, [400, 500, 120], strict=True)
    ]
    found = in_adaptive_rounds(engine, corpus_of(rows), SeededRandomness(seed), levels)
    plain = Plain(rows, SeededRandomness(seed))
    assert plain.items_rounds(levels, followed(levels), "items") == found


@given(rows=ROWS, buckets=st.sampled_from([3, 16]), most=st.integers(1, 4), seed=SEEDS)
@FEW
def test_what_auto_looks_at_is_the_plain_one(engine, rows, buckets, most, seed):
    level = ChoiceLevel(1, most, 9, 700, 0, buckets=buckets)
    with host_on(engine, corpus_of(rows), SeededRandomness(seed)) as host:
        host.gather("users", ReadWords())
        drawn = draw_buckets(host, level).to_pydict()
    plain = Plain(rows, SeededRandomness(seed)).buckets(level, "items/choice")
    assert dict(zip(drawn["key"], drawn["noisy"], strict=True)) == plain


def followed(ran):
    """By what the weights of each round follow, on the grid of the first; and its own precision."""
    first, follows, precision, whole = ran[0], [], Fraction(0), 0
    for level in ran:
        finer = 2 ** (level.grid_bits - first.grid_bits)
        of_this = Fraction(finer, level.sigma_grid) ** 2
        own = int(16 * first.sigma_grid**2 * of_this / finer)
        deviation = isqrt(int(1 / (precision or of_this)))
        follows.append((whole or 1, deviation, level.threshold_grid // finer, own))
        precision, whole = precision + of_this, whole + own * finer
    return follows


# DPNE


#: All of it is found, to its full length.
SHARED = [(user, ["a", "b", "$", "a", "b"]) for user in range(8)]


@given(
    rows=ROWS,
    thresholds=st.lists(st.integers(100, 1000), min_size=2, max_size=4),
    cap=st.integers(1, 4),
    sigma=st.sampled_from([100, 400]),
    seed=SEEDS,
)
@example(rows=SHARED, thresholds=[500] * 4, cap=4, sigma=100, seed=1)
@FEW
def test_every_level_of_dpne_is_the_plain_one(engine, rows, thresholds, cap, sigma, seed):
    caps = [100, *[cap] * (len(thresholds) - 1)]
    asked = {"caps": caps, "sigma": sigma, "seed": seed}
    check_ladder(engine, corpus_of(rows), rows, thresholds, **asked)


def test_what_reaches_a_threshold_passes_and_one_below_it_does_not(engine):
    corpus = corpus_of([(user, ["a", "b"]) for user in range(5)] + [(9, ["b", "b"])])
    for level, sums in ((1, {("a",): 5 * 724, ("b",): 5 * 724 + 1024}),
                        (2, {("a", "b"): 5 * 1024, ("b", "b"): 1024})):  # fmt: skip
        for threshold in (total + above for total in sums.values() for above in (0, 1)):
            reached = {gram: total for gram, total in sums.items() if total >= threshold}
            found = weights(climbed(engine, corpus, [ALL, threshold][2 - level :])[-1])
            assert found == reached


@pytest.mark.parametrize("kind", ["text", "uuid", "hugeint", "date"])
def test_over_full_users_keep_what_the_plain_form_keeps_whatever_names_them(engine, kind):
    """Which grams they keep depends on their names, as text."""
    texts = [(n, [f"w{(7 * n + i * i) % 11}" for i in range(12)]) for n in range(2 * 30)]
    rows = [(n % 30, tokens) for n, tokens in texts]
    name = {
        "text": "'user ' || who",
        "uuid": f"CAST('{str(uuid.UUID(int=0))[:-2]}' || (10 + who) AS UUID)",
        "hugeint": "(1::HUGEINT << 100) + who",
        "date": "DATE '2020-01-01' + who::INTEGER",
    }[kind]
    con = duckdb.connect()
    con.register(
        "frame",
        pl.DataFrame({"who": [u for u, _ in rows], "what": [t for _, t in rows]}).to_arrow(),
    )
    source = con.sql(f"SELECT {name} AS who, what FROM frame")
    corpus = Corpus(source, user="who", text="what", as_="list")
    asked = {"caps": [5, 4, 3], "sigma": 200, "users": name}
    assert check_ladder(engine, corpus, rows, [1, 300, 300], **asked) > 15


# The forecast ladder

MANY_WORDS = ["a", "b", "é", "日本", "x\x1f", "", None, *(f"w{i}" for i in range(12))]


def rows_of_many(rng):
    """Many users of a few of the words, and one of nearly all that may stand in a text."""
    rows = [
        (f"user {n % 260}", rng.zipf(1.5, rng.integers(0, 30)) % len(MANY_WORDS))
        for n in range(500)
    ]
    rows.append(("long", rng.integers(0, len(MANY_WORDS), 900)))
    return [(user, [MANY_WORDS[place] for place in places]) for user, places in rows]


def public_items(rng):
    """Words, and longer n-grams of which some are much more frequent than chance has them."""
    words = ["a", "b", "é", "nobody's", *(f"w{i}" for i in range(9))]
    items = [[word] for word in words]
    items += [[one, other] for one in words for other in words if rng.random() < 0.5]
    pairs = {tuple(item) for item in items if len(item) == 2}
    items += [[*pair, word] for pair in sorted(pairs) for word in words if (pair[1], word) in pairs]
    counts = [*(9_000 // (1 + place) for place in range(len(words)))]
    counts += rng.choice([1, 40, 1_500], len(items) - len(words)).tolist()
    return pl.DataFrame({"item": items, "count": counts})


def told_of(seen, level, valid, *beside) -> Forecast:
    """What is public of a level whose rounds were watched, as the specification is told it.
    `beside`: of words that a list lacks, cell, weight and threshold."""
    cells = [*range(seen.weights.size)]
    weights, thresholds = seen.weights.ravel().tolist(), seen.thresholds.ravel().tolist()
    for cell, weight, threshold in beside:
        cells, weights, thresholds = [*cells, cell], [*weights, weight], [*thresholds, threshold]
    return Forecast(
        level.sigma_grid,
        seen.first,
        seen.second,
        LIST_SIZE_BIN_STARTS.tolist(),
        bins=pa.table({"bin": np.arange(len(seen.law.starts)), "start": seen.law.starts}),
        weights=pa.table({"cell": cells, "weight": weights}),
        thresholds=pa.table({"cell": cells, "threshold": thresholds}),
        **valid,
    )


def valid_above(seen, below):
    """Of a longer length: which of the grams below go together, and what is public of those."""
    public = seen.valid.public
    grams = [[*below[key >> 32], below[key & (2**32 - 1)][-1]] for key in public.keys.tolist()]
    return {
        "forecasts": pa.table(
            {
                "tokens": [[*gram] for gram in below],
                "as_first": seen.valid.left,
                "as_last": seen.valid.right,
                "expected_first": public.left,
                "expected_last": public.right,
            }
        ),
        "lifts": pa.table({"expected": range(len(public.shifts)), "shift": public.shifts}),
        "public_grams": pa.table(
            {"gram": pa.array(grams, pa.list_(pa.string())), "class": public.classes}
        ),
    }


def valid_by_list(prior):
    """Of level 1: the words of the list."""
    group = np.floor(np.log(prior.counts[0] / prior.total) / 0.5).astype(int)
    words = [[word] for word in prior.vocabulary.to_pylist()]
    keys = [str(number) for number in range(len(words))]
    return {"forecasts": pa.table({"gram": words, "key": keys, "class": group - group.min()})}


def passed_of(told, name_of):
    """The cell and both noised weights of each gram that passed."""
    assert (np.diff(told.passed_keys) > 0).all()  # another order could show which of them are held
    keys = told.passed_keys
    classes = dict(zip(keys.tolist(), told.valid.classes_of(keys).tolist(), strict=True))
    passed = {}
    for row in told.passing.to_pylist():
        if row["word"] is None:
            assert row["cell"] // len(told.law.starts) == classes[row["key"]]
        name = (row["word"],) if row["word"] is not None else name_of(row["key"])
        assert name not in passed
        passed[name] = [row["cell"], row["first"], row["second"]]
    return passed


def check_rounds(told, found, passed, below):
    """What an engine says of each cell is the held grams' and something more: all valid ones."""
    check_users(told, found)
    assert {gram: passed[gram] for gram in passed.keys() & found.held.keys()} == {
        gram: found.held[gram] for gram in found.passed
    }
    held, negative = (np.zeros(told.weights.size, dtype=int) for _ in range(2))
    for cell, (number, below_zero) in found.signs.items():
        held[cell], negative[cell] = number, below_zero
    absent, absent_negative = told.cell_sizes.ravel() - held, told.nonpositive.ravel() - negative
    assert (told.cell_sizes.sum(axis=1) == told.valid.sizes).all()
    assert (absent >= 0).all()
    assert ((absent_negative >= 0) & (absent_negative <= absent)).all()
    cells = Counter(row[0] for gram, row in passed.items() if gram not in found.held)
    positive = {cell: n for cell, n in enumerate((absent - absent_negative).tolist()) if n}
    thresholds = told.thresholds.ravel()
    assert all(cells[cell] <= positive[cell] for cell in cells)
    assert all(cells[cell] == n for cell, n in positive.items() if thresholds[cell] == 1)
    pieces = set(below)
    assert all(gram[1:] in pieces and gram[:-1] in pieces for gram in passed)


def check_users(told, found):
    """What the driver hears is without what noise alone could easily show, and in users."""
    sigma, first = told.law.noise.sigma, told.first.first
    noisy = np.array(found.user_counts)
    weights = np.full(len(noisy), isqrt(first // 100))
    if told.first.reserve is not None:
        weights[-len(FINDS) :] = isqrt(first * 5 // 100)
    users = np.where(noisy > 2 * sigma, noisy / np.maximum(weights, 1), 0.0)
    assert users.tolist() == told.users.tolist()


def check_late(level, told, plain, name_of, early):
    """A level's late round: of what its two rounds did not release, of cells with both bins."""
    late, sigma = told.late, told.law.noise.sigma
    thresholds = pa.table({"cell": late.cells, "threshold": np.ones(len(late.cells), int)})
    noise = {"sigma": sigma, "purpose": f"ngrams/forecast, level {level}, late"}
    found = plain.late_round(level, late.spending, late.weights, thresholds, **noise)
    passed = {name_of(row["key"]): row for row in late.passing.to_pylist()}
    assert len(passed) == late.passing.num_rows
    assert not passed.keys() & early  # what was released is not released again
    expected = {gram: [found.held[gram][0], noisy] for gram, noisy in found.passed.items()}
    of_held = passed.keys() & found.held.keys()
    assert {gram: [passed[gram]["cell"], passed[gram]["second"]] for gram in of_held} == expected
    sizes = dict(zip(late.cells.tolist(), late.sizes.tolist(), strict=True))
    columns = (late.nonpositive.column(name).to_pylist() for name in ("cell", "nonpositive"))
    nonpositive = dict(zip(*columns, strict=True))
    assert sum(sizes.values()) + len(early) == told.valid.sizes.sum()
    absent = Counter(row["cell"] for gram, row in passed.items() if gram not in found.held)
    for cell, size in sizes.items():
        held, negative = found.signs.get(cell, (0, 0))
        others, others_negative = size - held, nonpositive.get(cell, 0) - negative
        assert 0 <= others_negative <= others
        assert absent[cell] == others - others_negative
    assert found.signs.keys() <= sizes.keys()
    return passed.keys()


@pytest.mark.on_spark
@pytest.mark.parametrize(
    ("with_prior", "grid", "share"),
    [(False, None, 0.9), (True, None, 0), (False, 8, 0)],
)
@counted_for_few()
def test_every_level_of_the_forecast_ladder_is_the_plain_one(engine, with_prior, grid, share):
    """Raw sums, cells, signs and what passes, of all that somebody holds; of all else, how many.
    And purses, user by user, through all rounds: what each user spends and is counted for.

    On a grid of 8 to a sigma users of many grams give nothing to any of them, in no round, and
    some noised sums are just 0. With counts of what is found: also what users keep for them, which
    changes after round 1 of a level, and by whose purses the counts are capped.
    """
    rng = np.random.default_rng(1)
    rows = rows_of_many(rng)
    prior = {"prior": public_items(rng), "prior_is_public": True} if with_prior else {}
    asked = {"max_n": 4, "max_items": 3 if with_prior else 30, "epsilon": 20, "delta": 1e-2,
             "counts": share}  # fmt: skip
    plan = on_grid(grid, ngrams(corpus_of(rows, pl.String), **asked, **prior))
    done, seen = levels_of(engine, plan, SeededRandomness(1), low=True)
    plain = Plain(rows, SeededRandomness(1))

    words = [step for step in done if isinstance(step.level, SetUnionLevel)]
    if not with_prior:
        check_words(words, plain)
    below, names, early = [()] if with_prior else sorted(plain.released(1)), {}, {}
    steps = done[len(words) :]
    for step, told in zip(steps, seen, strict=True):
        n, purpose = step.level.level, f"ngrams/forecast, level {step.level.level}"
        if n == 1:
            others = (-1, 32, step.level.second_threshold_grid), (-2, 0, -(2**62))
            public = told_of(told, step.level, valid_by_list(plan.price.prior), *others)
            plain.fill_purses(step.level.first_unit**2 + step.level.second_unit**2)
            found = plain.listed_rounds(step.level, public, purpose)
            check_words_are_paid_alike(plain, step.level, found)
            vocabulary = plan.price.prior.vocabulary.to_pylist()
            passed = passed_of(told, lambda key, vocabulary=vocabulary: (vocabulary[key],))
            assert min(passed[gram][0] for gram in found.passed) < 0
            below = sorted(passed)
        else:
            names[n] = naming(below)
            if n == 2:
                plain.fill_purses(told.first.full)
            if share:
                plain.add_finds(n - 1)
            public = told_of(told, step.level, valid_above(told, below))
            found = plain.forecast_rounds(n, public, purpose)
            passed = passed_of(told, names[n])
            early[n] = passed.keys()
            below = [names[n](key) for key in told.passed_keys.tolist()]
        check_rounds(told, found, passed, [()] if n == 1 else plain.released(n - 1))
        assert grid is None or any(row[-1] == 0 for row in found.held.values())
        if n == 2 and with_prior:
            bins = len(told.law.starts)
            assert len({row[0] // bins % len(LIFTS) for row in found.held.values()}) > 2
        plain.forget(n)
        plain.release(n, [*passed])
    assert len(seen) == 3 + with_prior
    assert below

    if share:
        plain.add_finds(4)
        check_reserves(plan.price.counting, steps, seen)
    check_late_rounds(steps, seen, plain, names, early)
    if share:
        check_counts(seen, plain)


def check_words(words, plain):
    ran = [step.level for step in words]
    rounds = plain.items_rounds(ran, followed(ran), "ngrams/words")
    for step, found in zip(words, rounds, strict=True):
        scores = zip(step.rows["item"].to_pylist(), step.rows["score"].to_pylist(), strict=True)
        assert {(word,): score * 2.0**step.level.grid_bits for word, score in scores} == found
    assert [type(level) for level in ran[:2]] == [SetUnionLevel, ReweighedLevel]


def check_late_rounds(steps, seen, plain, names, early):
    noise = {"sigma": seen[-1].law.noise.sigma, "purpose": "ngrams/forecast, late purses"}
    noisy = np.array(plain.late_purses(seen.counted, 4, **noise))
    users = noisy / max(isqrt(seen.counted.first), 1)
    assert seen.late_counts.tolist() == np.where(noisy > 2 * noise["sigma"], users, 0.0).tolist()
    for step, told in [(step, told) for step, told in zip(steps, seen, strict=True) if told.late]:
        n = step.level.level
        late = check_late(n, told, plain, names[n], early[n])
        released = [tuple(gram) for gram in step.rows["tokens"].to_pylist()]
        assert len(released) == len({*released})
        assert {*released} == early[n] | late
    purses = plain.purses().values()
    full = seen[-1].first.full
    assert all(0 <= purse <= full for purse, _ in purses)
    assert {0, 4} <= {top for _, top in purses}
    assert all((purse == full) == (top == 0) for purse, top in purses)


#: Bins of how many finds users are expected to hold: the least and a middle of each.
LEAST_FINDS = [1, 2, 3, 4, 6, 8, 12, 16, 24, *(2**power for power in range(5, 15))]
FINDS = [least if least <= 4 else 1.15 * least for least in LEAST_FINDS]


def finds_in_full(planned, now, level, users, left):
    """For how many finds a whole mu^2 counts a user in full, by noised numbers of users by bin. Of
    the part that words `left` users keep at most the same part, and 0.7 of a whole."""
    most = min(left**2, 0.7)
    choices = [planned * 2 ** (quarter / 4) for quarter in range(41)]

    def width(choice):
        bounded = sum(
            number * (1 - min(most * choice / finds, 1) ** 0.5)
            for number, finds in zip(users, FINDS, strict=True)
        )
        return 6 * level.total_sigma * choice**0.5 + bounded

    most_users = 0
    if level.level == 2:
        so_far = [sum(users[: place + 1]) for place in range(len(users))]
        most_users = next(f for f, n in zip(FINDS, so_far, strict=True) if n >= 0.9 * so_far[-1])
    return max(now, int(max(planned * most_users / FEW_FINDS, min(choices, key=width))))


def check_reserves(counting, steps, seen):
    """What users keep, before and after each round 1, by the numbers of users that it shows."""
    in_full = first = counting.within_purses
    above = [(step.level, told) for step, told in zip(steps, seen, strict=True) if told.late]
    for level, told in above:
        before = in_full
        users, left = told.users[-len(FINDS) :].tolist(), told.first.full / level.whole
        in_full = finds_in_full(first, before, level, users, left)
        for reserve, number in ((told.first.reserve, before), (told.second.later_reserve, in_full)):
            each = int(level.whole / number * (1 + 2**-30)) + 1
            most = int(min(left**2, 0.7) * number)
            assert (reserve.each, reserve.most) == (each, most)
            assert reserve.least == counting.max_items
        assert told.second.reserve == told.first.reserve
    assert in_full > first
    for kept in (seen.counted.reserve, *(told.late.spending.reserve for _, told in above)):
        assert kept == above[-1][1].second.later_reserve
    assert seen.counts[0].weighing.most_in_full == counting.max_items


def check_counts(seen, plain):
    """By caps of what each user is left with."""
    level, items, drawn = seen.counts
    asked = {"key": range(len(items)), "tokens": [list(item) for item in items]}
    table = pa.table({**asked, "group_name": pa.nulls(len(items), pa.string())})
    caps = plain.caps(level.sigma_grid, seen[-1].law.noise.sigma)
    assert min(caps.values()) >= level.weighing.least_cap
    assert plain.counts(level, table, [], None, caps) == drawn["noisy"]
    held = plain.con.execute("SELECT user_id, count(*) FROM held GROUP BY user_id").fetchall()
    bounded = [user for user, number in held if number * level.weighing.unit**2 > caps[user]]
    assert 0 < len(bounded) < len(held)


def naming(below):
    """The gram of a key, by the numbers of its two parts."""
    return lambda key: (*below[key >> 32], below[key & (2**32 - 1)][-1])


def check_words_are_paid_alike(plain, level, found):
    """With a list: whoever counts for a word that has a weight in round 2 has spent all."""
    assert found.held
    full = level.first_unit**2 + level.second_unit**2
    assert {purse for purse, _ in plain.purses().values()} <= {0, level.second_unit**2, full}


# Counts


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@given(
    rows=st.lists(
        st.tuples(st.integers(-2, 3), TEXTS, st.sampled_from(["DE", "FR", "ES", None])),
        min_size=1,
        max_size=12,
    ),
    most=st.sampled_from([1, 2, 3, 20, 100, 1_000]),
    seed=SEEDS,
)
@FEW
def test_counts_are_the_plain_ones(engine, grouped, listed, rows, most, seed):
    """Of a list, and in users who were gathered with all their words to find what is counted."""
    asked = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "a", "b"), ("\0",), ("é", "日本", "a")]
    groups = {"by": "where", "groups": ["DE", "FR"]} if grouped else {}
    schema = {"who": pl.Int64, "what": pl.List(pl.String), "where": pl.String}
    frame = pl.DataFrame([*rows], schema=schema, orient="row")
    corpus = Corpus(frame, user="who", text="what", as_="list")
    plan = counts(corpus, of=asked, max_held=most, epsilon=1.0, delta=1e-8, **groups)
    level = replace(plan.levels[0], rough_sigma=3, rough_bits=6, held_sigma=3)
    with host_on(engine, plan.corpus, SeededRandomness(seed)) as host:
        if listed:
            find_listed_items(host, level, plan["of"], plan["groups"])
        else:
            host.gather("users", ReadWords(marks_ends=True, groups=plan["groups"]))
            find_items(host, level, plan["of"])
        rough = noised_by_key(noised_rough_counts(host, level))
        if most > 2:  # then keys have the factors that follow
            level = replace(level.weighed_by(rough), max_items=most)
        in_bins = noised_by_key(noised_histogram(host, level)).tolist()
        drawn = noised_counts(host, level)
    noisy = dict(zip(drawn["key"].to_pylist(), drawn["noisy"].to_pylist(), strict=True))
    names = ["DE", "FR", "other"] if grouped else [None]
    table = pa.table(
        {
            "key": range(len(asked) * len(names)),
            "tokens": [list(item) for item in plan["of"] for _ in names],
            "group_name": pa.array(names * len(asked), pa.string()),
        }
    )
    plain = Plain(rows, SeededRandomness(seed))
    found = plain.counts(level, table, plan["groups"], "other" if grouped else None)
    assert found == [noisy[key] for key in sorted(noisy)]
    assert plain.rough_counts(level) == rough.tolist()
    assert plain.numbers_held(level) == in_bins


ITEMS = "abcdefghijkl"


@given(
    users=st.lists(
        st.tuples(st.lists(st.sampled_from(ITEMS), max_size=20), st.floats(0, 1.2)),
        min_size=1,
        max_size=9,
    ),
    most=st.sampled_from([1, 2, 3, 12]),
    seed=SEEDS,
)
@FEW
def test_counts_of_users_with_caps_of_their_own_are_the_plain_ones(engine, users, most, seed):
    """In rows of whole users, as the rounds of a run leave them: two users a row."""
    level = CountsLevel(0.5, len(ITEMS), most, 0.95, simultaneous=False)
    weighing = level.weighing
    caps = {who: int(weighing.least_cap * 10**more) for who, (_, more) in enumerate(users)}
    blocks = [users[at : at + 2] for at in range(0, len(users), 2)]
    held_by_block = [[ITEMS.index(x) for held, _ in block for x in held] for block in blocks]
    columns = {
        "lengths": ([[len(held) for held, _ in block] for block in blocks], np.int32),
        "ids": (held_by_block, np.int32),
        "caps": ([[*caps.values()][2 * at : 2 * at + 2] for at in range(len(blocks))], np.int64),
    }
    counted = {
        name: pa.array([np.array(row, kind).tobytes() for row in rows])
        if engine == "spark"  # a block's numbers are bytes there
        else pa.array(rows, pa.list_(pa.from_numpy_dtype(kind)))
        for name, (rows, kind) in columns.items()
    }
    with host_on(engine, corpus_of([(0, [])]), SeededRandomness(seed)) as host:
        host.put("counted_users", pa.table(counted))
        drawn = noised_counts(host, level)
    noisy = dict(zip(drawn["key"].to_pylist(), drawn["noisy"].to_pylist(), strict=True))
    asked = {"key": range(len(ITEMS)), "tokens": [[x] for x in ITEMS]}
    table = pa.table({**asked, "group_name": pa.nulls(len(ITEMS), pa.string())})
    plain = Plain([(who, held) for who, (held, _) in enumerate(users)], SeededRandomness(seed))
    assert plain.counts(level, table, [], None, caps) == [noisy[key] for key in sorted(noisy)]


# Tries


LETTERS = st.sampled_from(["a", "b", "$", "\0", "", None])
SEQUENCES = st.lists(
    st.tuples(st.integers(0, 9), st.lists(LETTERS, max_size=4)), min_size=1, max_size=30
)


#: One path grows; the last three users, who are not on it, must not vote below it.
ONE_PATH = [*enumerate([["a", "b"]] * 3 + [["a", "$"]] * 3 + [["b", "b"]] * 3)]
#: Two grow, then one of them; those at the other must not vote below it.
TWO_PATHS = [*enumerate([list(word) for word in ("abb", "aba", "bbb", "bab") for _ in range(3)])]
#: Users of two to five rows, which are in no order; who holds a sequence is seen in it.
SEVERAL = [(user, [str(user), last]) for user in range(9) for last in "bcabc"[user % 4 :]]


@pytest.mark.parametrize("choice", ["drawn", "most-frequent"])
@given(rows=SEQUENCES, theta=st.integers(1, 4), p=st.sampled_from([0.3, 0.7, 0.95]), seed=SEEDS)
@example(rows=ONE_PATH, theta=4, p=0.95, seed=1)
@example(rows=TWO_PATHS, theta=4, p=0.95, seed=1)
@example(rows=SEVERAL, theta=1, p=0.95, seed=1)
@FEW
def test_every_level_of_a_trie_is_the_plain_one(engine, choice, rows, theta, p, seed):
    """Coins, and which of several rows is a user's."""
    votes = [VoteLevel(level, int(p * 2.0**64), theta) for level in range(1, 5)]
    done = grown(engine, corpus_of(rows), votes, SeededRandomness(seed), choice)
    plain = Plain(rows, SeededRandomness(seed)).trie([step.level for step in done], choice)
    assert [prefixes(step) for step in done] == plain


# Tries of local reports


#: All have more to say than they may.
TALKATIVE = [(user, list(word)) for user in range(12) for word in ("aa", "ab", "b$", "$a", "b")]
#: Half of their words have a character that nobody may report.
FOREIGN = [(user, list(word)) for user in range(12) for word in ("éa", "aé", "ab", "é")]


class BeginAlike(SeededRandomness):
    """Words for seats have the same 16 leading bits, by which an engine first cuts all users."""

    def random_words(self, count, purpose, keys=None):
        words = super().random_words(count, purpose, keys)
        return words >> np.uint64(16) if purpose == SEATS else words


@pytest.mark.parametrize("sampling", ["random", "greedy"])
@given(
    rows=SEQUENCES,
    contributions=st.integers(1, 3),
    keep=st.integers(1, 6),
    draws=st.sampled_from([SeededRandomness, BeginAlike]),
    seed=SEEDS,
)
@example(rows=TALKATIVE, contributions=1, keep=6, draws=SeededRandomness, seed=1)
@example(rows=TALKATIVE, contributions=1, keep=6, draws=BeginAlike, seed=1)
@example(rows=FOREIGN, contributions=2, keep=6, draws=SeededRandomness, seed=1)
@FEW
def test_every_level_of_local_reports_is_the_plain_one(
    engine, sampling, rows, contributions, keep, draws, seed
):
    """Seats, choices on a device, reports, what is kept and asked for next; with made-up users."""
    plan = local_plan(
        3, contributions, truthful=False, character_set=["b", "$", "a"], max_length=2, passes=2,
        keep=keep, known=[["a", "b"]], sampling=sampling, pad=True,
    )  # fmt: skip
    drawn = []

    def once(step, draw):
        drawn.append(draw())
        return drawn[-1]

    with host_on(engine, corpus_of(rows), draws(seed)) as host:
        done = [*ldp_trie_levels(plan.price, host, once)]
    characters, levels = plan["character_set"], plan.levels
    plain = Plain(rows, draws(seed))
    plain.sit(characters, 3 * len(levels), len({user for user, _ in rows}))
    known, released, below = {("a", "b")}, set(), []
    for level, kept, step in zip(levels, drawn, done, strict=True):
        if level.level == 1:  # of a pass, which does not ask for what was found before
            known |= {tokens for tokens, ended in released if ended}
            below = [(character,) for character in characters]
        expected = plain.reports(
            level,
            below,
            sorted(known),
            characters,
            f"ldp_trie/pass {level.pass_number}/level {level.level}",
        )
        columns = (kept.column(name).to_pylist() for name in ("value", "reports"))
        assert list(zip(*columns, strict=True)) == [row[:2] for row in expected]
        grown = [(tuple(prefix), ended) for _, _, prefix, ended in sorted(expected)]
        assert prefixes(step) == {*grown} - released
        released |= {*grown}
        below = [tokens for tokens, ended in grown if not ended]


# The specification by itself


@pytest.mark.parametrize("level", [2, 3])
def test_every_valid_gram_takes_part_in_the_plain_form(level):
    """Held grams with their weights; and all others that are valid, with a weight of 0."""
    rows = [(1, ["a", "b", "c", "a"]), (2, ["b", "c"]), (3, ["x"])]
    below = [{("a",), ("b",), ("c",)}, {("a", "b"), ("b", "c"), ("c", "a")}]
    plain = Plain(rows, NoNoise())
    for n, grams in enumerate(below[: level - 1], start=1):
        plain.release(n, [*grams])
    planned = climbed("duckdb", corpus_of(rows), [1] * level)[-1].level
    found = plain.dpne(planned, "level", EVERYTHING)
    assert found.keys() == {gram for gram in product("abc", repeat=level) if valid(gram, below)}
    held = set().union(*(grams_of(tokens, level) for _, tokens in rows))
    assert {gram for gram, weight in found.items() if weight} == found.keys() & held
    plain.forget(level)
    assert plain.dpne(planned, "level", 1, absent=False).keys() == held & found.keys()
