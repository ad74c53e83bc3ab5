"""Runs of `ngrams` whose noise, thresholds and caps a test sets, beside the specification."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from dphh import Corpus, ngrams
from dphh.mechanisms.ngrams.levels import PrunedLevel
from dphh.mechanisms.ngrams.run import ngrams_levels
from dphh.mechanisms.running import LevelDone
from dphh.mechanisms.set_union.levels import SetUnionLevel
from dphh.testing import SeededRandomness
from tests.conftest import NoNoise
from tests.engines.levels import host_on, unstored
from tests.engines.plain import Gram, Plain, Rows

BITS = 10
#: A threshold that everything passes that somebody holds, and nothing that nobody holds.
ALL = 8
#: A threshold that everything passes.
EVERYTHING = -(10**12)


class Quiet(NoNoise):
    """No noise. What is drawn by rejection, the spurious grams, comes from a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._seeded = SeededRandomness(seed)

    def random_words(self, count: int, purpose: str, keys: Any = None) -> Any:
        spurious = "/spurious" in purpose or "/absent" in purpose
        return (self._seeded if spurious else super()).random_words(count, purpose, keys)


def climbed(
    engine: str,
    corpus: Corpus,
    thresholds: Sequence[int],
    *,
    caps: Sequence[int] | int = 100,
    sigma: int | None = None,
    randomness: Any = None,
    **options: Any,
) -> list[LevelDone]:
    """The levels with these thresholds; noise of this sigma, or such as a user would not notice.
    (With Quiet, there is none.)"""
    caps = [caps] * len(thresholds) if isinstance(caps, int) else caps
    plan = ngrams(
        max_n=len(thresholds),
        epsilon=8,
        delta=1e-3,
        **{"method": "dpne", **options},
    )
    levels = []
    for level in plan.levels:
        assert isinstance(level.level, int)
        threshold = thresholds[level.level - 1]
        changes = {
            "max_items": caps[level.level - 1],
            "grid_bits": BITS,
            "sigma_grid": sigma or max(1, threshold // 8),
        }
        if isinstance(level, SetUnionLevel):
            changes["threshold_grid"] = threshold
        levels.append(replace(level, **changes))
    price = replace(plan.price, levels=tuple(levels))
    with (
        patch(
            "dphh.mechanisms.ngrams.dpne.spurious_threshold",
            lambda level, below, valid: thresholds[level.level - 1],
        ),
        host_on(engine, corpus, randomness or Quiet()) as host,
    ):
        return list(ngrams_levels(price, host, unstored))


def weights(done: LevelDone) -> dict[Gram, int]:
    """A level's released grams and their integer weights."""
    tokens = done.rows.column("tokens").to_pylist()
    scores = done.rows.column("score").to_pylist()
    found = {
        tuple(gram): round(score * 2**BITS) for gram, score in zip(tokens, scores, strict=True)
    }
    assert len(found) == len(tokens)
    return found


def grams_of(tokens: Sequence[str], n: int) -> set[Gram]:
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


def held_by_user(rows: Sequence[tuple[Any, Sequence[str]]], n: int) -> dict[Any, set[Gram]]:
    held: dict[Any, set[Gram]] = defaultdict(set)
    for user, tokens in rows:
        held[user] |= grams_of(tokens, n)
    return held


def valid(gram: Gram, released: Sequence[set[Gram]]) -> bool:
    if len(gram) == 1:
        return True
    below = released[len(gram) - 2]
    return gram[:-1] in below and gram[1:] in below


def check_ladder(
    engine: str,
    corpus: Corpus,
    rows: Rows,
    thresholds: Sequence[int],
    *,
    caps: Sequence[int] | int = 100,
    sigma: int | None = None,
    seed: int = 0,
    users: str | None = None,
) -> int:
    """Each level as the specification has it, above what the engine released below it; how many
    grams there are in all. Of what is spurious the draws are not compared."""
    done = climbed(
        engine, corpus, thresholds, caps=caps, sigma=sigma, randomness=SeededRandomness(seed),
    )  # fmt: skip
    plain = Plain(rows, SeededRandomness(seed), users=users)
    released: list[set[Gram]] = []
    for n, (step, threshold) in enumerate(zip(done, thresholds, strict=True), start=1):
        found, purpose, level = weights(step), f"ngrams/level {n}", step.level
        if isinstance(level, SetUnionLevel):
            assert found == plain.set_union(level, purpose)
        elif isinstance(level, PrunedLevel) and level.valid:
            held = plain.dpne(level, purpose, EVERYTHING, absent=False)
            assert {gram: found[gram] for gram in found.keys() & held.keys()} == {
                gram: noisy for gram, noisy in held.items() if noisy >= threshold
            }
            for gram in found.keys() - held.keys():
                assert valid(gram, released)
                assert found[gram] >= threshold
            plain.forget(n)
            plain.release(n, [*found])
        else:
            assert not found
        for row in step.rows.to_pylist():
            assert row["item"] == corpus.content.joiner.join(row["tokens"])
        released.append(set(found))
    return sum(map(len, released))
