"""The specification, run: the queries of `sql/plain/` in a bare DuckDB, over rows in memory.

Nothing here is an engine's: only noise and lots, which are the randomness's to say, are registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dphh.levels import PrunedLevel, SetUnionLevel
from dphh.sql import query
from dphh.udfs.noise import register_noise

Gram = tuple[str, ...]
#: A user, and the tokens of one row of theirs.
Rows = Sequence[tuple[Any, Sequence[str | None] | None]]


class Plain:
    def __init__(self, rows: Rows, randomness: Any, *, users: str | None = None) -> None:
        """`users`: an expression over the column `who`, for users of types that Arrow has not."""
        self.randomness = randomness
        self.con = duckdb.connect(config={"threads": 1})
        register_noise(self.con, randomness)
        self.con.execute(query("plain/functions"))
        who = [user for user, *_ in rows]
        tokens = pa.array([row[1] for row in rows], pa.list_(pa.string()))
        groups = pa.array([row[2] if len(row) > 2 else None for row in rows], pa.string())
        table = pa.table({"who": who, "tokens": tokens, "group_name": groups})
        self.con.register("given", table)
        self.con.execute(
            f"CREATE VIEW tokens_of_rows AS SELECT {users or 'who'} AS user_id, * FROM given"
        )
        self.run("texts")
        self.run("nothing_released")

    def run(self, name: str, **parameters: Any) -> None:
        self.con.execute(query(f"plain/{name}"), parameters or None)

    def release(self, level: int, tokens: Sequence[Gram]) -> None:
        """What an earlier level of another run released, to go on from there."""
        rows = [(level, list(gram)) for gram in tokens]
        if rows:
            self.con.executemany("INSERT INTO released VALUES (?, ?, 0)", rows)

    def set_union(self, level: SetUnionLevel, purpose: str) -> dict[Gram, int]:
        """One round; what it releases, with its noised weights."""
        before = self.released(1)
        self.run(
            "set_union",
            max_items=level.max_items,
            grid_bits=level.grid_bits,
            salt=self._salt(purpose),
            sigma=level.sigma_grid,
            threshold=level.threshold_grid,
            purpose=purpose,
        )
        found = self.released(1)
        return {gram: found[gram] for gram in found.keys() - before.keys()}

    def dpne(
        self, level: PrunedLevel, purpose: str, threshold: int, *, absent: bool = True
    ) -> dict[Gram, int]:
        """`absent`: whether valid grams that nobody holds take part."""
        self.run(
            "dpne_level",
            level=level.level,
            pruning=level.pruning,
            max_items=level.max_items,
            grid_bits=level.grid_bits,
            salt=self._salt(purpose),
            sigma=level.sigma_grid,
            threshold=threshold,
            purpose=purpose,
            noise=absent,
        )
        return self.released(level.level)

    def forget(self, level: int) -> None:
        """As if the level had not been run."""
        self.con.execute("DELETE FROM released WHERE level = ?", [level])

    def released(self, level: int) -> dict[Gram, int]:
        asked = "SELECT tokens, noisy FROM released WHERE level = ?"
        rows = self.con.execute(asked, [level]).fetchall()
        found = {tuple(tokens): noisy for tokens, noisy in rows}
        assert len(found) == len(rows)
        return found

    def _salt(self, purpose: str) -> int:
        return int(self.randomness.words(1, f"{purpose}/salt")[0])
