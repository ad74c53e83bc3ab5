"""Runs of `trie` whose thresholds and coins a test sets, and of `ldp_trie` and its randomisers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dphh import Corpus, Plan, ldp_trie, trie
from dphh.mechanisms.ldp_trie.levels import LocalLevel
from dphh.mechanisms.ldp_trie.run import ldp_trie_levels
from dphh.mechanisms.running import LevelDone
from dphh.mechanisms.trie.price import SequenceChoice, VoteLevel
from dphh.mechanisms.trie.run import trie_levels
from dphh.reader.corpus import as_sequences
from dphh.udfs.rules.reports import subset_selection
from tests.engines.levels import host_on, unstored

#: A prefix of a trie: its tokens, and whether a sequence ends there.
Prefix = tuple[tuple[str, ...], bool]


@lru_cache
def plan_of(levels: int, choice: SequenceChoice = "drawn") -> Plan:
    return trie(epsilon=8, delta=1e-3, max_length=levels, choice=choice)


def grown(
    engine: str,
    corpus: Corpus,
    levels: Sequence[VoteLevel],
    randomness: Any,
    choice: SequenceChoice = "drawn",
) -> list[LevelDone]:
    """With the rates and thetas of these levels, whatever they cost."""
    read = as_sequences(corpus, 1)
    price = replace(plan_of(len(levels), choice).price, levels=tuple(levels))
    with host_on(engine, read, randomness) as host:
        return list(trie_levels(price, host, unstored))


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
        return list(ldp_trie_levels(plan.price, host, unstored))
