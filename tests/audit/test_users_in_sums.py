"""What sums tell of a whole user, audited: exact laws of the counts, of what is really reported.

Which values a user reports comes from the product (an engine's run with the truth told, or a
device's sample); how counts are spread is computed anew, exactly, by losses that are rounded
*down*: so what is found here is a lower bound of the truth, and a promise below it is false. The
planted faults are those that the promise rests on: a value that a user reports twice, one "nothing"
for all, a user who serves two levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import exp

import numpy as np
import pytest
from scipy.stats import beta, binom

from dphh import ldp_trie
from dphh.devices.reports.device import next_prefixes, sample
from dphh.mechanisms.ldp_trie import collector
from dphh.testing import SeededRandomness
from dphh.udfs.draws.coin_reports import NOTHING, draw_coins
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.subset_reports import draw_aggregate
from tests.engines.local_tries import grown, plan_of, prefixes

DELTA = 1e-6
ASKED = {
    "delta": DELTA, "users_per_level": 4000, "contributions": 8, "max_length": 2, "keep": 20,
    "character_set": "abcdefgh",
}  # fmt: skip
STEP = 5e-4
#: Of one bound; a test makes two.
FAILS = 1e-9

#: How many of the user's reports are for each value: before, and after.
Moves = Iterable[tuple[int, int]]


def moved(before: Iterable[int], after: Iterable[int]) -> list[tuple[int, int]]:
    one, other = Counter(before), Counter(after)
    return [(one[value], other[value]) for value in sorted(one | other)]


def at_least(level, moves: Moves, epsilon: float) -> float:
    """A lower bound of delta at epsilon, where counts are independent and nobody else holds any of
    the values: the law of each count, exactly, and their product with losses rounded down."""
    p, q, n = level.mechanism.p, level.mechanism.q, level.reports
    total, first = np.ones(1), 0
    for before, after in moves:
        if before == after:
            continue
        laws = []
        for held in (before, after):
            own, others = np.arange(held + 1), np.arange(n - held + 1)
            law = np.convolve(binom.pmf(own, held, p), binom.pmf(others, n - held, q))
            laws.append(law)
        some = (laws[0] > 1e-14) & (laws[1] > 1e-14)
        place = np.floor(np.log(laws[0][some] / laws[1][some]) / STEP).astype(int)
        total = np.convolve(total, np.bincount(place - place.min(), laws[0][some]))
        first += int(place.min())
    losses = STEP * (first + np.arange(len(total)))
    over = losses > epsilon
    return float(np.sum(total[over] * -np.expm1(epsilon - losses[over])))


@pytest.fixture(scope="module")
def plan():
    return ldp_trie(**ASKED, user_epsilon=1.0, mode="aggregate")


def reported(engine: str, written, words: list[str]) -> list[int]:
    """Which values one user of these words reports, once for each time: nobody else holds any."""
    rows = [("one", word) for word in words] + [(f"other {i}", "") for i in range(9)]
    plan = plan_of(10, 8, truthful=True, character_set="abcdefgh", mode="aggregate", keep=99)
    (level,) = plan.levels
    corpus = written(rows, text=None, item="what")
    (done,) = grown(engine, corpus, plan, SystemRandomness())
    place = {letter: number for number, letter in enumerate("abcdefgh")}
    values = []
    for (tokens, ended), score in prefixes(done).items():
        following = level.characters if ended else place[tokens[1]]
        values += [place[tokens[0]] * (level.characters + 1) + following] * round(score)
    return values


def test_what_engines_report_of_a_user_keeps_to_the_promise(engine, written, plan):
    """Words typed many times, some that begin alike: each value once, B at most."""
    words = [f"{one}{two}" for one in "abcd" for two in "abc"] * 3 + ["aab", "aac", "a"]
    before, after = (reported(engine, written, held) for held in (words, ["ha", "ha", "hb"] * 4))
    assert len(before) == len(set(before)) == 8
    assert sorted(after) == [63, 64]
    for level in plan.levels:
        assert at_least(level, moved(before, after), plan.privacy.user_epsilon) <= DELTA
        assert at_least(level, moved(after, before), plan.privacy.user_epsilon) <= DELTA


def test_the_worst_replacement_comes_near_to_the_promise(plan):
    level = plan.levels[-1]
    worst = moved(range(8), range(8, 16))
    assert at_least(level, worst, plan.privacy.user_epsilon) <= DELTA
    assert at_least(level, worst, 0.9 * plan.privacy.user_epsilon) > DELTA


@pytest.mark.parametrize("fault", ["repeated", "shared nothing", "second level"])
def test_planted_faults_are_caught(plan, fault):
    level = plan.levels[-1]
    moves = {
        # Sampling with repetition: one value in all reports.
        "repeated": moved([0] * 8, range(8, 16)),
        # A count of "nothing" that is seen, of which the user has all or none.
        "shared nothing": moved([99] * 8, range(8)),
        # Twice as many counts move.
        "second level": moved(range(8), range(8, 16)) * 2,
    }[fault]
    assert at_least(level, moves, plan.privacy.user_epsilon) > 2 * DELTA


def test_what_a_device_samples_keeps_to_the_promise():
    """Mode "messages": no value twice, of prefixes or of nothing; one nothing for all is caught."""
    plan = ldp_trie(**ASKED, local_epsilon=4.0)
    level = plan.levels[0]
    said = collector.broadcast(collector.planted(plan), level)
    shared = 0
    for seed in range(30):
        words = ["ab", "ac", "ad", "bb", "bc", "ca"][: seed % 7] * 2
        values = sample(said, next_prefixes(said, words), SeededRandomness(seed), "").tolist()
        assert len(set(values)) == 8
        shared = max(shared, sum(value >= level.values for value in values))
    assert shared == 8  # of who holds nothing: eight different ones
    # By one count alone: 8 reports of one nothing, which the promise does not bear.
    most = plan.privacy.user_epsilon
    assert max(at_least(plan.levels[-1], moves, most) for moves in ([(8, 0)], [(0, 8)])) > DELTA


def counts_drawn(level, held):
    counts = np.zeros(level.values, dtype=np.int64)
    counts[held] = 1
    return draw_aggregate(SystemRandomness(), counts, level.reports, level.mechanism, "audit")


def counts_sent(level, held):
    """The reports of devices, one by one, and their sum."""
    said = np.full(level.reports, NOTHING)
    said[: len(held)] = held
    drawn, _ = draw_coins(SystemRandomness(), said, level.mechanism, "audit")
    return np.bincount(drawn, minlength=level.values)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize(
    "mode, users, counted", [("aggregate", 3000, counts_drawn), ("messages", 300, counts_sent)]
)
def test_counts_by_coins_keep_to_the_promise_in_a_black_box(epsilon, mode, users, counted):
    """A user has two of all reports. The event: more reports of the old values than of the new
    ones. What is measured keeps to what is promised, and the event is no rare one."""
    delta = 0.01
    plan = ldp_trie(
        user_epsilon=epsilon, delta=delta, users_per_level=users, contributions=2,
        max_length=1, keep=9, character_set="abcd", mode=mode, reports="coins",
    )  # fmt: skip
    (level,) = plan.levels
    trials, seen = 1500, [0, 0]
    for row, held in enumerate(([0, 1], [2, 3])):
        for _ in range(trials):
            drawn = counted(level, held)
            seen[row] += int(drawn[:2].sum() > drawn[2:4].sum())
    low = beta.ppf(FAILS, seen[0], trials - seen[0] + 1)
    high = beta.ppf(1 - FAILS, seen[1] + 1, trials - seen[1])
    assert low <= exp(epsilon) * high + delta
    assert seen[0] > trials / 3
