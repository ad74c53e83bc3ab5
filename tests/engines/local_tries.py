"""Runs of `ldp_trie` whose randomisers a test sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dphh import Corpus, Plan, ldp_trie
from dphh.corpus import as_sequences
from dphh.levels.ldp_trie import LocalLevel
from dphh.mechanisms.ldp_trie.levels import ldp_trie_levels
from dphh.mechanisms.released_rows import LevelDone
from dphh.privacy.subset_selection import subset_selection
from tests.engines.levels import host_on, unstored

Prefix = tuple[tuple[str, ...], bool]
#: A plan that costs little to make; tests set what they need.
ASK: dict[str, Any] = {
    "local_epsilon": 8.0, "delta": 1e-6, "users_per_level": 10**2, "contributions": 1,
    "max_length": 1, "keep": 10,
}  # fmt: skip


def plan_of(users: int, contributions: int, *, truthful: bool, **asked: Any) -> Plan:
    """With so few users as no plan would pass; `truthful`: reports hold the own value alone."""
    plan = ldp_trie(**(ASK | asked))

    def changed(place: int, level: LocalLevel) -> LocalLevel:
        level = replace(level, users=users, contributions=contributions, first_seat=place * users)
        if truthful:
            return replace(level, size=1, numerator=2**64 - 1)
        made = subset_selection(level.domain, plan.privacy.epsilon)
        return replace(level, size=made.size, numerator=made.numerator)

    levels = tuple(changed(place, level) for place, level in enumerate(plan.levels))
    return replace(plan, price=replace(plan.price, levels=levels))


def grown(engine: str, corpus: Corpus, plan: Plan, randomness: Any) -> list[LevelDone]:
    read = as_sequences(corpus, 1)
    with host_on(engine, read, randomness) as host:
        return list(ldp_trie_levels(plan.price, host, unstored, read.content.joiner))


def prefixes(done: LevelDone) -> dict[Prefix, float]:
    """What a level released, with its scores; each once."""
    rows = done.rows.to_pylist()
    found = {(tuple(row["tokens"]), row["ended"]): row["score"] for row in rows}
    assert len(found) == len(rows)
    return found
