"""Whole users as rows of lists, for engines whose rows hold lists (DuckDB, Polars): the steps that
see all of a user at once, over columns of Arrow. A batch of rows is a block of whole users.

`codes` make texts numbers, `contributions` bound and weigh a user, `pairs` and `places` climb the
ladder. None draws anything: what they make of a row hangs on that row, on what was released and
on a level's salt.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import PythonUDFType
from numpy.typing import NDArray

from dphh.udfs.blocks import places_of_texts
from dphh.udfs.contributions import Weigh, contributions, evenly
from dphh.udfs.hashes import Integers, Words, of_numbers, of_spellings
from dphh.udfs.places import Released, candidates, candidates_that_matter
from dphh.udfs.two_rounds import ByRow, Plainly
from dphh.udfs.vocabulary import Vocabulary
from dphh.udfs.whole_grams import whole_grams


class WholeUsers:
    """The functions of one run, by the words that it has met and the level that it is at."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self._numbers_of_words: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._released = Released([])
        #: How users weigh in the forecast ladder's present round.
        self.round_rule: Plainly | ByRow | None = None

    def lots(self, names: Any) -> pa.Array:
        """`dphh_lot(name)`: what stands for a user where the keys that count are chosen."""
        return pa.array(of_spellings(one_array(names)).view(np.int64))

    def codes(self, texts: Any) -> pa.Array:
        """`dphh_codes(tokens)`: each token by its number, and -1 where the text ends."""
        tokens = one_array(texts)
        codes = self.vocabulary.codes(tokens.flatten())
        lengths, places = places_of_texts(lengths_of(tokens), codes)
        return lists_of(lengths, places)

    def grams(self, texts: Any, shortest: int, longest: int) -> pa.Array:
        """`dphh_grams(tokens, shortest, longest)`: every n-gram of a text, spelled out."""
        return whole_grams(one_array(texts), range(shortest, longest + 1))

    def contributions_of_words(
        self, lot: Any, codes: Any, max_items: int, grid_bits: int, salt: int
    ) -> pa.Array:
        """`dphh_contributions_of_words(lot, codes, max_items, grid_bits, salt)`: what the
        users of these rows add to a histogram of words, in the first row."""
        return weighed(lot, codes, evenly(max_items, grid_bits, salt, self.hashed_words))

    def contributions_of_grams(
        self, lot: Any, keys: Any, max_items: int, grid_bits: int, salt: int
    ) -> pa.Array:
        """`dphh_contributions_of_grams(lot, keys, max_items, grid_bits, salt)`: the same of pairs
        of released grams, whose numbers are public."""
        return weighed(lot, keys, evenly(max_items, grid_bits, salt, of_numbers))

    def contributions_of_round(self, lot: Any, keys: Any) -> pa.Array:
        """`dphh_contributions_of_round(lot, keys)`: the same in a round of the forecast ladder."""
        assert self.round_rule is not None
        return weighed(lot, keys, self.round_rule)

    def hashed_words(self, codes: Integers) -> Words:
        """By their spelling."""
        return self.vocabulary.hashes()[codes]

    def spelled(self, keys: Any) -> pa.Array:
        """`dphh_spelled(key)`: the word of a number."""
        return self.vocabulary.spelled(_numbers(keys))

    def release_words(self, words: Any) -> None:
        """Tell which words are released; a released word's place among them is its number."""
        codes = self.vocabulary.codes(words)
        numbers = np.full(len(self.vocabulary) + 1, -1, dtype=np.int32)  # the last for nothing
        numbers[codes] = np.arange(len(words))
        self._numbers_of_words = numbers

    def release_grams(self, keys: Any) -> None:
        """The same of grams; their keys are ascending."""
        self._released = Released(keys)

    def unreleased(self, codes: Any) -> pa.Array:
        """`dphh_unreleased(codes)`: those that are not among the released words."""
        lists = one_array(codes)
        held = values_of(lists)
        return lists_of(*_kept(lengths_of(lists), held, self._numbers_of_words[held] < 0))

    def places_of_words(self, codes: Any) -> pa.Array:
        """`dphh_places_of_words(codes)`: the number of the released word at each place, or -1."""
        lists = one_array(codes)
        return lists_of(lengths_of(lists), self._numbers_of_words[values_of(lists)])

    def places_of_grams(self, keys: Any) -> pa.Array:
        """`dphh_places_of_grams(keys)`: the same of released grams."""
        lists = one_array(keys)
        return lists_of(lengths_of(lists), self._released.places(values_of(lists)))

    def pairs(self, grams: Any, words: Any, ahead: int) -> pa.Array:
        """`dphh_pairs(grams, words, ahead)`: at each place the key of the gram there and the next
        one, places that can be part of none left out; or of the gram and, so many places ahead,
        the word, where there are words: then every place stays."""
        lists = one_array(grams)
        lengths, places, ends = lengths_of(lists), values_of(lists), values_of(one_array(words))
        if len(ends):
            return lists_of(lengths, candidates(places, ends, ahead))
        return lists_of(*candidates_that_matter(lengths, places))


def weighed(lots: Any, keys: Any, weigh: Weigh) -> pa.Array:
    """The keys that count, with their weights: what all these users add, in the first one's row."""
    lists = one_array(keys)
    lengths = lengths_of(lists)
    key, weight = contributions(_numbers(lots), lengths, values_of(lists), weigh)
    pairs = pa.StructArray.from_arrays([pa.array(key), pa.array(weight)], ["key", "weight"])
    return lists_of(np.where(np.arange(len(lengths)) == 0, len(key), 0), pairs)


def register_whole_users(con: duckdb.DuckDBPyConnection, users: WholeUsers) -> None:
    """Teach a DuckDB connection these functions, by the names that they say."""
    level = ["INTEGER", "INTEGER", "UBIGINT"]
    weights = "STRUCT(key BIGINT, weight BIGINT)[]"
    functions: list[tuple[str, Callable[..., Any], list[Any], str]] = [
        ("spelled", users.spelled, ["BIGINT"], "VARCHAR"),
        ("unreleased", users.unreleased, ["INTEGER[]"], "INTEGER[]"),
        ("places_of_words", users.places_of_words, ["INTEGER[]"], "INTEGER[]"),
        ("places_of_grams", users.places_of_grams, ["BIGINT[]"], "INTEGER[]"),
        ("pairs", users.pairs, ["INTEGER[]", "INTEGER[]", "INTEGER"], "BIGINT[]"),
        (
            "contributions_of_words",
            users.contributions_of_words,
            ["BIGINT", "INTEGER[]", *level],
            weights,
        ),
        (
            "contributions_of_grams",
            users.contributions_of_grams,
            ["BIGINT", "BIGINT[]", *level],
            weights,
        ),
        (
            "contributions_of_round",
            users.contributions_of_round,
            ["BIGINT", "BIGINT[]"],
            weights,
        ),
    ]
    for name, function, takes, gives in functions:
        con.create_function(
            f"dphh_{name}",
            _of_columns(function, takes),
            takes,
            gives,
            type=PythonUDFType.ARROW,
            side_effects=True,  # or a filter on what it gives would have it called twice
        )


def _of_columns(function: Callable[..., Any], takes: list[Any]) -> Callable[..., Any]:
    """With the parameters of a level as single values: they are the same in every row."""
    single = {"INTEGER", "UBIGINT"}

    def of_columns(*columns: Any) -> Any:
        return function(
            *(
                column[0].as_py() if kind in single else column
                for column, kind in zip(columns, takes, strict=True)
            )
        )

    of_columns.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(f"of_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(takes))]
    )
    return of_columns


def one_array(column: Any) -> Any:
    """A column as one array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # of no chunks
        column = pa.array([], column.type)
    return column


def _numbers(column: Any) -> Integers:
    found: Integers = one_array(column).to_numpy()
    return found


def lengths_of(lists: Any) -> Integers:
    lengths = pc.list_value_length(lists)
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def values_of(lists: Any) -> Any:
    return lists.flatten().to_numpy()


def _kept(lengths: Integers, values: Any, keep: NDArray[np.bool_]) -> tuple[Integers, Any]:
    before = np.concatenate([[0], np.cumsum(keep)])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return np.diff(before[ends]), values[keep]


def lists_of(lengths: Integers, values: Any) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
