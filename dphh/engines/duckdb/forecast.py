"""The forecast ladder's rounds in DuckDB: `sql/ngrams/forecast_*.sql`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.engines.duckdb.run import DuckDBRun
from dphh.engines.forecast_rounds import ForecastRounds
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.session.ladder.rungs import Integers
from dphh.udfs.kernel.positions import Released

#: The tables of a level, in the order of its queries.
TABLES = (
    "plain_sums", "list_sizes", "noised", "round_1", "absent", "round_2", "absent_signs", "lifted",
    "forecasts", "lifts", "public_grams", "classes", "planned", "thresholds",
)  # fmt: skip


class DuckDBRounds(ForecastRounds):
    """The two rounds of a forecast level on DuckDB."""

    def __init__(self, session: DuckDBRun, purpose: str) -> None:
        self.session, self.purpose = session, purpose

    def _draw_round_1(self, unit: int) -> tuple[Any, Any]:
        session = self.session
        session.tell("forecasts", self.forecasts())
        session.tell("lifts", self.lifts())
        session.tell("public_grams", self.public_grams())
        session.tell("classes", self.classes())
        with session.side_by_side():
            session.execute("forecast_round_1", list_bins=len(LIST_SIZES), **self._round(unit))
        if (others := self.valid.others) is not None:
            threshold = others.first_threshold
            session.execute("other_words", threshold=threshold, others=len(self.valid))
        lists = session.fetch("list_sizes")
        return session.fetch("forecast_rows"), lists

    def _draw_round_2(self, planned: Any, unit: int) -> Any:
        session = self.session
        session.tell("planned", planned)
        weights = session.fetch("forecast_weights")
        keys, values = (weights.column(name).to_numpy() for name in ("key", "weight"))
        g = session.whole_users.look_up_in((Released(keys), values))
        with session.side_by_side():
            session.execute("forecast_round_2", g=g, **self._round(unit))
        session.whole_users.looked_up.clear()
        return session.fetch("forecast_signs")

    def _released_rows(self, thresholds: Any) -> Any:
        session = self.session
        session.tell("thresholds", thresholds)
        valid = session.whole_users.look_up_in(self.valid)
        sigma = self.law.noise.sigma
        session.execute("forecast_lifted", valid=valid, sigma=sigma, purpose=self.purpose)
        session.whole_users.looked_up.clear()
        return session.fetch("forecast_released")

    def _round(self, unit: int) -> dict[str, Any]:
        """The parameters that both rounds share."""
        return {
            "norm": unit,
            "sigma": self.law.noise.sigma,
            "purpose": self.purpose,
            "is_test": self.session.randomness.is_test,
            "others": -1 if self.valid.others is None else len(self.valid),
        }

    def _spellings_of(self, keys: Integers) -> Any:
        return self.session.whole_users.spelled(pa.array(keys - len(self.valid)))

    def close(self) -> None:
        for table in TABLES:
            self.session.drop(table)
