"""The functions that queries call, each declared once: DuckDB and Spark register the same ones, and
Polars calls them. In a query, the function of the name NAME is `dphh_NAME`.

A function of whole users gets lists: a row has many users, one after the other, and none of them is
in another row. For each it has a hash of the user's id (`user_hashes`), how many positions the user
has (`lengths`), and what stands at all of them (`ids`, `keys`). What a row becomes depends on that
row and on what the query hands over, such as the released set of the level below and a salt. On
DuckDB and Polars a run numbers its words, and a call gets some thousand rows. On Spark each row has
a list of its own words, of which its word ids are indices, and a call gets one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from dphh.udfs.kernel.contributions import keys_of_counted_words
from dphh.udfs.kernel.positions import (
    numbers_of_released_grams,
    numbers_of_released_words,
    pairs_of_rows,
)
from dphh.udfs.noise.absent import (
    absent_by_cell,
    absent_nonpositive,
    absent_undecided,
    spurious_of_classes,
    spurious_of_level,
)
from dphh.udfs.noise.randomness import Randomness
from dphh.udfs.noise.sampler import bin_of, noise_of_rows
from dphh.udfs.noise.truncated import truncated_noise_of_rows
from dphh.udfs.rules.counts import contributions_to_counts, keys_of_given_items
from dphh.udfs.rules.forecast import (
    caps_of_purses,
    finds_of_users,
    full_purses,
    later_round_contributions,
    purse_counts,
    round_1_contributions,
)
from dphh.udfs.rules.reports import reports_of_rows
from dphh.udfs.rules.votes import UINT64_AS_DECIMAL, random_words_of_rows, votes_of_rows
from dphh.udfs.rules.weights import (
    contributions_of_grams,
    contributions_of_words,
    contributions_to_buckets,
    relative_weights_of_rows,
)

LONG, TEXT = pa.int64(), pa.string()
#: Arrow types of columns with a list of integers in each row: those of all users of that row.
INTS, LONGS = pa.list_(pa.int32()), pa.list_(pa.int64())


@dataclass(frozen=True)
class Constant:
    """The kind of an argument with the same value in all rows: the function gets that value."""

    kind: pa.DataType


#: The kind of an argument that is an object of the driver, a `Lookup`: queries pass its number, and
#: the function gets the object. For values by words' spellings it gets values by word ids.
LOOKUP = "lookup"
#: The kind of an argument that is the words themselves: the function gets, beside the word ids, an
#: object that has the words they stand for.
ROW_WORDS = "words"
#: One of: an Arrow type (the kind of a column), a `Constant`, LOOKUP, ROW_WORDS.
ArgumentKind = Any


@dataclass(frozen=True)
class Function:
    """A function from Arrow columns to an Arrow column, with the types of both."""

    body: Callable[..., Any]
    takes: tuple[ArgumentKind, ...]
    gives: pa.DataType
    #: Whether the keys in the result are word ids.
    keys_are_words: bool = False

    @property
    def takes_whole_users(self) -> bool:
        return any(kind in (INTS, LONGS, PURSE) for kind in self.takes)


def list_of_structs(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(fields.items())))


WEIGHTS_TYPE = list_of_structs(key=LONG, weight=LONG)
#: The purses of a row's users, in lists (`udfs/rules/forecast.py`).
PURSE = pa.struct([("rest", LONGS), ("tops", INTS), ("finds", INTS)])
WEIGHTS_AND_PURSE = pa.struct([("contributions", WEIGHTS_TYPE), ("purse", PURSE)])
#: The arguments user_hashes, lengths, and the word ids or the keys at the positions.
USERS_IDS, USERS_KEYS = (LONGS, INTS, INTS), (LONGS, INTS, LONGS)
ONE_INT, ONE_LONG, ONE_DOUBLE = Constant(pa.int32()), Constant(LONG), Constant(pa.float64())
ONE_TEXT, ONE_UINT64 = Constant(TEXT), Constant(UINT64_AS_DECIMAL)
#: Kinds of the arguments by which users are bounded: max_items, grid_bits, salt.
KINDS_OF_BOUNDING_ARGUMENTS = (ONE_INT, ONE_INT, LOOKUP)
KINDS_OF_SIGMA_AND_PURPOSE = (ONE_LONG, ONE_TEXT)
SPURIOUS_TYPE = list_of_structs(position=LONG, key=LONG, cell=LONG, first=LONG, second=LONG)
CELLS_TYPE = list_of_structs(cell=LONG, grams=LONG, nonpositive=LONG, threshold=LONG)


def functions_called_in(query: str) -> list[str]:
    """The names, without `dphh_`, of the functions that a query calls."""
    return re.findall(r"\bdphh_(\w+)\(", query)


def functions(randomness: Randomness) -> dict[str, Function]:
    """All functions, by their names without `dphh_`. Some draw from `randomness`: what these give
    must be written to a table before anything reads it, since a view that runs again draws
    again."""

    def drawing(body: Callable[..., Any], takes: tuple[ArgumentKind, ...], gives: Any) -> Function:
        return Function(partial(body, randomness), takes, gives)

    return {
        "noise": drawing(noise_of_rows, (TEXT, LONG, TEXT), LONG),
        "truncated_noise": drawing(
            truncated_noise_of_rows, (TEXT, ONE_LONG, ONE_LONG, ONE_LONG, ONE_TEXT), LONG
        ),
        "votes": drawing(votes_of_rows, (TEXT, LONG, ONE_UINT64, ONE_LONG, ONE_TEXT), LONG),
        "word": drawing(random_words_of_rows, (TEXT, ONE_TEXT), UINT64_AS_DECIMAL),
        "report": drawing(
            reports_of_rows, (TEXT, LONG, ONE_LONG, ONE_LONG, ONE_UINT64, ONE_TEXT), LONGS
        ),
        "bin": Function(bin_of, (LONG, ONE_LONG), LONG),
        "absent_cells": drawing(
            absent_by_cell,
            (LONG, LONG, *KINDS_OF_SIGMA_AND_PURPOSE),
            list_of_structs(cell=LONG, grams=LONG),
        ),
        "absent_nonpositive": drawing(
            absent_nonpositive, (LONG, LONG, *KINDS_OF_SIGMA_AND_PURPOSE), LONG
        ),
        "spurious_of_class": drawing(
            spurious_of_classes,
            (LONG, CELLS_TYPE, LOOKUP, ONE_INT, *KINDS_OF_SIGMA_AND_PURPOSE),
            SPURIOUS_TYPE,
        ),
        "absent_undecided": drawing(
            absent_undecided,
            (LONG, LONG, LONG, LONG, LONG, *KINDS_OF_SIGMA_AND_PURPOSE),
            list_of_structs(cell=LONG, grams=LONG),
        ),
        "spurious": drawing(
            spurious_of_level,
            (LONG, LOOKUP, ONE_LONG, ONE_LONG, ONE_TEXT),
            list_of_structs(position=LONG, key=LONG, noisy=LONG),
        ),
        "numbers_of_words": Function(numbers_of_released_words, (INTS, ROW_WORDS, LOOKUP), INTS),
        "numbers_of_grams": Function(numbers_of_released_grams, (LONGS, LOOKUP), INTS),
        "keys_of_items": Function(
            keys_of_given_items,
            (INTS, INTS, ROW_WORDS, LOOKUP),
            pa.struct([("lengths", INTS), ("ids", INTS)]),
        ),
        "pairs": Function(
            pairs_of_rows,
            (INTS, INTS),
            pa.struct([("lengths", INTS), ("keys", LONGS)]),
        ),
        "keys_of_words": Function(
            keys_of_counted_words,
            (*USERS_IDS, ROW_WORDS, LOOKUP, ONE_INT, ONE_INT, LOOKUP),
            LONGS,
        ),
        "contributions_of_words": Function(
            contributions_of_words,
            (*USERS_IDS, ROW_WORDS, LOOKUP, *KINDS_OF_BOUNDING_ARGUMENTS, LOOKUP),
            WEIGHTS_TYPE,
            keys_are_words=True,
        ),
        "weight": Function(relative_weights_of_rows, (LONG, ONE_LONG, ONE_LONG, ONE_LONG), LONG),
        "contributions_of_grams": Function(
            contributions_of_grams,
            (*USERS_KEYS, *KINDS_OF_BOUNDING_ARGUMENTS),
            WEIGHTS_TYPE,
        ),
        "round_1_contributions": Function(
            round_1_contributions, (INTS, LONGS, PURSE, LOOKUP), WEIGHTS_TYPE
        ),
        "later_round_contributions": Function(
            later_round_contributions, (INTS, LONGS, PURSE, LOOKUP, LOOKUP), WEIGHTS_AND_PURSE
        ),
        "purse_counts": Function(purse_counts, (PURSE, LOOKUP), WEIGHTS_AND_PURSE),
        "full_purses": Function(full_purses, (LONGS, ONE_LONG), PURSE),
        "finds": Function(finds_of_users, (INTS, INTS, PURSE), PURSE),
        "caps": Function(caps_of_purses, (PURSE, ONE_DOUBLE), LONGS),
        "contributions_to_buckets": Function(
            contributions_to_buckets,
            (*USERS_IDS, ROW_WORDS, ONE_INT, ONE_INT, ONE_INT),
            WEIGHTS_TYPE,
        ),
        "contributions_to_counts": Function(
            contributions_to_counts, (INTS, INTS, LONGS, LOOKUP), WEIGHTS_TYPE
        ),
    }
