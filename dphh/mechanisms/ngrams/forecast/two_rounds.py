"""The two rounds of a forecast level as queries, and what leaves the engine.

The engine makes the tables of `sql/ngrams/forecast_*.sql` and keeps them. Only what these methods
return leaves it: the number of valid grams of each row, the noised list sizes, the signs, and the
grams that passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.engines.host import Host, Lookup
from dphh.mechanisms.ngrams.ladder.classes import ValidClasses
from dphh.mechanisms.released_rows import as_array, integer_columns
from dphh.privacy.forecast_rounds import LIST_SIZE_BIN_STARTS, Bins, Integers

#: A threshold that every noised weight reaches.
REACHED_BY_ALL = -(2**62)
#: The tables of a level in the engine, which are dropped after it.
LEVEL_TABLES = (
    "forecasts", "lifts", "public_grams", "classes", "round_1_sums", "list_sizes", "noised",
    "round_1", "absent", "planned", "round_2", "absent_counts", "thresholds", "lifted",
    "unlisted_words",
)  # fmt: skip


@dataclass(frozen=True)
class PassedUnlistedWords:
    """The released unlisted words, in ascending order of their spelling."""

    words: Any
    #: 1 for each word that round 1 released, 0 for the others.
    early: Integers
    first: Integers
    second: Integers


@dataclass(frozen=True)
class ReleasedGrams:
    """The grams that a level releases, including spurious ones, ascending by key. `first` and
    `second`: their noised weights in the two rounds."""

    keys: Integers
    bins: Integers
    first: Integers
    second: Integers
    #: Only at level 1 with a prior.
    unlisted_words: PassedUnlistedWords | None = None


class TwoRounds:
    """The rounds of one level over `positions`. A row here is a class of forecast with a bin of
    round 1's noised weight: weights, thresholds and numbers of grams are by (class, bin). `norm`: a
    user's norm in the round, in grid units."""

    #: The level's valid grams, and the noise's distribution over the bins.
    valid: ValidClasses
    noise_bins: Bins

    def __init__(self, host: Host, purpose: str) -> None:
        self.host, self.purpose = host, purpose

    def run_first_round(
        self, valid: ValidClasses, noise_bins: Bins, norm: int
    ) -> tuple[Integers, Integers]:
        """Returns how many valid grams each row has, and the noised numbers of users by list
        size."""
        self.valid, self.noise_bins = valid, noise_bins
        host, rule = self.host, valid.rule_for_unlisted
        for table, rows in self._public_tables().items():
            host.put(table, rows)
        if rule is None:
            no_words = {"word": pa.array([], pa.string()), "key": pa.array([], pa.int64())}
            host.put("unlisted_words", pa.table(no_words))
        host.run(
            "forecast_round_1",
            norm=norm,
            list_size_bins=len(LIST_SIZE_BIN_STARTS),
            first_unlisted_key=-1 if rule is None else len(valid),
            unlisted_threshold=0 if rule is None else rule.first_threshold,
            **self._noise_parameters(),
        )
        # round_1 (key, name, noisy, class, bin), of the grams that a user holds; absent (class,
        # bin, grams), of all others
        rows = host.take("forecast_rows")
        # (class, bin, grams), of held and absent grams together
        lists = host.take("list_sizes").sort_by("bin")
        # (bin, noisy), the noised numbers of users by list size
        return self._by_class_and_bin(rows, "grams"), lists.column("noisy").to_numpy()

    def run_second_round(self, weights: Integers, norm: int) -> Integers:
        """Returns how many valid grams of each row have a noised weight of 0 or less."""
        rule = self.valid.rule_for_unlisted
        of_unlisted = None if rule is None else (rule.weight, 0)
        self.host.put("planned", self._table_by_row(weights, "weight", of_unlisted))
        self.host.bring("g", "forecast_weights", to="positions")
        # brought to users: the weight of each gram's row
        self.host.run("forecast_round_2", norm=norm, **self._noise_parameters())
        # round_2 (key, class, bin, first, second); absent_counts (class, bin, grams, nonpositive)
        return self._by_class_and_bin(self.host.take("forecast_nonpositive_counts"), "nonpositive")

    def passing_grams(self, thresholds: Integers) -> ReleasedGrams:
        rule = self.valid.rule_for_unlisted
        of_unlisted = None if rule is None else (rule.second_threshold, REACHED_BY_ALL)
        self.host.put("thresholds", self._table_by_row(thresholds, "threshold", of_unlisted))
        self.host.run("forecast_lifted", valid=Lookup(self.valid), **self._noise_parameters())
        # lifted (class, position, key, bin, first, second), of absent grams
        released = self.host.take("forecast_released").sort_by([("key", "ascending"),
                                                                ("word", "ascending")])  # fmt: skip
        # (key, word, bin, first, second): only unlisted words have a word, and they have no key
        listed = released.filter(pc.is_valid(released.column("key")))
        keys, of_bins, first, second = integer_columns(listed, "key", "bin", "first", "second")
        if rule is None:
            return ReleasedGrams(keys, of_bins, first, second)
        unlisted = released.filter(pc.is_null(released.column("key")))
        words = as_array(unlisted.column("word"), pa.string())
        numbers = integer_columns(unlisted, "bin", "first", "second")
        return ReleasedGrams(keys, of_bins, first, second, PassedUnlistedWords(words, *numbers))

    def _noise_parameters(self) -> dict[str, Any]:
        """The parameters of every query that draws noise."""
        is_test = self.host.randomness.is_test
        return {"sigma": self.noise_bins.noise.sigma, "purpose": self.purpose, "is_test": is_test}

    def _public_tables(self) -> dict[str, Any]:
        """The public tables that round 1 reads. forecasts: what each gram of the level below adds,
        as first and as last piece, to the class of a pair and to its expected public count. lifts:
        what that count adds to the class of a pair that the public text lacks. public_grams: the
        classes of pairs that the text has. classes: how many valid grams each class has."""
        valid, public, sizes = self.valid, self.valid.public, self.valid.sizes
        return {
            "forecasts": pa.table(
                {
                    "gram": np.arange(len(valid.left)),
                    "as_first": valid.left,
                    "as_last": valid.right,
                    "expected_first": public.left,
                    "expected_last": public.right,
                }
            ),
            "lifts": pa.table({"expected": np.arange(len(public.shifts)), "shift": public.shifts}),
            "public_grams": pa.table({"key": public.keys, "class": public.classes}),
            "classes": pa.table({"class": np.arange(len(sizes)), "valid": sizes}),
        }

    def _by_class_and_bin(self, rows: Any, column: str) -> Integers:
        numbers = np.zeros((len(self.valid.sizes), len(self.noise_bins.starts)), dtype=np.int64)
        classes, bins, values = (rows.column(x).to_numpy() for x in ("class", "bin", column))
        numbers[classes, bins] = values
        return numbers

    @staticmethod
    def _table_by_row(matrix: Integers, name: str, of_unlisted: tuple[int, int] | None) -> Any:
        """The columns class, bin and `name` of a matrix (classes, bins). `of_unlisted`: the value
        of unlisted words, first of those that round 1 did not release, then of those that it did.
        These words are in no class, which is class -1."""
        group, column = np.indices(matrix.shape)
        rows = pa.table({"class": group.ravel(), "bin": column.ravel(), name: matrix.ravel()})
        if of_unlisted is None:
            return rows
        unlisted = pa.table({"class": [-1, -1], "bin": [0, 1], name: [*of_unlisted]})
        return pa.concat_tables([rows, unlisted])
