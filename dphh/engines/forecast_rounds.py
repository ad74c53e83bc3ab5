"""The two rounds of a forecast level as an engine's queries, and what leaves the engine.

The engine makes the tables of `sql/ngrams/forecast_*.sql` and keeps them. Only what these methods
return leaves it: the number of valid grams of each row, the noised list sizes, the signs, and the
grams that passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.ladder.classes import ValidClasses
from dphh.ladder.rounds import FirstRound, Passed
from dphh.ladder.rungs import Integers
from dphh.privacy.forecast_rounds import Bins


class ForecastRounds(ABC):
    """A row here is a class of forecast with a bin of round 1's noised weight."""

    #: The level's valid grams, and the distribution of an absent gram's noised weight.
    valid: ValidClasses
    law: Bins

    @abstractmethod
    def _round_1(self, unit: int) -> tuple[Any, Any]:
        """Returns Arrow tables: (class, bin, grams) of the rows that have grams, and (bin, noisy)
        of the list sizes, in order."""

    @abstractmethod
    def _round_2(self, planned: Any, unit: int) -> Any:
        """Takes (class, bin, weight) of all rows; returns (class, bin, negatives)."""

    @abstractmethod
    def _released(self, thresholds: Any) -> Any:
        """Takes (class, bin, threshold) of all rows; returns (key, bin, first, second) by key."""

    @abstractmethod
    def close(self) -> None:
        """Drop the tables of the level."""

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound:
        self.valid, self.law = valid, law
        rows, lists = self._round_1(unit)
        return FirstRound(self._by_row(rows, "grams"), lists.column("noisy").to_numpy())

    def second_round(self, weights: Integers, unit: int) -> Integers:
        return self._by_row(self._round_2(self._of_rows(weights, "weight"), unit), "negatives")

    def passed(self, thresholds: Integers) -> Passed:
        released = self._released(self._of_rows(thresholds, "threshold"))
        return Passed(
            *(released.column(name).to_numpy() for name in ("key", "bin", "first", "second"))
        )

    def forecasts(self) -> Any:
        """(gram, as_first, as_last): what each gram below adds to the class of a pair."""
        grams = np.arange(len(self.valid.left))
        return pa.table({"gram": grams, "as_first": self.valid.left, "as_last": self.valid.right})

    def classes(self) -> Any:
        """(class, valid): how many valid grams each class has."""
        return pa.table({"class": np.arange(len(self.valid.sizes)), "valid": self.valid.sizes})

    def _shape(self) -> tuple[int, int]:
        return len(self.valid.sizes), len(self.law.starts)

    def _by_row(self, rows: Any, name: str) -> Integers:
        numbers = np.zeros(self._shape(), dtype=np.int64)
        where = rows.column("class").to_numpy(), rows.column("bin").to_numpy()
        numbers[where] = rows.column(name).to_numpy()
        return numbers

    def _of_rows(self, values: Integers, name: str) -> Any:
        group, column = np.indices(values.shape)
        return pa.table({"class": group.ravel(), "bin": column.ravel(), name: values.ravel()})
