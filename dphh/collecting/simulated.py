"""Simulates devices from a corpus: their votes by SQL, with one coin for each user."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.corpora.formats import opened
from dphh.corpus import Corpus, as_sequences
from dphh.devices.votes import VOTES_SCHEMA, Ballot
from dphh.engines.duckdb.session import open_session
from dphh.errors import UsageError, withholding
from dphh.levels.trie import Choice
from dphh.mechanisms.released_rows import whole
from dphh.session.protocol import Limits
from dphh.session.trie import OneSequence
from dphh.udfs.draws.randomness import Randomness


@withholding
def votes_of_corpus(
    ballot: Ballot,
    corpus: Corpus,
    randomness: Randomness,
    *,
    unit: int = 1,
    choice: Choice = "most-frequent",
) -> Any:
    """Every user's vote in this round, as `dphh.devices.votes.vote` casts it: for rehearsals.

    A real device keeps its one sequence. A rehearsal chooses a user's sequence again in each round,
    unless it is the user's most frequent one or the randomness is a test's.
    """
    if randomness.is_test and not ballot.is_test:
        raise UsageError("randomness: a test's is for a test's collection only; leave it out")
    session = open_session(opened(as_sequences(corpus, unit)), randomness, Limits())
    try:
        session.hold(OneSequence(choice))
        votes = session.cast_votes(
            ballot.parquet(), ballot.level, ballot.numerator, f"trie/level {ballot.level}"
        )
    finally:
        session.close()
    of_round = [
        pa.array([ballot.run_id] * len(votes), pa.string()),
        pa.array([ballot.level] * len(votes), pa.int32()),
    ]
    columns = [
        whole(votes.column(field.name), field.type)
        for field in VOTES_SCHEMA
        if field.name not in ("run_id", "level")
    ]
    return pa.table([*of_round, *columns], schema=VOTES_SCHEMA)
