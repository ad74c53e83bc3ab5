"""The functions that queries call, each declared once: DuckDB and Spark register the same ones, and
Polars calls them. A function `body` of `NAME` is `dphh_NAME` in a query.

A function of whole users gets lists: a row has many users, and none of them is in another row. On
DuckDB and Polars a run numbers its words, and a call gets some thousand rows; on Spark each row
has a list of its own words, which its ids are indices in, and a call gets one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dphh.udfs.draws.absent import absent_functions
from dphh.udfs.draws.noise import bin_of, noise_function
from dphh.udfs.draws.randomness import Randomness
from dphh.udfs.draws.spurious import lifted_function
from dphh.udfs.draws.subsets import report_function
from dphh.udfs.draws.votes import WORD, vote_functions
from dphh.udfs.kernel import whole_users

LONG, TEXT = pa.int64(), pa.string()
#: Arrow types of columns with one list in each row: numbers of all users of that row.
INTS, LONGS = pa.list_(pa.int32()), pa.list_(pa.int64())


@dataclass(frozen=True)
class Fixed:
    """An argument whose value is the same in all rows: the function gets that value."""

    kind: pa.DataType


#: An argument that is a `Lookup` of the driver, public or a secret of the run: a query has its
#: number. An object that knows words by their spelling is turned into one by word ids.
LOOKUP = "lookup"
#: An argument that is the row's list of words: the function gets the words that ids stand for.
WORDS = "words"
Argument = Any


@dataclass(frozen=True)
class Function:
    """A function of Arrow columns to an Arrow column."""

    body: Callable[..., Any]
    takes: tuple[Argument, ...]
    gives: pa.DataType
    #: Whether the keys in its result are word ids.
    keys_are_words: bool = False

    @property
    def takes_users(self) -> bool:
        return INTS in self.takes or LONGS in self.takes


def struct_list(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(fields.items())))


WEIGHTS = struct_list(key=LONG, weight=LONG)
USERS, KEYS = (LONGS, INTS, INTS), (LONGS, INTS, LONGS)
COUNT = Fixed(pa.int32())
#: The arguments of equal weights: max_items, grid_bits, salt.
LEVEL = (COUNT, COUNT, LOOKUP)
DRAWN = (Fixed(LONG), Fixed(TEXT))
GRAM = struct_list(position=LONG, key=LONG, bin=LONG, first=LONG, second=LONG)
ROW = struct_list(bin=LONG, grams=LONG, negatives=LONG, threshold=LONG)


def called_in(text: str) -> list[str]:
    """The functions that a query calls, by their names without `dphh_`."""
    return re.findall(r"\bdphh_(\w+)\(", text)


def functions(randomness: Randomness) -> dict[str, Function]:
    """All functions, by their names without `dphh_`. Those that draw draw from `randomness`: what
    they give is written to a table before anything reads it."""
    votes, word = vote_functions(randomness)
    absent = absent_functions(randomness)
    of = whole_users
    return {
        "noise": Function(noise_function(randomness), (TEXT, LONG, TEXT), LONG),
        "votes": Function(votes, (TEXT, LONG, Fixed(WORD), Fixed(LONG), Fixed(TEXT)), LONG),
        "word": Function(word, (TEXT, Fixed(TEXT)), WORD),
        "report": Function(
            report_function(randomness),
            (TEXT, LONG, Fixed(LONG), Fixed(LONG), Fixed(WORD), Fixed(TEXT)),
            LONGS,
        ),
        "bin": Function(bin_of, (LONG, Fixed(LONG)), LONG),
        "absent_bins": Function(
            absent.bins, (LONG, LONG, *DRAWN), struct_list(bin=LONG, grams=LONG)
        ),
        "absent_negatives": Function(absent.negatives, (LONG, LONG, LONG, *DRAWN), LONG),
        "lifted_grams_of_class": Function(
            absent.lifted_of_class, (LONG, ROW, LOOKUP, *DRAWN), GRAM
        ),
        "lifted": Function(
            lifted_function(randomness),
            (LONG, LOOKUP, Fixed(LONG), Fixed(LONG), Fixed(TEXT)),
            struct_list(position=LONG, key=LONG, noisy=LONG),
        ),
        "unreleased": Function(of.unreleased, (INTS, WORDS, LOOKUP), INTS),
        "numbers_of_words": Function(of.numbers_of_words, (INTS, WORDS, LOOKUP), INTS),
        "numbers_of_grams": Function(of.numbers_of_grams, (LONGS, LOOKUP), INTS),
        "pairs": Function(
            of.pairs, (INTS, INTS, INTS, COUNT), pa.struct([("lengths", INTS), ("keys", LONGS)])
        ),
        "keys_of_words": Function(
            of.keys_of_words, (*USERS, WORDS, LOOKUP, COUNT, COUNT, LOOKUP), LONGS
        ),
        "contributions_of_words": Function(
            of.contributions_of_words, (*USERS, WORDS, *LEVEL), WEIGHTS, keys_are_words=True
        ),
        "given_to_words": Function(
            of.given_to_words, (*USERS, WORDS, *LEVEL, LOOKUP), WEIGHTS, keys_are_words=True
        ),
        "weight": Function(of.weight_of, (LONG, Fixed(LONG), Fixed(LONG), Fixed(LONG)), LONG),
        "contributions_of_grams": Function(of.contributions_of_grams, (*KEYS, *LEVEL), WEIGHTS),
        "plain_contributions": Function(of.plain_contributions, (*KEYS, COUNT), WEIGHTS),
        "shared_contributions": Function(of.shared_contributions, (*KEYS, LOOKUP, COUNT), WEIGHTS),
        "counted": Function(of.counted_keys, (INTS, INTS, LOOKUP), WEIGHTS),
    }
