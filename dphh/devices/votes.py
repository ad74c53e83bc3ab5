"""The device's side: read a round's ballot, toss a coin, vote or stay silent.

A device has one sequence for the whole collection, tosses once in each round, and keeps its answer:
asked again for the same round, it sends the same vote. The guarantee depends on that, on coins from
the operating system's generator and on the coordinator's threshold alone (docs/federated.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.errors import UsageError
from dphh.udfs.draws.randomness import ONE_SEQUENCE, Randomness, SystemRandomness

#: The default limit of a device on ln(1 / (1 - p)), the epsilon of a collection's coin.
EPSILON = 10.0
BALLOT_SCHEMA = pa.schema([("node", pa.int64()), ("tokens", pa.list_(pa.string()))])
VOTES_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("level", pa.int32()),
        ("node", pa.int64()),
        ("token", pa.string()),
        ("ended", pa.bool_()),
        ("ticket", pa.string()),
    ]
)
_METADATA_KEYS = (b"dphh.run_id", b"dphh.level", b"dphh.numerator", b"dphh.is_test")


@dataclass(frozen=True)
class Ballot:
    """What a round sends to every device: the trie's nodes of the level below, and the rate."""

    run_id: str
    level: int
    #: A device votes with probability numerator / 2^64.
    numerator: int
    #: Whether the collection is a test, whose release is not private; only a test takes test coins.
    is_test: bool
    #: The tokens on the path from the root to each node.
    ways: tuple[tuple[str, ...], ...]

    def parquet(self) -> Any:
        """The ballot as an Arrow table, with its other fields in the schema's metadata."""
        notes = (self.run_id, str(self.level), str(self.numerator), str(int(self.is_test)))
        told = dict(zip(_METADATA_KEYS, map(str.encode, notes), strict=True))
        return pa.table(
            [pa.array(range(len(self.ways))), pa.array([list(way) for way in self.ways])],
            schema=BALLOT_SCHEMA.with_metadata(told),
        )


def read_ballot(path: str | Path) -> Ballot:
    """Read a round's ballot file. One ballot can serve many votes."""
    name = Path(path).name
    try:
        table = pq.read_table(path)
        notes = table.schema.metadata or {}
        run_id, level, numerator, is_test = (notes[note].decode() for note in _METADATA_KEYS)
        nodes, ways = table.cast(BALLOT_SCHEMA).sort_by("node").to_pydict().values()
        found = tuple(tuple(way) for way in ways)
        said = Ballot(run_id, int(level), int(numerator), is_test == "1", found)
        _check_ballot(said, nodes)
    except FileNotFoundError:
        raise UsageError(f"ballot: {name} is not there; fetch it from the coordinator") from None
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        raise UsageError(
            f"ballot: {name} is not what Collection.open_round wrote; fetch it anew"
        ) from None
    return said


def _check_ballot(said: Ballot, nodes: list[int]) -> None:
    """Check a ballot's fields; one from the network may ask for a coin that always shows heads."""
    if not 0 < said.numerator < 2**64 or said.level < 1:
        raise ValueError
    tokens = (token for way in said.ways for token in way)
    if nodes != list(range(len(said.ways))) or any(token is None for token in tokens):
        raise ValueError
    if any(len(way) != said.level - 1 for way in said.ways):
        raise ValueError


def _refuse_sure_coins(said: Ballot, epsilon: float) -> None:
    tails = 2**64 - said.numerator
    told = log(2**64) - log(tails) if tails > 0 else inf
    if not told <= epsilon:  # no number is not enough either
        raise UsageError(
            "ballot: its coin falls on heads so often that a vote would cost at least epsilon "
            f"{told:.4g}, and this device allows {epsilon:g}: nothing is sent. Plan for a smaller "
            "p, or allow more"
        )


def _checked_tokens(tokens: Sequence[str]) -> tuple[str, ...]:
    """The tokens, checked to be texts. Errors never show them."""
    own = tuple(tokens) if isinstance(tokens, Iterable) else (tokens,)
    for token in own:
        if not isinstance(token, str):
            raise UsageError(
                f"tokens: found {type(token).__name__} where a text was expected; give a "
                "device's sequence as a list of texts"
            )
    return own


def one_sequence(
    sequences: Sequence[Sequence[str]], *, randomness: Randomness | None = None, name: str = ""
) -> list[str]:
    """A device's one sequence for a whole collection, drawn from all of its sequences. Keep it."""
    texts = [_checked_tokens(tokens) for tokens in sequences]
    own = sorted(("\x1f".join(tokens), len(tokens), list(tokens)) for tokens in texts if tokens)
    if len(own) < 2:
        return own[0][2] if own else []
    source = randomness or SystemRandomness()
    return own[_random_word(source, ONE_SEQUENCE, name) % len(own)][2]


def vote(
    ballot: Ballot,
    tokens: Sequence[str],
    *,
    epsilon: float = EPSILON,
    randomness: Randomness | None = None,
    name: str = "",
) -> Any:
    """This round's vote of a device with this sequence: an Arrow table of one row or of none.

    epsilon: the device's own limit. A collection whose coin shows heads with probability p cannot
    guarantee less than ln(1 / (1 - p)), so a ballot above the limit is refused, whoever sent it.
    `randomness` and `name` are for tests; a device's coins come from its operating system.
    """
    source = randomness or SystemRandomness()
    _refuse_sure_coins(ballot, epsilon)
    own = _checked_tokens(tokens)  # before the coin, so that errors do not depend on it
    if source.is_test and not ballot.is_test:
        raise UsageError(
            "randomness: found a test's, which can be predicted, in a collection that is not a "
            "test's; leave randomness out"
        )
    purpose = f"trie/level {ballot.level}"
    rows = []
    if _random_word(source, purpose, name) < ballot.numerator:
        below = ballot.level - 1
        if own and own[:below] in ballot.ways:
            ended = len(own) == below
            high = _random_word(source, f"ticket of {purpose}", name)
            low = _random_word(source, f"ticket of {purpose}, second half", name)
            rows.append(
                {
                    "run_id": ballot.run_id,
                    "level": ballot.level,
                    "node": ballot.ways.index(own[:below]),
                    "token": None if ended else own[below],
                    "ended": ended,
                    "ticket": f"{high:016x}{low:016x}",
                }
            )
    return pa.Table.from_pylist(rows, schema=VOTES_SCHEMA)


def _random_word(source: Randomness, purpose: str, name: str) -> int:
    return int(source.words(1, purpose, pa.array([name]))[0])
