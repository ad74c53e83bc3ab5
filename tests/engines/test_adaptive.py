"""Rounds whose weights follow earlier noise: what they give, what they show, and what stays inside.

`test_plain_sql.py` has them as the specification has, `test_neighbours.py` what a newcomer changes.
"""

from __future__ import annotations

import io
from dataclasses import asdict
from math import isqrt
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow.parquet as pq
import pytest

from dphh import Corpus, Ledger, items
from dphh.engines.duckdb.host import DuckDBHost
from dphh.engines.polars.host import PolarsHost
from dphh.errors import EngineError
from dphh.levels.set_union import SetUnionLevel, WeighedLevel
from dphh.mechanisms.set_union.rounds import new_delta
from dphh.testing import SeededRandomness
from tests.conftest import NoNoise
from tests.engines.levels import in_adaptive_rounds

BITS = 10
NOWHERE = -(10**9)


def corpus_of(rows: dict[str, str]) -> Corpus:
    frame = pl.DataFrame({"who": list(rows), "what": list(rows.values())})
    return Corpus(frame, user="who", text="what")


def test_what_nobody_keeps_never_leaves_by_noise_alone(engine: str) -> None:
    """Thresholds are made for as many new items as a user keeps, however many they hold."""
    rows = {"one": " ".join(f"own{number}" for number in range(500)), "two": "b a"}
    level = SetUnionLevel(1, 7, BITS, 10**4, NOWHERE)
    (found,) = in_adaptive_rounds(engine, corpus_of(rows), SeededRandomness(1), [level])
    assert len(found) == 7 + 2


def test_a_later_round_gives_by_what_noise_told(engine: str) -> None:
    """Without noise, by hand: "near" stands before the threshold, "far" well below it."""
    rows = {f"user {number}": "near far" if number < 4 else "near" for number in range(40)}
    first = SetUnionLevel(1, 2, BITS, 1024, 60 << BITS)
    second = WeighedLevel(1, 2, BITS, 1024, 3 << BITS, round=2)
    with patch("dphh.mechanisms.set_union.adaptive.round_alone", lambda levels: levels[0]):
        done = in_adaptive_rounds(engine, corpus_of(rows), NoNoise(), [first, second])
    told = {"near": 36 * 1024 + 4 * 724, "far": 4 * 724}
    near, far = (
        isqrt(isqrt(z * 2**45) * z) if (z := (told[word] + 1024) * 2**15 // (3 << BITS)) < 2**15
        else isqrt(2**45 // z)
        for word in ("near", "far")
    )  # fmt: skip
    norm = isqrt(near**2 + far**2 - 1) + 1
    assert done == [
        {},
        {
            ("near",): 36 * 1024 + 4 * (1024 * near // norm),
            ("far",): 4 * (1024 * far // norm),
        },
    ]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_what_is_stored_is_what_was_released(engine: str, tmp_path: Path) -> None:
    """The journal holds one draw, of what passed; the ledger's file no word that did not."""
    rows = [(f"u{user}", f"common{user % 6} unheard{user}") for user in range(3000)]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    stored = []
    keep = Ledger.keep_level

    def kept(self: Ledger, hold: object, step: str, data: bytes) -> bytes:
        stored.append((step, pq.read_table(io.BytesIO(data))))
        for file in tmp_path.glob("ledger*"):
            assert b"unheard" not in file.read_bytes()
        return keep(self, hold, step, data)

    plan = items(
        Corpus(path, user="who", text="what"),
        epsilon=4,
        delta=1e-12,  # of 3,000 words that one user holds, none passes by chance
        method="adaptive",
        max_items=4,
    )
    with patch.object(Ledger, "keep_level", kept):
        release = plan.run(engine=engine, ledger=tmp_path / "ledger.sqlite")
    ((step, table),) = stored
    assert step == "items"
    assert table.column_names == ["round", "key", "noisy"]
    assert set(table["key"].to_pylist()) == set(release.to_polars()["item"])
    assert set(release.to_polars()["item"]) == {f"common{number}" for number in range(6)}
    assert [level["kind"] for level in release.manifest["levels"]] == [
        "set_union", "weighed", "weighed",
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_run_cut_short_among_its_rounds_draws_all_of_them_anew(
    engine: str, tmp_path: Path
) -> None:
    """Nobody saw what it drew: nothing stood in the ledger, and its errors quote nothing."""
    rows = {f"u{user}": f"common{user % 6} unheard{user}" for user in range(3000)}
    plan = items(corpus_of(rows), epsilon=4, delta=1e-12, method="adaptive", max_items=4)
    ledger, lines = tmp_path / "ledger.sqlite", []
    host, asked = {"duckdb": DuckDBHost, "polars": PolarsHost}[engine], []
    take = host.take

    def fails_at_the_second(self: Any, step: str, **parameters: Any) -> Any:
        if step == "released_of_round":
            asked.append(parameters["threshold"])
        if len(asked) == 2:
            raise EngineError("no room")
        return take(self, step, **parameters)

    with patch.object(host, "take", fails_at_the_second):
        with pytest.raises(EngineError) as problem:
            plan.run(engine=engine, ledger=ledger, run_id="one", progress=lines.append)
        told = f"{problem.value} {lines}"
        assert "unheard" not in told
        assert "common" not in told
        assert not any("released" in str(line) for line in lines)
        (entry,) = Ledger(ledger).runs()
        assert entry.state == "failed"
        release = plan.run(engine=engine, ledger=ledger, run_id="one", progress=lines.append)
    thresholds = [level.threshold_grid for level in plan.levels]
    assert asked == [*thresholds[:2], *thresholds]
    assert len(release) == 6
    assert len(Ledger(ledger).runs()) == 1


def test_later_rounds_thresholds_cover_any_weights() -> None:
    plan = items(epsilon=4, delta=1e-6, max_items=30, method="adaptive")
    first, *later = plan.levels
    assert type(first) is SetUnionLevel
    for level in later:
        assert isinstance(level, WeighedLevel)
        equal = SetUnionLevel(**asdict(level))
        assert new_delta(level) > 1.0003 * new_delta(equal)
