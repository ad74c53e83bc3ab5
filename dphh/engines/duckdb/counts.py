"""Counts of public keys in DuckDB: what each user holds of them, and one Gaussian vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.engines.duckdb.run import DuckDBRun
from dphh.levels import CountsLevel
from dphh.udfs.given_grams import GivenGrams, register_given_grams


class Counts(DuckDBRun):
    def counts_level(
        self,
        level: CountsLevel,
        items: Sequence[Sequence[str]],
        groups: Sequence[str],
        purpose: str,
    ) -> Any:
        weighing = level.weighing
        self.hold_rows()
        given = GivenGrams(items, weighing.keys // len(items), beginnings=level.beginnings)
        register_given_grams(self.con, given, weighing)
        numbers = pa.array(np.arange(len(groups)))
        self._tell(
            "declared_groups",
            pa.table({"group_name": pa.array(groups, pa.string()), "number": numbers}),
        )
        self._tell("asked", pa.table({"key": np.arange(weighing.keys + weighing.octaves)}))
        self.in_parts("counts_users", self._nobody, others=len(groups))
        self.refuse_rows_of_nobody("counted_users")
        self.execute("counts_contributions")
        self.execute("counts_level", sigma=level.sigma_grid, purpose=purpose)
        drawn = self.fetch("counts_drawn")
        for table in ("noised", "contributions", "counted_users", "asked", "declared_groups"):
            self.drop(table)
        return drawn

    def _nobody(self) -> None:
        self.drop("counted_users")
        self.con.execute(
            "CREATE TEMP TABLE counted_users AS "
            "SELECT user_id, CAST([] AS INTEGER[]) AS keys FROM rows_of_corpus WITH NO DATA"
        )

    def _tell(self, table: str, rows: Any) -> None:
        self.con.register("told", rows)
        self.con.execute(f"CREATE TEMP TABLE {table} AS FROM told")
        self.con.unregister("told")
