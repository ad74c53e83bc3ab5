"""What sums tell of a whole user, audited: exact laws of the counts, of what is really reported.

Which values a user reports comes from an engine's run with the truth told; how counts are spread is
computed anew, exactly, for one number that follows from them: so what is found here is a lower
bound of the truth, and a promise below it is false. The planted faults are those that the promise
rests on: a value that a user reports twice, one "nothing" for all, a user who serves two levels.
"""

from itertools import product
from math import comb, exp

import numpy as np
import pytest

from dphh import ldp_trie
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.udfs.noise.randomness import SystemRandomness
from dphh.udfs.rules.reports import SubsetSelection
from tests.engines.tries import grown_of_reports, local_plan, scores

DELTA = 1e-6
ASKED = {
    "delta": DELTA, "users_per_level": 4000, "contributions": 8, "max_length": 2, "keep": 100,
    "character_set": "abcdefgh",
}  # fmt: skip


def of_report(mechanism: SubsetSelection, a: int, b: int, own: str) -> np.ndarray:
    """Of one report: the chances of how many of `a` values it holds, less how many of `b` others,
    where its own value is of the "first", of the "second" or of "neither". From -b on."""
    chances = np.zeros(a + b + 1)
    s, d, p = mechanism.domain, mechanism.size, mechanism.p
    left = (a - (own == "first"), b - (own == "second"))
    for held, pick, chance in ((1, d - 1, p), (0, d, 1 - p)):
        for x, y in product(*(range(some + 1) for some in left)):
            if pick - x - y >= 0:
                ways = comb(left[0], x) * comb(left[1], y) * comb(s - 1 - sum(left), pick - x - y)
                sign = {"first": held, "second": -held, "neither": 0}[own]
                chances[b + sign + x - y] += chance * ways / comb(s - 1, pick)
    return chances


def at_least(level: LocalLevel, before: list[int], after: list[int], epsilon: float) -> float:
    """A lower bound of delta at epsilon, where a user reports these values, or those, and nobody
    else any of them: by the exact law of how often reports hold the old values less how often they
    hold the new ones, modulo 2^15."""
    old, new = set(before) - set(after), set(after) - set(before)

    def law(said: list[int], a: int, b: int) -> np.ndarray:
        def seen(own: str) -> np.ndarray:
            return np.fft.rfft(of_report(level.mechanism, a, b, own), 1 << 15)

        total = seen("neither") ** (level.reports - len(said))
        for value in said:
            own = "first" if a and value in old else "second" if b and value in new else "neither"
            total = total * seen(own)
        return np.fft.irfft(total)

    found = []
    for a, b in ((len(old), len(new)), (len(old), 0), (0, len(new))):
        one, other = law(before, a, b), law(after, a, b)
        found.append(float(np.maximum(one - exp(epsilon) * other, 0).sum()))
    return max(found) - 1e-9  # far above the rounding


@pytest.fixture(scope="module")
def plan():
    return ldp_trie(**ASKED, user_epsilon=1.0)


def reported(engine: str, written, words: list[str]) -> list[int]:
    """Which values one user of these words reports, once for each time: nobody else holds any."""
    rows = [("one", word) for word in words] + [(f"other {i}", "") for i in range(9)]
    plan = local_plan(10, 8, truthful=True, character_set="abcdefgh", keep=99)
    (level,) = plan.levels
    corpus = written(rows, text=None, item="what")
    (done,) = grown_of_reports(engine, corpus, plan, SystemRandomness())
    place = {letter: number for number, letter in enumerate("abcdefgh")}
    values = []
    for (tokens, ended), score in scores(done).items():
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
        nothing = list(
            range(level.keepable_values, level.keepable_values + 6)
        )  # where the user holds two alone
        assert at_least(level, before, after + nothing, plan.privacy.user_epsilon) <= DELTA
        assert at_least(level, after + nothing, before, plan.privacy.user_epsilon) <= DELTA


def test_the_worst_replacement_comes_near_to_the_promise(plan):
    level, worst = plan.levels[-1], (list(range(8)), list(range(8, 16)))
    assert at_least(level, *worst, plan.privacy.user_epsilon) <= DELTA
    assert at_least(level, *worst, 0.75 * plan.privacy.user_epsilon) > DELTA


@pytest.mark.parametrize("fault", ["repeated", "shared nothing", "second level"])
def test_planted_faults_are_caught(plan, fault):
    before, after = {
        # Sampling with repetition: one value in all reports.
        "repeated": ([0] * 8, list(range(8, 16))),
        # A count of "nothing" that is seen, of which the user has all or none.
        "shared nothing": ([99] * 8, list(range(8))),
        # Twice as many counts move.
        "second level": (list(range(16)), list(range(16, 32))),
    }[fault]
    assert at_least(plan.levels[-1], before, after, plan.privacy.user_epsilon) > 2 * DELTA
