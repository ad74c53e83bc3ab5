"""`ldp_trie`: LDP TrieHH, Algorithm 2: the server's side; an engine simulates the devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.columns import ESTIMATED
from dphh.levels.ldp_trie import LocalLevel, LocalOn, Seats
from dphh.mechanisms.ldp_trie import collector
from dphh.mechanisms.released_rows import LevelDone
from dphh.price import Price
from dphh.privacy.subset_selection import estimate
from dphh.session.protocol import Session


def ldp_trie_levels(price: Price, session: Session, joiner: str) -> Iterator[LevelDone]:
    levels = [level for level in price.levels if isinstance(level, LocalLevel)]
    seats = max(level.first_seat + level.users for level in levels)
    session.hold(Seats(price["character_set"], seats, price["pad"]))
    growth = collector.planted(price)
    #: What earlier passes released; later passes do not release it again.
    released: set[tuple[tuple[str, ...], bool]] = set()
    for level in levels:
        said = collector.broadcast(growth, level)
        kept = session.draw(
            LocalOn(level, _prefix_table(said), _word_table(said.known)), said.round
        )
        growth, steps = collector.grown(growth, levels, kept)
        new = [step for step in steps if (step.tokens, step.ended) not in released]
        released.update((step.tokens, step.ended) for step in new)
        yield LevelDone(level, _released_rows(level, new, joiner))


def _prefix_table(said: Any) -> Any:
    """Each prefix of the broadcast, and the value of that prefix with character number 0."""
    width = len(said.characters) + 1
    first = np.arange(len(said.prefixes), dtype=np.int64) * width
    return pa.table({"prefix": pa.array(said.prefixes, pa.string()), "value": first})


def _word_table(words: Sequence[str]) -> Any:
    return pa.table({"word": pa.array(words, pa.string())})


def _released_rows(level: LocalLevel, steps: Sequence[collector.Grown], joiner: str) -> Any:
    """The released rows. The score estimates how many of the level's reports were for the prefix;
    the standard error is computed at that estimate."""
    tokens = pa.array([list(step.tokens) for step in steps], pa.list_(pa.string()))
    reports = [step.reports for step in steps]
    scores = estimate(reports, level.reports, level.mechanism)
    held = np.clip(scores, 0, level.reports)
    errors = np.sqrt(level.mechanism.variance(level.reports, held))
    return pa.table(
        [
            pa.array(np.full(len(steps), level.level, np.int32)),
            pc.binary_join(tokens, joiner),
            tokens,
            pa.array(scores, pa.float64()),
            pa.array(errors, pa.float64()),
            pa.array([step.ended for step in steps], pa.bool_()),
        ],
        schema=ESTIMATED,
    )
