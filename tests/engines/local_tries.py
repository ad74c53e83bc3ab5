"""Runs of `ldp_trie` whose randomisers a test sets, and the same in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from dphh import Corpus, Plan, ldp_trie
from dphh.corpus import as_sequences
from dphh.levels.ldp_trie import LocalLevel
from dphh.mechanisms.ldp_trie.levels import ldp_trie_levels
from dphh.mechanisms.released_rows import LevelDone
from dphh.privacy.subset_selection import subset_selection
from dphh.testing import SeededRandomness
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
        level = replace(
            level,
            users=users,
            contributions=contributions,
            first_seat=place * users,
        )
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


def seated(users: Sequence[Any], randomness: SeededRandomness) -> list[Any]:
    """The users in the order of their seats under this seed."""
    names = [str(user) for user in users]
    draws = randomness.words(len(names), "ldp_trie/seats", pa.array(names, pa.string()))
    return [user for _, _, user in sorted(zip(draws.tolist(), names, users, strict=True))]


def brute_force(
    words: Mapping[Any, Sequence[Sequence[str]]], seats: Sequence[Any], plan: Plan
) -> list[dict[Prefix, int]]:
    """Algorithm 2 where everybody tells the truth and has room to tell all, by the paper's loop."""
    characters = list(plan["character_set"])
    place = {character: number for number, character in enumerate([*characters, None])}
    known = {tuple(word) for word in plan["known"]}
    released: set[Prefix] = set()
    found: list[dict[Prefix, int]] = []
    heavy: set[tuple[str, ...]] = set()
    for level in plan.levels:
        assert isinstance(level, LocalLevel)
        if level.level == 1:
            known |= {word for word, ended in released if ended}
            heavy = {(character,) for character in characters}
        votes: Counter[Prefix] = Counter()
        for user in seats[level.first_seat : level.first_seat + level.users]:
            votes.update({
                (tuple(word[: level.level + 1]), len(word) == level.level)
                for word in map(tuple, words[user])
                if word not in known
                and set(word) <= set(characters)
                and word[: level.level] in heavy
            })  # fmt: skip
        first = sorted(
            votes,
            key=lambda vote: (
                -votes[vote], [place[c] for c in [*vote[0], *([None] if vote[1] else [])]]
            ),
        )  # fmt: skip
        kept = first[: level.keep]
        heavy = {prefix for prefix, ended in kept if not ended}
        found.append({vote: votes[vote] for vote in kept if vote not in released})
        released |= set(kept)
    return found
