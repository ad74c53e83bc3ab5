"""Functions for the ladders' queries: bins, and draws for valid grams that no user holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from dphh.privacy.forecast_rounds import bins
from dphh.session.ladder.absent import bins_of_class, lifted_of_class, negatives_of_row
from dphh.session.ladder.spurious import lifted_grams
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.kernel.lists import lists_of
from dphh.udfs.kernel.whole_users import WholeUsers


def register_forecast(
    con: duckdb.DuckDBPyConnection, randomness: Randomness, users: WholeUsers
) -> None:
    """Register on a DuckDB connection the bin of a noised weight, and the draws for absent grams:
    valid grams that no user holds. These have one row per class or bin, so the rows are few."""

    def bin_of(noisy: Any, sigma: Any) -> Any:
        return pa.array(bins(sigma[0].as_py()).of(noisy.to_numpy()))

    def absent_bins(group: int, grams: int, sigma: int, purpose: str) -> list[dict[str, int]]:
        fallen = bins_of_class(group, grams, bins(sigma), randomness, purpose)
        return [{"bin": column, "grams": number} for column, number in enumerate(fallen)]

    def absent_negatives(group: int, column: int, grams: int, sigma: int, purpose: str) -> int:
        return negatives_of_row(group, column, grams, bins(sigma), randomness, purpose)

    def lifted_grams_of_class(
        group: int, rows: list[dict[str, int]], valid: int, sigma: int, purpose: str
    ) -> pa.Array:
        absent, negatives, thresholds = (
            np.array([row[name] for row in rows]) for name in ("grams", "negatives", "threshold")
        )
        classes = users.looked_up[valid]
        lifted = lifted_of_class(
            classes, group, absent, negatives, thresholds, bins(sigma), randomness, purpose
        )
        return lifted.by_position()

    def lifted_grams_of_classes(
        groups: Any, rows: Any, valid: Any, sigma: Any, purpose: Any
    ) -> pa.Array:
        columns = (column.to_pylist() for column in (groups, rows, valid, sigma, purpose))
        made = [lifted_grams_of_class(*row) for row in zip(*columns, strict=True)]
        return lists_of(np.array([len(each) for each in made]), pa.concat_arrays(made))

    def spurious_of_level(
        kept: int, valid: int, sigma: int, threshold: int, purpose: str
    ) -> list[dict[str, int]]:
        found = lifted_grams(users.looked_up[valid], kept, sigma, threshold, randomness, purpose)
        rows: list[dict[str, int]] = found.to_table().to_pylist()
        return rows

    row, gram = (
        "STRUCT(bin BIGINT, grams BIGINT, negatives BIGINT, threshold BIGINT)[]",
        "STRUCT(position BIGINT, key BIGINT, bin BIGINT, first BIGINT, second BIGINT)[]",
    )
    drawn = ["BIGINT", "VARCHAR"]
    functions: list[tuple[str, Callable[..., Any], list[Any], str]] = [
        (
            "absent_bins",
            absent_bins,
            ["BIGINT", "BIGINT", *drawn],
            "STRUCT(bin BIGINT, grams BIGINT)[]",
        ),
        ("absent_negatives", absent_negatives, ["BIGINT", "BIGINT", "BIGINT", *drawn], "BIGINT"),
        (
            "lifted",
            spurious_of_level,
            ["BIGINT", "INTEGER", "BIGINT", "BIGINT", "VARCHAR"],
            "STRUCT(position BIGINT, key BIGINT, noisy BIGINT)[]",
        ),
    ]
    con.create_function(
        "dphh_bin", bin_of, ["BIGINT", "BIGINT"], "BIGINT", type=PythonUDFType.ARROW
    )
    con.create_function(
        "dphh_lifted_grams_of_class",
        lifted_grams_of_classes,
        ["BIGINT", row, "INTEGER", *drawn],
        gram,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,
    )
    for name, function, takes, gives in functions:
        con.create_function(
            f"dphh_{name}",
            function,
            takes,
            gives,
            type=PythonUDFType.NATIVE,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,  # each row makes its own draw
        )
