"""The forecast ladder's rounds in DuckDB: `sql/forecast_*.sql`, and the functions they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.ladder.absent import bins_of_class, negatives_of_row, spurious_of_class
from dphh.privacy.forecast.rounds import LIST_SIZES, bins
from dphh.udfs.places import Released
from dphh.udfs.randomness import Randomness
from dphh.udfs.whole_users import WholeUsers

if TYPE_CHECKING:
    from dphh.engines.duckdb.ngrams import Ngrams

#: What a level makes, in the order of its queries.
TABLES = (
    "plain_sums", "list_sizes", "noised", "round_1", "absent", "round_2", "absent_signs",
    "forecasts", "classes", "planned", "thresholds",
)  # fmt: skip


class DuckDBRounds(ForecastRounds):
    def __init__(self, session: Ngrams, purpose: str) -> None:
        self.session, self.purpose = session, purpose

    def _round_1(self, unit: int) -> tuple[Any, Any]:
        session = self.session
        session.tell("forecasts", self.forecasts())
        session.tell("classes", self.classes())
        with session.side_by_side():
            self._execute("forecast_round_1", unit=unit, list_bins=len(LIST_SIZES))
        lists = session.fetch("list_sizes")
        return session.fetch("forecast_rows"), lists

    def _round_2(self, planned: Any, unit: int) -> Any:
        session = self.session
        session.tell("planned", planned)
        weights = session.fetch("forecast_weights")
        keys, values = (weights.column(name).to_numpy() for name in ("key", "weight"))
        self.grams = session.whole_users.look_up_in((Released(keys), values))
        with session.side_by_side():
            self._execute("forecast_round_2", unit=unit, grams=self.grams)
        return session.fetch("forecast_signs")

    def _released(self, thresholds: Any) -> Any:
        session = self.session
        session.tell("thresholds", thresholds)
        valid = session.whole_users.look_up_in(self.valid)
        return session.fetch(
            "forecast_released",
            valid=valid,
            grams=self.grams,
            sigma=self.law.noise.sigma,
            purpose=self.purpose,
        )

    def _execute(self, step: str, **parameters: Any) -> None:
        self.session.execute(
            step,
            sigma=self.law.noise.sigma,
            purpose=self.purpose,
            is_test=self.session.randomness.is_test,
            **parameters,
        )

    def close(self) -> None:
        for table in TABLES:
            self.session.drop(table)
        self.session.whole_users.looked_up.clear()


def register_forecast(
    con: duckdb.DuckDBPyConnection, randomness: Randomness, users: WholeUsers
) -> None:
    """Teach a DuckDB connection which bin a noised weight falls into, and the draws of valid grams
    that nobody holds: these are of a class a row, or of a bin of one, so they are few."""

    def bin_of(noisy: Any, sigma: Any) -> Any:
        return pa.array(bins(sigma[0].as_py()).of(noisy.to_numpy()))

    def absent_bins(group: int, grams: int, sigma: int, purpose: str) -> list[dict[str, int]]:
        fallen = bins_of_class(group, grams, bins(sigma), randomness, purpose)
        return [{"bin": column, "grams": number} for column, number in enumerate(fallen)]

    def absent_negatives(group: int, column: int, grams: int, sigma: int, purpose: str) -> int:
        return negatives_of_row(group, column, grams, bins(sigma), randomness, purpose)

    def absent_that_pass(
        group: int, rows: list[dict[str, int]], valid: int, grams: int, sigma: int, purpose: str
    ) -> list[dict[str, int]]:
        held, _ = users.looked_up[grams]
        columns = (
            np.array([row[name] for row in rows]) for name in ("grams", "negatives", "threshold")
        )
        passed = spurious_of_class(
            users.looked_up[valid],
            group,
            *columns,
            lambda keys: held.places(keys) >= 0,
            bins(sigma),
            randomness,
            purpose,
        )
        names = ("key", "bin", "first", "second")
        values = (passed.keys, passed.bins, passed.first, passed.second)
        return pa.table([pa.array(value) for value in values], names=names).to_pylist()

    row, gram = (
        "STRUCT(bin BIGINT, grams BIGINT, negatives BIGINT, threshold BIGINT)[]",
        "STRUCT(key BIGINT, bin BIGINT, first BIGINT, second BIGINT)[]",
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
            "absent_that_pass",
            absent_that_pass,
            ["BIGINT", row, "INTEGER", "INTEGER", *drawn],
            gram,
        ),
    ]
    con.create_function(
        "dphh_bin", bin_of, ["BIGINT", "BIGINT"], "BIGINT", type=PythonUDFType.ARROW
    )
    for name, function, takes, gives in functions:
        con.create_function(
            f"dphh_{name}",
            function,
            takes,
            gives,
            type=PythonUDFType.NATIVE,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,  # each row draws by itself
        )
