"""Runs of `trie` whose thresholds and coins a test sets, and of `ldp_trie` and its randomisers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dphh import Corpus, Plan, ldp_trie, trie
from dphh.corpus import as_sequences
from dphh.levels.ldp_trie import LocalLevel
from dphh.levels.trie import BatchLevel, Choice, VoteLevel
from dphh.mechanisms.ldp_trie.levels import ldp_trie_levels
from dphh.mechanisms.released_rows import LevelDone
from dphh.mechanisms.trie.levels import trie_levels
from dphh.privacy.subset_selection import subset_selection
from dphh.udfs.draws.randomness import SystemRandomness
from tests.engines.levels import host_on, unstored

#: A prefix of a trie: its tokens, and whether a sequence ends there.
Prefix = tuple[tuple[str, ...], bool]


class Heads:
    """Every coin shows heads; draws (of rows, of batches) are the system's, or `draws`'."""

    is_test = True

    def __init__(self, draws: Any = None) -> None:
        self.draws = draws or SystemRandomness()
        self.purposes: Counter[str] = Counter()

    def words(self, count: int, purpose: str, keys: Any = None) -> Any:
        self.purposes[purpose] += count
        if purpose.startswith("trie/level"):
            return np.zeros(count, dtype=np.uint64)
        return self.draws.words(count, purpose, keys)


@lru_cache
def plan_of(levels: int, choice: Choice = "drawn", unit: int = 1) -> Plan:
    return trie(epsilon=8, delta=1e-3, max_length=levels, choice=choice, unit=unit)


def grown(
    engine: str,
    corpus: Corpus,
    levels: int,
    theta: int,
    *,
    p: float = 0.5,
    randomness: Any = None,
    choice: Choice = "drawn",
    unit: int = 1,
) -> list[LevelDone]:
    """With these thetas and this rate, whatever they cost; by default everybody votes."""
    votes = [VoteLevel(level, int(p * 2.0**64), theta) for level in range(1, levels + 1)]
    return _levels(engine, corpus, plan_of(levels, choice, unit), votes, randomness or Heads())


def grown_of_batches(
    engine: str,
    corpus: Corpus,
    levels: int,
    theta: int,
    *,
    users: int,
    batch: int,
    randomness: Any = None,
) -> list[LevelDone]:
    votes = [BatchLevel(level, users, batch, theta) for level in range(1, levels + 1)]
    return _levels(engine, corpus, plan_of(levels), votes, randomness or SystemRandomness())


def _levels(
    engine: str, corpus: Corpus, plan: Plan, levels: Sequence[Any], randomness: Any
) -> list[LevelDone]:
    read = as_sequences(corpus, plan["unit"])
    price = replace(plan.price, levels=tuple(levels))
    with host_on(engine, read, randomness) as host:
        return list(trie_levels(price, host, unstored, read.content.joiner))


def scores(done: LevelDone) -> dict[Prefix, float]:
    """What a level released, with its scores; each once."""
    rows = done.rows.to_pylist()
    found = {(tuple(row["tokens"]), row["ended"]): row["score"] for row in rows}
    assert len(found) == len(rows)
    return found


def prefixes(done: LevelDone) -> set[Prefix]:
    return set(scores(done))


# Of local reports

#: A plan that costs little to make; tests set what they need.
LOCAL: dict[str, Any] = {
    "local_epsilon": 8.0, "delta": 1e-6, "users_per_level": 10**2, "contributions": 1,
    "max_length": 1, "keep": 10,
}  # fmt: skip


def local_plan(users: int, contributions: int, *, truthful: bool, **asked: Any) -> Plan:
    """With so few users as no plan would pass; `truthful`: reports hold the own value alone."""
    plan = ldp_trie(**(LOCAL | asked))

    def changed(place: int, level: LocalLevel) -> LocalLevel:
        level = replace(level, users=users, contributions=contributions, first_seat=place * users)
        if truthful:
            return replace(level, size=1, numerator=2**64 - 1)
        made = subset_selection(level.domain, plan.privacy.epsilon)
        return replace(level, size=made.size, numerator=made.numerator)

    levels = tuple(changed(place, level) for place, level in enumerate(plan.levels))
    return replace(plan, price=replace(plan.price, levels=levels))


def grown_of_reports(engine: str, corpus: Corpus, plan: Plan, randomness: Any) -> list[LevelDone]:
    read = as_sequences(corpus, 1)
    with host_on(engine, read, randomness) as host:
        return list(ldp_trie_levels(plan.price, host, unstored, read.content.joiner))
