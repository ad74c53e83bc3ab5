"""The baseline of DPNE's two prunings: what is valid, what is spurious, and what each finds."""

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from baselines.dpne import Valid, found_by, spurious_grams
from scipy.stats import norm

from dphh import Corpus, ngrams
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.testing import SeededRandomness

PRUNINGS = pytest.mark.parametrize("pruning", ["both", "single"])
WORDS = [["a"], ["b"], ["c"]]
PAIRS = [["a", "b"], ["b", "c"], ["b", "b"], ["c", "a"]]
GRAMS = pl.List(pl.String)


def enumerated(below: list[list[str]], pruning: str) -> set[tuple[str, ...]]:
    length = len(below[0]) + 1
    return {
        gram
        for gram in product("abc", repeat=length)
        if [*gram[:-1]] in below and (pruning == "single" or [*gram[1:]] in below)
    }


@PRUNINGS
@pytest.mark.parametrize("below", [WORDS, PAIRS], ids=["words", "pairs"])
def test_each_index_is_another_valid_gram_and_every_valid_gram_has_one(pruning, below):
    valid = Valid(pl.Series(below, dtype=GRAMS), pl.Series(WORDS, dtype=GRAMS), pruning)
    found = [tuple(gram) for gram in valid.at(np.arange(len(valid))).to_list()]
    assert len(found) == len({*found})
    assert {*found} == enumerated(below, pruning)


#: Words that many users hold alone, and "p q", which many hold.
COMMON = [*(f"w{n}" for n in range(20)), "r"]
KNOWN = [(user, [COMMON[user % len(COMMON)]]) for user in range(1_050)]
KNOWN += [(2_000 + user, ["p", "q"]) for user in range(300)]
#: Forty users hold "p q r", and 99 other pairs of known words: so each adds little to "q r".
FEW = [
    (3_000 + user, text)
    for user in range(40)
    for text in (
        ["p", "q", "r"],
        *([f"w{n % 20}", f"w{(n // 20 + user) % 20}"] for n in range(99)),
    )
]


def test_a_gram_whose_end_was_not_found_is_found_on_a_single_side_alone():
    schema = {"who": pl.Int64, "what": GRAMS}
    frame = pl.DataFrame([*KNOWN, *FEW], schema=schema, orient="row")
    corpus = Corpus(frame, user="who", text="what", as_="list")
    asked = {"max_n": 3, "max_items": 100, "epsilon": 8.0, "delta": 1e-4, "spurious": 1e-9}
    plan = ngrams(corpus, method="dpne", counts=0, **asked)
    both, single = (
        {
            tuple(gram)
            for gram in found_by(plan, corpus, pruning, randomness=SeededRandomness(1))["tokens"]
        }
        for pruning in ("both", "single")
    )
    released = plan.run(engine="polars", randomness=SeededRandomness(2)).to_polars()
    assert both == {tuple(gram) for gram in released["tokens"].to_list()}
    assert ("p", "q") in both and ("q", "r") not in single
    assert single - both == {("p", "q", "r")}


@PRUNINGS
def test_spurious_grams_are_valid_and_kept_by_nobody(pruning):
    valid = Valid(pl.Series(PAIRS, dtype=GRAMS), pl.Series(WORDS, dtype=GRAMS), pruning)
    kept = pl.DataFrame(
        {"tokens": [["a", "b", "b"]], "noisy": [1]}, schema_overrides={"tokens": GRAMS}
    )
    level = PrunedLevel(3, 9, 0, sigma_grid=4, spurious=0.5, threshold_grid=-60)  # all pass
    random = np.random.default_rng(1)
    chosen = spurious_grams(valid, kept, level, SeededRandomness(1), random)["tokens"]
    assert {*map(tuple, chosen.to_list())} == enumerated(PAIRS, pruning) - {("a", "b", "b")}
    level = replace(level, threshold_grid=4)
    numbers = [
        len(spurious_grams(valid, kept, level, SeededRandomness(seed), random))
        for seed in range(300)
    ]
    rate = norm.sf(3.5 / 4)
    expected = rate * len(chosen)
    assert abs(np.mean(numbers) - expected) < 5 * np.sqrt(expected * (1 - rate) / 300)
