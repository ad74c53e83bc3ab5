"""The forecast ladder's rounds in Polars: `queries/forecast.py`, and draws on stored frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from dphh.engines.forecast_rounds import ForecastRounds
from dphh.engines.polars.items import Items
from dphh.engines.polars.queries import forecast as queries
from dphh.engines.polars.queries.ladder import grams_level
from dphh.privacy.forecast_rounds import LIST_SIZES
from dphh.session.ladder.absent import absent_bins, absent_negatives, spurious_grams
from dphh.session.ladder.rungs import Integers
from dphh.udfs.kernel.positions import Released
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram


class PolarsRounds(ForecastRounds):
    """The two rounds of a forecast level on Polars."""

    def __init__(self, session: Items, purpose: str) -> None:
        self.session, self.purpose = session, purpose

    def _draw_round_1(self, unit: int) -> tuple[Any, Any]:
        plain = self._sums(PlainWeights(unit), "forecast_round_1")
        sizes = pl.DataFrame({"key": -1 - np.arange(len(LIST_SIZES))})
        sizes = sizes.join(plain, on="key", how="left", maintain_order="left")
        lists = self._write_noised(sizes.with_columns(pl.col("weight").fill_null(0)), "list sizes")

        noised = self._write_noised(plain.filter(pl.col("key") >= 0), "round 1")
        forecasts = pl.DataFrame(self.forecasts()).lazy()
        lifts, public = (pl.DataFrame(x).lazy() for x in (self.lifts(), self.public_grams()))
        classed = self._fetch(queries.classed(noised.lazy(), forecasts, lifts, public))
        bins = pl.Series(self.law.of(classed["noisy"].to_numpy()))
        self.round_1 = classed.with_columns(bin=bins)
        if (others := self.valid.others) is not None:
            threshold = others.first_threshold
            beside = queries.other_words(noised.lazy(), len(self.valid), threshold)
            self.round_1 = pl.concat([self.round_1, self._fetch(beside)])
        self.absent = self._absent_bins()
        absent = pl.DataFrame(self._table_of_rows(self.absent, "grams")).lazy()
        rows = self._fetch(queries.rows(self.round_1.lazy(), absent))
        return rows.to_arrow(), lists.select("noisy").to_arrow()

    def _absent_bins(self) -> Integers:
        """How many absent grams (valid, but held by no user) each row has: drawn for each class
        from the noise's distribution."""
        classes = pl.DataFrame(self.classes()).lazy()
        unlisted = self._fetch(queries.unlisted(self.round_1.lazy(), classes))
        absent = unlisted["grams"].to_numpy()
        return absent_bins(absent, self.law, self.session.randomness, self.purpose)

    def _draw_round_2(self, planned: Any, unit: int) -> Any:
        weights = self._fetch(queries.weights(self.round_1.lazy(), pl.DataFrame(planned).lazy()))
        self.held = Released(weights["key"].to_numpy())
        rule = WeightsByGram(unit, self.held, weights["weight"].to_numpy())
        histogram = self._sums(rule, "forecast_round_2")
        sums = self._fetch(queries.sums(self.round_1.lazy(), histogram.lazy()))
        self.round_2 = self._write_noised(sums, "round 2").rename({"noisy": "second"})

        self.negatives = absent_negatives(
            self.absent, self.law, self.session.randomness, self.purpose
        )
        absent_signs = pl.DataFrame(self._table_of_rows(self.negatives, "negatives"))
        signs = self._fetch(queries.signs(self.round_2.lazy(), absent_signs.lazy()))
        return signs.to_arrow()

    def _released_rows(self, thresholds: Any) -> Any:
        spurious = spurious_grams(
            self.valid,
            self.absent,
            self.negatives,
            self._as_matrix(thresholds, "threshold"),
            lambda keys: self.held.positions(keys) >= 0,
            self.law,
            self.session.randomness,
            self.purpose,
        )
        lifted = pl.DataFrame(
            {
                "key": spurious.keys,
                "bin": spurious.bins,
                "first": spurious.first,
                "second": spurious.second,
            }
        )
        passed = queries.passed(self.round_2.lazy(), pl.DataFrame(thresholds).lazy(), lifted.lazy())
        return self._fetch(passed).to_arrow()

    def _sums(self, rule: PlainWeights | WeightsByGram, step: str) -> pl.DataFrame:
        """The sum of all users' weights for each gram, before noise."""
        return self.session.fetch(step, grams_level(self.session.table("positions"), rule))

    def _write_noised(self, sums: pl.DataFrame, what: str) -> pl.DataFrame:
        """With the noise of each row, drawn once."""
        start = -1 if self.valid.others is None else len(self.valid)
        return self.session.noised(
            sums,
            self.law.noise.sigma,
            f"{self.purpose}/{what}",
            lambda keys: self.session.whole_users.names(keys, start),
        )

    def _spellings_of(self, keys: Integers) -> Any:
        return self.session.whole_users.spelled(pa.array(keys - len(self.valid)))

    def _fetch(self, rows: pl.LazyFrame) -> pl.DataFrame:
        return self.session.fetch("forecast_level", rows)

    def close(self) -> None:
        for table in ("round_1", "absent", "round_2", "held", "negatives"):
            vars(self).pop(table, None)
