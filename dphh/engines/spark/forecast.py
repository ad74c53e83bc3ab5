"""The forecast ladder's rounds in Spark: `sql/spark/forecast_*.sql`, and what they share with
`sql/ngrams/`. All sums, noise and draws stay on executors."""

from __future__ import annotations

from typing import Any

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.forecast_functions import register_forecast
from dphh.engines.spark.run import SparkRun
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.udfs.spark.functions import register_noise
from dphh.udfs.spark.ladder import register_plain_contributions, register_shared_contributions

#: What a level makes and is shown, in the order of its queries.
TABLES = (
    "forecasts", "classes", "named_blocks", "held", "list_sizes", "noised", "round_1", "absent",
    "planned", "blocks_and_grams", "round_2", "absent_signs", "thresholds", "lifted",
)  # fmt: skip


class SparkRounds(ForecastRounds):
    def __init__(self, session: SparkRun, purpose: str) -> None:
        self.session, self.purpose = session, purpose

    def _round_1(self, unit: int) -> tuple[Any, Any]:
        session = self.session
        with engine_errors("forecast_round_1"):
            session.show("forecasts", self.forecasts())
            session.show("classes", self.classes())
            register_noise(session.spark, session.randomness)
            register_forecast(session.spark, session.randomness, self.valid)
            register_plain_contributions(session.spark, unit)
        self._execute("forecast_round_1", list_bins=len(LIST_SIZES))
        return session.fetch("forecast_rows"), session.fetch("list_sizes")

    def _round_2(self, planned: Any, unit: int) -> Any:
        with engine_errors("forecast_round_2"):
            self.session.show("planned", planned)
            register_shared_contributions(self.session.spark, unit)
        self._execute("forecast_round_2")
        return self.session.fetch("forecast_signs")

    def _released(self, thresholds: Any) -> Any:
        with engine_errors("forecast_lifted"):
            self.session.show("thresholds", thresholds)
        sigma = self.law.noise.sigma
        self.session.execute("forecast_lifted", sigma=sigma, purpose=self.purpose)
        return self.session.fetch("forecast_released")

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
