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
import pyarrow.compute as pc

from dphh.privacy.forecast_rounds import Bins
from dphh.session.ladder.classes import ValidClasses
from dphh.session.ladder.forecast_rounds import FirstRound, OtherPassed, Passed, PassedWords
from dphh.session.ladder.rungs import Integers

#: A threshold that every noised weight reaches.
ALWAYS = -(2**62)


class ForecastRounds(ABC):
    """A row here is a class of forecast with a bin of round 1's noised weight."""

    #: The level's valid grams, and the distribution of an absent gram's noised weight.
    valid: ValidClasses
    law: Bins

    @abstractmethod
    def _draw_round_1(self, unit: int) -> tuple[Any, Any]:
        """Returns two Arrow tables: (class, bin, grams) of the rows that have grams; and `noisy`,
        by bin, the noised numbers of users by how many grams they hold."""

    @abstractmethod
    def _draw_round_2(self, planned: Any, unit: int) -> Any:
        """Takes (class, bin, weight) of all rows; returns (class, bin, negatives)."""

    def _spellings_of(self, keys: Integers) -> Any:
        """The spellings of words that the list lacks, from their keys."""
        raise NotImplementedError

    @abstractmethod
    def _released_rows(self, thresholds: Any) -> Any:
        """Takes (class, bin, threshold) of all rows; returns (key, bin, first, second) by key."""

    @abstractmethod
    def close(self) -> None:
        """Drop the tables of the level."""

    def first_round(self, level: int, valid: ValidClasses, law: Bins, unit: int) -> FirstRound:
        self.valid, self.law = valid, law
        rows, lists = self._draw_round_1(unit)
        return FirstRound(self._as_matrix(rows, "grams"), lists.column("noisy").to_numpy())

    def second_round(self, weights: Integers, unit: int) -> Integers:
        others = self.valid.others
        beside = None if others is None else (others.weight, 0)
        planned = self._table_of_rows(weights, "weight", beside)
        return self._as_matrix(self._draw_round_2(planned, unit), "negatives")

    def passed(self, thresholds: Integers) -> Passed:
        others = self.valid.others
        beside = None if others is None else (others.second_threshold, ALWAYS)
        released = self._released_rows(self._table_of_rows(thresholds, "threshold", beside))
        columns = [released.column(name).to_numpy() for name in ("key", "bin", "first", "second")]
        if others is None:
            return Passed(*columns)
        listed = columns[0] < len(self.valid)
        words = self._spellings_of(columns[0][~listed])
        # Their keys say when they were first met, so the order is that of how they are spelled.
        order = pc.sort_indices(words)
        early, *weights = (column[~listed][order.to_numpy()] for column in columns[1:])
        passed = OtherPassed(words.take(order), early, *weights)
        keys, of_bins, of_first, of_second = (column[listed] for column in columns)
        return PassedWords(keys, of_bins, of_first, of_second, passed)

    def forecasts(self) -> Any:
        """Columns gram, as_first, as_last: what each gram of the level below adds to the class of a
        pair; and expected_first, expected_last: what it adds to the expectation by a public
        text."""
        grams, public = np.arange(len(self.valid.left)), self.valid.public
        nothing = np.zeros(len(grams), dtype=np.int64)
        expected = (nothing, nothing) if public is None else (public.left, public.right)
        return pa.table(
            {
                "gram": grams,
                "as_first": self.valid.left,
                "as_last": self.valid.right,
                "expected_first": expected[0],
                "expected_last": expected[1],
            }
        )

    def lifts(self) -> Any:
        """Columns expected, shift: what a public text adds to the class of a pair that it lacks."""
        shifts = np.zeros(1, np.int64) if self.valid.public is None else self.valid.public.shifts
        return pa.table({"expected": np.arange(len(shifts)), "shift": shifts})

    def public_grams(self) -> Any:
        """Columns key, class: the classes of the pairs that the public text has."""
        public, nothing = self.valid.public, np.empty(0, dtype=np.int64)
        keys, group = (nothing, nothing) if public is None else (public.keys, public.classes)
        return pa.table({"key": keys, "class": group})

    def classes(self) -> Any:
        """(class, valid): how many valid grams each class has."""
        return pa.table({"class": np.arange(len(self.valid.sizes)), "valid": self.valid.sizes})

    def _classes_and_bins(self) -> tuple[int, int]:
        return len(self.valid.sizes), len(self.law.starts)

    def _as_matrix(self, rows: Any, name: str) -> Integers:
        numbers = np.zeros(self._classes_and_bins(), dtype=np.int64)
        group, column, of_rows = (rows.column(of).to_numpy() for of in ("class", "bin", name))
        some = group >= 0  # words that a list lacks are in no class
        numbers[group[some], column[some]] = of_rows[some]
        return numbers

    def _table_of_rows(
        self, values: Integers, name: str, others: tuple[int, int] | None = None
    ) -> Any:
        """`others`: of words that a list lacks, by whether round 1 released them. They are in no
        class, which is class -1."""
        group, column = np.indices(values.shape)
        rows = {"class": group.ravel(), "bin": column.ravel(), name: values.ravel()}
        of_rows = pa.table(rows)
        if others is None:
            return of_rows
        beside = {"class": [-1, -1], "bin": [0, 1], name: [*others]}
        return pa.concat_tables([of_rows, pa.table(beside)])
