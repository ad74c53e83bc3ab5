"""`ldp_trie` on every engine, against the paper's loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import dphh.engines.polars.steps.local_tries
import dphh.udfs.draws.subsets
from dphh import Corpus, CorpusError, EngineError, Ledger, Release, ldp_trie
from dphh.columns import ESTIMATED
from dphh.testing import SeededRandomness
from dphh.udfs.draws.randomness import SystemRandomness
from dphh.udfs.draws.subsets import draw_subsets
from tests.engines.local_tries import brute_force, grown, plan_of, prefixes, seated

FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: How often a test of chance may fail a right mechanism.
CHANCE = 1e-9
#: "é" is no character of the tests' tries.
WORDS = st.text(st.sampled_from("ab$é"), max_size=4)


def held_by(rows):
    words = defaultdict(list)
    for user, word in rows:
        words[user].append(word)
    return words


def scores(done):
    return [{prefix: round(score, 6) for prefix, score in prefixes(one).items()} for one in done]


# The levels against brute force


@given(
    rows=st.lists(st.tuples(st.integers(0, 11), WORDS), min_size=12, max_size=40),
    keep=st.integers(1, 6),
    levels=st.integers(1, 4),
    passes=st.integers(1, 2),
    known=st.lists(WORDS, max_size=3),
    seed=st.integers(0, 10**6),
)
@FEW
def test_every_level_is_the_brute_force_one(
    engine, written, rows, keep, levels, passes, known, seed
):
    rows = rows + [(user, "") for user in range(12)]  # everybody is there
    plan = plan_of(
        12 // (levels * passes),
        40,
        truthful=True,
        character_set="$ba",
        max_length=levels,
        passes=passes,
        keep=keep,
        known=known,
        pad=True,
    )
    words = held_by(rows)
    seats = seated(list(words), SeededRandomness(seed))
    corpus = written(rows, text=None, item="what")
    done = grown(engine, corpus, plan, SeededRandomness(seed))
    assert scores(done) == brute_force(words, seats, plan)


def test_tokens_may_be_any_text(engine, written):
    rows = [["home", "news"], ["home", "news"], ["home"], ["news", "", "home"], ["x", "home"]]
    plan = plan_of(5, 1, truthful=True, character_set=["news", "home"], max_length=1, keep=9)
    done = grown(engine, written(list(enumerate(rows)), text="what", as_="list"), plan,
                 SeededRandomness(0))  # fmt: skip
    assert scores(done) == [
        {(("home", "news"), False): 2, (("home",), True): 1, (("news", "home"), False): 1}
    ]
    assert done[0].rows.column("item").to_pylist() == ["news home", "home news", "home"]


def test_a_word_that_begins_another_ends_out_of_band(engine, written):
    words = ["a"] * 3 + ["ab"] * 3 + ["a$"] * 3
    rows = [(f"{user}/{i}", word) for user in range(2) for i, word in enumerate(words)]
    plan = plan_of(9, 1, truthful=True, character_set="ab$", max_length=2, keep=9)
    done = grown(engine, written(rows, text=None, item="what"), plan, SeededRandomness(3))
    ended = {"".join(tokens) for one in done for tokens, end in prefixes(one) if end}
    assert ended == {"a", "ab", "a$"}
    assert done[1].rows.column("ended").to_pylist().count(False) == 0


# Who is asked


def test_nobody_is_asked_twice_and_everybody_once_if_all_are_needed(engine, written):
    letters = [chr(ord("a") + i) for i in range(24)]
    rows = [(user, letter) for user, letter in enumerate(letters)]
    asked_for = {"character_set": "".join(letters), "passes": 4, "keep": 99}
    plan = plan_of(6, 3, truthful=True, **asked_for)
    corpus = written(rows, text=None, item="what")
    asked = []
    for seed in (1, 2):
        done = grown(engine, corpus, plan, SeededRandomness(seed))
        asked.append([{tokens[0] for tokens, _ in prefixes(one)} for one in done])
        assert [len(one) for one in asked[-1]] == [6] * 4
        assert set.union(*asked[-1]) == set(letters)
    assert asked[0] != asked[1]


def test_seats_are_uniform(engine, written):
    """24 users, 6 asked: each as often as any other."""
    letters = [chr(ord("a") + i) for i in range(24)]
    corpus = written(list(enumerate(letters)), text=None, item="what")
    plan = plan_of(6, 1, truthful=True, character_set="".join(letters), keep=99)
    seen: Counter[str] = Counter()
    for _ in range(15):
        (done,) = grown(engine, corpus, plan, SystemRandomness())
        seen.update(tokens[0] for tokens, _ in prefixes(done))
    assert seen.total() == 90
    # Without replacement, so a little more even than the multinomial: the test leans to pass.
    assert chisquare([seen[letter] for letter in letters]).pvalue > CHANCE


def test_too_few_users_are_refused_with_the_number_needed(engine, written):
    corpus = written([(user, "ab") for user in range(20)], text=None, item="what")
    plan = plan_of(7, 1, truthful=True, max_length=3)
    with pytest.raises(CorpusError, match="need 21 users") as refused:
        grown(engine, corpus, plan, SeededRandomness(0))
    assert "20" not in str(refused.value)


def test_padding_sits_among_users_and_holds_nothing(engine, written):
    corpus = written([(user, "ab") for user in range(20)], text=None, item="what")
    asked = {"character_set": "ab", "max_length": 2, "keep": 4, "passes": 2, "pad": True}
    done = grown(engine, corpus, plan_of(10, 1, truthful=True, **asked), SeededRandomness(7))
    told = [sum(prefixes(one).values()) for one in done]
    assert sum(told[:2]) + told[2] <= 20
    assert all(0 < count < 10 for count in told[:2])


def test_users_of_nothing_are_users(engine, written):
    """They are counted and asked, and say "nothing"."""
    rows = [(user, None if user % 2 else "ab") for user in range(40)]
    rows += [(user, "é") for user in range(40) if user % 2]
    plan = plan_of(20, 2, truthful=True, character_set="ab", max_length=2, keep=4)
    done = grown(engine, written(rows, text=None, item="what"), plan, SeededRandomness(5))
    first, second = (sum(prefixes(one).values()) for one in done)
    assert first + second == 20


def test_rows_of_nobody_are_refused(engine, written):
    corpus = written([(1, "a"), (None, "b")], text=None, item="what")
    with pytest.raises(CorpusError, match="a NULL user id"):
        grown(engine, corpus, plan_of(1, 1, truthful=True), SeededRandomness(0))


# What an over-full user reports


def first_letters(engine, corpus, plan, randomness):
    (done,) = grown(engine, corpus, plan, randomness)
    return Counter({"".join(tokens): int(score) for (tokens, _), score in prefixes(done).items()})


LOCAL = [("ax", 5), ("bx", 1), ("cx", 3), ("dx", 4)]


def over_full(written, users):
    rows = [(user, word) for user in range(users) for word, times in LOCAL for _ in range(times)]
    return written(rows, text=None, item="what")


def test_greedy_sampling_reports_what_most_rows_hold(engine, written):
    plan = plan_of(9, 2, truthful=True, character_set="abcdx", keep=9, sampling="greedy")
    told = first_letters(engine, over_full(written, 9), plan, SystemRandomness())
    assert told == {"ax": 9, "dx": 9}


def test_random_sampling_ignores_how_many_rows_hold_a_prefix(engine, written):
    users = 3000
    plan = plan_of(users, 1, truthful=True, character_set="abcdx", keep=9)
    told = first_letters(engine, over_full(written, users), plan, SystemRandomness())
    assert told.total() == users
    assert chisquare([told[word] for word, _ in LOCAL]).pvalue > CHANCE


def test_rows_add_up_to_the_local_count_of_a_prefix(engine, written):
    """Three words that begin alike outweigh one word of two rows."""
    rows = [(0, "aab"), (0, "aac"), (0, "aaa"), (0, "bbb"), (0, "bbb")]
    plan = plan_of(1, 1, truthful=True, character_set="abc", keep=9, sampling="greedy")
    corpus = written(rows, text=None, item="what")
    assert first_letters(engine, corpus, plan, SystemRandomness()) == {"aa": 1}


@pytest.mark.parametrize("words", [[], ["ab"] * 3, ["ab", "ac", "ab", "ba"], list("abc") * 2])
def test_no_user_reports_a_value_twice(engine, written, monkeypatch, words):
    """Neither of theirs nor of nothing's: one user is asked; what is randomised is looked at."""
    if engine == "spark":
        pytest.skip("its reports are drawn in other processes, by the query that DuckDB has too")
    values: list[int] = []

    def looked_at(randomness, held, *rest):
        values.extend(np.asarray(held).tolist())
        return draw_subsets(randomness, held, *rest)

    for module in (dphh.udfs.draws.subsets, dphh.engines.polars.steps.local_tries):
        monkeypatch.setattr(module, "draw_subsets", looked_at)
    rows = [("one", word) for word in ["", *words]]
    plan = plan_of(1, 5, truthful=False, character_set="abc", keep=9)
    grown(engine, written(rows, text=None, item="what"), plan, SystemRandomness())
    assert len(values) == len(set(values)) == 5
    (level,) = plan.levels
    assert sum(value < level.values for value in values) == len(set(words))


# Runs


def test_a_run_finds_what_many_hold_and_books_the_users_price(engine, ledger: Ledger):
    generator = np.random.default_rng(1)
    users = 24_000
    common = generator.choice(["tea", "oat", "at", "eat"], users)
    frame = pl.DataFrame({"who": range(users), "what": common})
    corpus = Corpus(frame, user="who", item="what")
    plan = ldp_trie(
        corpus, local_epsilon=4, delta=1e-6, users_per_level=4000, contributions=1, max_length=3,
        keep=6, passes=2, character_set="aeot",
    )  # fmt: skip
    release = plan.run(engine=engine, ledger=ledger)
    table = release.to_arrow()
    assert table.schema == ESTIMATED
    words = table.filter(table["ended"])
    best = dict(zip(words["item"].to_pylist(), words["score"].to_pylist(), strict=True))
    assert {"tea", "oat", "at", "eat"} <= set(best)
    assert all(700 < best[word] < 1300 for word in ("tea", "oat", "at", "eat"))
    assert len(set(zip(table["item"].to_pylist(), table["ended"].to_pylist(), strict=True))) == len(
        table
    )
    privacy = release.privacy
    assert privacy.epsilon == 4
    assert "item" in privacy.unit
    assert privacy.central_epsilon < 4
    (entry,) = ledger.runs()
    assert entry.epsilon == privacy.user_epsilon
    assert [event.kind for event in entry.events] == ["approximate", "local"]
    assert [level["released"] for level in release.manifest["levels"]] == [
        level["released"] for level in release.manifest["levels"] if level["kind"] == "local"
    ]
    loaded = Release.from_parquet(release.parquet(), release.manifest)
    assert loaded.to_arrow() == table


class BreaksInPass2:
    """The system's words until the second pass."""

    is_test = False

    def words(self, count, purpose, keys=None):
        if purpose.startswith("ldp_trie/pass 2"):
            raise RuntimeError
        return SystemRandomness().words(count, purpose, keys)


def test_a_run_that_goes_on_asks_those_who_were_not_asked(engine, written, ledger: Ledger):
    """Each of 24 users holds a word of their own: asked anew at random, some would be missed."""
    letters = [chr(ord("a") + i) for i in range(24)]
    corpus = written(list(enumerate(letters)), text=None, item="what")
    asked = {"character_set": "".join(letters), "passes": 2, "keep": 99}
    plan = replace(plan_of(12, 1, truthful=True, **asked), corpus=corpus)
    with pytest.raises((EngineError, RuntimeError)):
        plan.run(engine=engine, ledger=ledger, run_id="r", randomness=BreaksInPass2())
    release = plan.run(engine=engine, ledger=ledger, run_id="r")
    assert set(release.to_arrow().column("item").to_pylist()) == set(letters)
    assert [level["released"] for level in release.manifest["levels"]] == [12, 12]


@pytest.mark.slow
def test_scores_are_unbiased_estimates(engine, written):
    """600 of 1,000 hold "ab", at a weak and at a strong randomiser."""
    rows = [(user, "ab" if user < 600 else "ba") for user in range(1000)]
    corpus = written(rows, text=None, item="what")
    for local_epsilon in (1.0, 5.0):
        plan = plan_of(1000, 1, truthful=False, character_set="abcd", local_epsilon=local_epsilon,
                       keep=99)  # fmt: skip
        (level,) = plan.levels
        mean = np.mean([
            prefixes(grown(engine, corpus, plan, SystemRandomness())[0])[(("a", "b"), False)]
            for _ in range(8)
        ])  # fmt: skip
        deviation = float(level.mechanism.variance(1000, 600)) ** 0.5 / 8**0.5
        assert abs(mean - 600) < 6 * deviation


def test_a_corpus_of_nothing_finds_only_noise(engine, written):
    corpus = written([(user, None if user else "") for user in range(5)], text=None, item="what")
    plan = plan_of(5, 1, truthful=True, max_length=3, pad=True)
    assert [prefixes(one) for one in grown(engine, corpus, plan, SystemRandomness())] == [{}] * 3
    levels = tuple(replace(x, numerator=2**63) for x in plan.levels)
    noisy = replace(plan, price=replace(plan.price, levels=levels))
    done = grown(engine, corpus, noisy, SystemRandomness())
    assert all(len(prefixes(one)) <= 10 for one in done)
