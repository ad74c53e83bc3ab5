"""Who a user is, by any type of id: over-full users count for the same keys on every engine."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, items
from dphh.engines import ENGINES
from dphh.testing import SeededRandomness
from tests.conftest import NoNoise
from tests.engines.levels import histogram

USERS = 400
EPOCH = datetime.datetime(1970, 1, 1)


def _bytes(user: int) -> bytes:
    return hashlib.blake2b(str(user).encode(), digest_size=16).digest()


#: An id of each type for each user.
IDS: dict[str, tuple[Any, Any]] = {
    "int": (pa.int32(), lambda user: user),
    "long": (pa.int64(), lambda user: 2**62 + user),
    "text": (pa.string(), lambda user: f"user {user}"),
    "binary": (pa.binary(), _bytes),
    "fixed binary": (pa.binary(16), _bytes),
    "text as binary": (pa.binary(), lambda user: f"{uuid.UUID(bytes=_bytes(user))}".encode()),
    "float": (pa.float64(), lambda user: user + 0.5),
    "large float": (pa.float64(), lambda user: 1e17 * (user + 1) + 3.0e22),
    "small float": (pa.float64(), lambda user: 1e-7 * (user + 1)),
    "whole float": (pa.float64(), float),
    "narrow float": (pa.float32(), lambda user: user / 3),
    "decimal": (pa.decimal128(20, 3), lambda user: decimal.Decimal(user) / 8),
    "date": (pa.date32(), lambda user: datetime.date(2001, 1, 1) + datetime.timedelta(user)),
    "timestamp": (pa.timestamp("us"), lambda user: EPOCH + datetime.timedelta(hours=user)),
    "instant": (pa.timestamp("us", "UTC"), lambda user: EPOCH + datetime.timedelta(hours=user)),
}  # fmt: skip


@pytest.mark.parametrize("other", [name for name in ENGINES if name != "duckdb"])
@pytest.mark.parametrize("kind", IDS)
def test_over_full_users_count_for_the_same_keys(tmp_path: Path, other: str, kind: str) -> None:
    form, named = IDS[kind]
    users = pa.array([named(user) for user in range(USERS) for _ in range(2)], form)
    texts = [
        " ".join(f"w{(user + 7 * row + step * step) % 12}" for step in range(6))
        for user in range(USERS)
        for row in range(2)
    ]
    pq.write_table(pa.table({"who": users, "what": texts}), tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    plan = items(corpus, epsilon=8, delta=1e-4, max_items=2)
    found = [
        plan.run(engine=engine, randomness=SeededRandomness(3)).to_arrow().to_pylist()
        for engine in ("duckdb", other)
    ]
    assert len(found[0]) > 5
    assert found[0] == found[1]


#: NaN, and NaN with a minus.
NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48], dtype=np.uint64).view(np.float64).tolist()
ZEROS = [0.0, -0.0]
#: Equal ids that are written differently.
ALIKE: dict[str, Any] = {
    "zeros": ZEROS,
    "NaNs": NANS,
    "lists": [[[zero, nan]] for zero, nan in zip(ZEROS, NANS, strict=True)],
    "structs": [{"x": {"y": [nan]}, "z": "a"} for nan in NANS],
}


@pytest.mark.on_spark(every=True)
@pytest.mark.parametrize("kind", ALIKE)
def test_equal_ids_are_one_user_however_they_are_written(
    engine: str, tmp_path: Path, kind: str
) -> None:
    rows = pa.table({"who": pa.array(ALIKE[kind]), "what": ["a", "b"]})
    pq.write_table(rows, tmp_path / "c.parquet")
    corpus = Corpus(tmp_path / "c.parquet", user="who", text="what")
    weight = 724  # of one user who holds two words, floor(2^10 / sqrt(2))
    assert histogram(engine, corpus, NoNoise(), 10) == {"a": weight, "b": weight}
