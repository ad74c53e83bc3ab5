"""The forecast ladder's rounds in Spark: `sql/spark/forecast_*.sql`, and what they share with
`sql/ngrams/`. All sums, noise and draws stay on executors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.engines.spark.failures import engine_errors
from dphh.engines.spark.forecast_functions import register_forecast
from dphh.engines.spark.run import SparkRun
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.session.ladder.rungs import Integers
from dphh.udfs.spark.functions import register_noise
from dphh.udfs.spark.ladder import register_plain_contributions, register_shared_contributions

#: What a level makes and is shown, in the order of its queries.
TABLES = (
    "forecasts", "lifts", "public_grams", "classes", "named_blocks", "held", "list_sizes",
    "round_1", "absent", "planned", "blocks_and_grams", "round_2", "absent_signs",
    "thresholds", "lifted", "other_words",
)  # fmt: skip
#: Where no list is, no word is left over.
_NO_WORDS = pa.table({"word": pa.array([], pa.string()), "key": pa.array([], pa.int64())})


class SparkRounds(ForecastRounds):
    """The two rounds of a forecast level on Spark."""

    def __init__(self, session: SparkRun, purpose: str) -> None:
        self.session, self.purpose = session, purpose

    def _draw_round_1(self, unit: int) -> tuple[Any, Any]:
        session = self.session
        with engine_errors("forecast_round_1"):
            session.show("forecasts", self.forecasts())
            session.show("lifts", self.lifts())
            session.show("public_grams", self.public_grams())
            session.show("classes", self.classes())
            register_noise(session.spark, session.randomness)
            register_forecast(session.spark, session.randomness, self.valid)
            register_plain_contributions(session.spark)
            if self.valid.others is None:
                session.show("other_words", _NO_WORDS)
        others = self.valid.others
        threshold = 0 if others is None else others.first_threshold
        self._execute("forecast_round_1", norm=unit, list_bins=len(LIST_SIZES), threshold=threshold)
        return session.fetch("forecast_rows"), session.fetch("list_sizes").sort_by("bin")

    def _draw_round_2(self, planned: Any, unit: int) -> Any:
        with engine_errors("forecast_round_2"):
            self.session.show("planned", planned)
            register_shared_contributions(self.session.spark)
        self._execute("forecast_round_2", norm=unit)
        return self.session.fetch("forecast_signs")

    def _released_rows(self, thresholds: Any) -> Any:
        with engine_errors("forecast_lifted"):
            self.session.show("thresholds", thresholds)
        sigma = self.law.noise.sigma
        self.session.execute("forecast_lifted", sigma=sigma, purpose=self.purpose)
        released = self.session.fetch("forecast_released", others=self._first_other_key)
        self.other_words = released.column("word").drop_null().combine_chunks()
        return released

    def _spellings_of(self, keys: Integers) -> Any:
        """The released words that the list lacks, which come last in the released rows."""
        return self.other_words

    @property
    def _first_other_key(self) -> int:
        return -1 if self.valid.others is None else len(self.valid)

    def _execute(self, step: str, **parameters: Any) -> None:
        self.session.execute(
            step,
            sigma=self.law.noise.sigma,
            purpose=self.purpose,
            is_test=self.session.randomness.is_test,
            others=self._first_other_key,
            **parameters,
        )

    def close(self) -> None:
        for table in TABLES:
            self.session.drop(table)
