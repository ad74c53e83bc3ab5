"""Functions over whole users in rows of lists, for DuckDB and Polars: the steps that need all of a
user at once, over Arrow columns. A batch of rows is a block of whole users.

A row has several short users or one long one: for each user a hash (`user_hashes`) and the number
of positions (`lengths`), and the content of all their positions (`ids`, `keys`). `contributions`
bound and weigh a user; `numbers_of_grams` and `pairs` climb the n-gram ladder. None draws random
numbers: the result for a row depends on that row and on what the query hands over, such as the
released set of the level below and the level's salt. Only how the word of an id is spelled is not
in the query: the run's vocabulary has it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import NDArray

from dphh.privacy.following import weights_of
from dphh.udfs.kernel.contributions import Followed, Weigh, contributions, equal_weights
from dphh.udfs.kernel.known_words import ReleasedWords
from dphh.udfs.kernel.listed_words import listed_places
from dphh.udfs.kernel.lists import (
    in_first_row,
    lengths_of,
    lists_of,
    one_array,
    sums_of,
    values_of,
)
from dphh.udfs.kernel.positions import Released, candidates, candidates_that_matter, of_words
from dphh.udfs.kernel.two_rounds import PlainWeights, WeightsByGram
from dphh.udfs.text.hashes import Integers, Words, of_numbers
from dphh.udfs.text.vocabulary import Vocabulary

#: In the types below: the name of a table in which a function looks keys up.
TABLE = "TABLE"


class WholeUsers:
    """The functions of one run that need its vocabulary, and the tables that its queries name."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        #: Tables in which functions look keys up; a query names a table by its index here.
        self.looked_up: list[Any] = []

    def contributions_of_words(
        self, user_hashes: Any, lengths: Any, ids: Any, max_items: int, grid_bits: int, salt: int
    ) -> pa.Array:
        """`dphh_contributions_of_words(user_hashes, lengths, ids, max_items, grid_bits, salt)`:
        what the users of all these rows add to a histogram of words; the first row has the
        result."""
        rule = equal_weights(max_items, grid_bits, salt, self.hashed_words)
        return weighed(user_hashes, lengths, ids, rule)

    def given_to_words(
        self,
        user_hashes: Any,
        lengths: Any,
        ids: Any,
        max_items: int,
        grid_bits: int,
        salt: int,
        w: Integers | None,
    ) -> pa.Array:
        """`dphh_given_to_words(user_hashes, lengths, ids, max_items, grid_bits, salt, w)`: the same
        with weights by the w of each word (equal weights without `w`), and with every word that any
        user holds, even if all its weights are 0."""
        return weighed(user_hashes, lengths, ids, self.given(max_items, grid_bits, salt, w))

    def given(self, max_items: int, grid_bits: int, salt: int, w: Integers | None) -> Weigh:
        if w is None:
            return equal_weights(max_items, grid_bits, salt, self.hashed_words, keeps_zeros=True)
        return Followed(2**grid_bits, max_items, salt, w, self.hashed_words)

    def look_up_in(self, known: Any) -> int | None:
        """Keep a lookup table, and return the index by which a level's queries name it: NULL for
        none."""
        if known is None:
            return None
        self.looked_up.append(known)
        return len(self.looked_up) - 1

    def hashed_words(self, ids: Integers) -> Words:
        """Hash words by their spelling."""
        return self.vocabulary.hashes().take(ids)

    def spelled(self, keys: Any) -> pa.Array:
        """`dphh_spelled(key)`: the word with this word id."""
        return self.vocabulary.spelled(_as_integers(keys))

    def keys_of_words(
        self,
        user_hashes: Any,
        lengths: Any,
        ids: Any,
        word_list: NDArray[np.int32],
        others: int,
        max_items: int,
        salt: int,
    ) -> pa.Array:
        """`dphh_keys_of_words(user_hashes, lengths, ids, word_list, others, max_items, salt)`: at
        each position the key of the word there by a public list, from `others` on of words that the
        list lacks; -1 where the user does not count for it."""
        lists = one_array(ids)
        keys = listed_places(
            values_of(one_array(user_hashes)),
            values_of(one_array(lengths)),
            values_of(lists),
            word_list,
            others,
            max_items,
            salt,
            lambda keys: self.hashed_words(keys - others),
        )
        return lists_of(lengths_of(lists), keys)

    def names(self, keys: Any, others: int) -> pa.Array:
        """`dphh_name(key, others)`: what a test's draws for a gram depend on: its key, or how it is
        spelled, where it is a word that the list lacks; of no list `others` is -1."""
        numbers = _as_integers(keys)
        if others < 0 or not (numbers >= others).any():
            return pa.array(numbers).cast(pa.string())
        beside = pa.array(numbers >= others)
        spelled = self.vocabulary.spelled(np.maximum(numbers - others, 0))
        spelled = pc.binary_join_element_wise("other", spelled, " ")
        return pc.if_else(beside, spelled, pa.array(numbers).cast(pa.string()))


def contributions_of_grams(
    user_hashes: Any, lengths: Any, keys: Any, max_items: int, grid_bits: int, salt: int
) -> pa.Array:
    """`dphh_contributions_of_grams(user_hashes, lengths, keys, max_items, grid_bits, salt)`: as
    `contributions_of_words`, for pairs of released grams, whose numbers are public."""
    return weighed(
        user_hashes, lengths, keys, equal_weights(max_items, grid_bits, salt, of_numbers)
    )


def plain_contributions(user_hashes: Any, lengths: Any, keys: Any, norm: int) -> pa.Array:
    """`dphh_plain_contributions(user_hashes, lengths, keys, norm)`: the same for round 1 of the
    forecast ladder."""
    return weighed(user_hashes, lengths, keys, PlainWeights(norm))


def shared_contributions(
    user_hashes: Any, lengths: Any, keys: Any, g: tuple[Released, Integers], norm: int
) -> pa.Array:
    """`dphh_shared_contributions(user_hashes, lengths, keys, g, norm)`: the same for round 2, with
    the weight g of each gram."""
    return weighed(user_hashes, lengths, keys, WeightsByGram(norm, *g))


def unreleased(ids: Any, released: ReleasedWords) -> pa.Array:
    """`dphh_unreleased(ids, released)`: the same word ids, with -1 for each word that an earlier
    round released."""
    lists = one_array(ids)
    if released is None:  # before the first round
        return lists
    held = values_of(lists)
    left = np.where(released.take(held), np.int32(-1), held)
    return lists_of(lengths_of(lists), left)


def numbers_of_words(ids: Any, released: NDArray[np.int32]) -> pa.Array:
    """`dphh_numbers_of_words(ids, released)`: the released word's number at each position, or
    -1."""
    lists = one_array(ids)
    return lists_of(lengths_of(lists), of_words(released, values_of(lists)))


def numbers_of_grams(keys: Any, released: Released) -> pa.Array:
    """`dphh_numbers_of_grams(keys, released)`: the released gram's number at each position, or
    -1."""
    lists = one_array(keys)
    return lists_of(lengths_of(lists), released.positions(values_of(lists)))


def pairs(lengths: Any, grams: Any, words: Any, ahead: int) -> pa.Array:
    """`dphh_pairs(lengths, grams, words, ahead)`: the key of the pair that begins at each position,
    and how many positions each user has.

    Without `words`, a pair is the gram at the position and the gram at the next one; positions that
    belong to no pair are removed. With `words`, it is the gram and the word `ahead` positions
    later; all positions stay.
    """
    users, lists = one_array(lengths), one_array(grams)
    positions, ends = values_of(lists), values_of(one_array(words))
    if len(ends):
        found = users, lists_of(lengths_of(lists), candidates(positions, ends, ahead))
    else:
        left, keys = candidates_that_matter(values_of(users), positions)
        found = lists_of(lengths_of(users), left), lists_of(sums_of(users, left), keys)
    return pa.StructArray.from_arrays(found, ["lengths", "keys"])


def weight_of(told: Any, parts: Any, deviation: Any, threshold: Any) -> pa.Array:
    """`dphh_weight(told, parts, deviation, threshold)`: the w of an item, where `told` is the
    weighted sum of its noised weights in earlier rounds."""
    if not len(told):
        return pa.array([], pa.int64())
    known = (column[0].as_py() for column in (parts, deviation, threshold))
    return pa.array(weights_of(_as_integers(told), *known))


def weighed(user_hashes: Any, lengths: Any, keys: Any, weigh: Weigh) -> pa.Array:
    """The keys and weights that the users of all these rows add; the first row has all of them."""
    rows = one_array(keys)
    key, weight = contributions(
        values_of(one_array(user_hashes)), values_of(one_array(lengths)), values_of(rows), weigh
    )
    return in_first_row(len(rows), key, weight)


def register_whole_users(con: duckdb.DuckDBPyConnection, users: WholeUsers) -> None:
    """Register these functions in a DuckDB connection, under the names in their docstrings."""
    rows, level = ["BIGINT[]", "INTEGER[]"], ["INTEGER", "INTEGER", "UBIGINT"]
    weights = "STRUCT(key BIGINT, weight BIGINT)[]"
    functions: list[tuple[str, Callable[..., Any], list[Any], str]] = [
        ("spelled", users.spelled, ["BIGINT"], "VARCHAR"),
        ("unreleased", unreleased, ["INTEGER[]", TABLE], "INTEGER[]"),
        ("numbers_of_words", numbers_of_words, ["INTEGER[]", TABLE], "INTEGER[]"),
        ("numbers_of_grams", numbers_of_grams, ["BIGINT[]", TABLE], "INTEGER[]"),
        (
            "pairs",
            pairs,
            ["INTEGER[]", "INTEGER[]", "INTEGER[]", "INTEGER"],
            "STRUCT(lengths INTEGER[], keys BIGINT[])",
        ),
        (
            "keys_of_words",
            users.keys_of_words,
            [*rows, "INTEGER[]", TABLE, *level],
            "INTEGER[]",
        ),
        ("name", users.names, ["BIGINT", "INTEGER"], "VARCHAR"),
        (
            "contributions_of_words",
            users.contributions_of_words,
            [*rows, "INTEGER[]", *level],
            weights,
        ),
        (
            "given_to_words",
            users.given_to_words,
            [*rows, "INTEGER[]", *level, TABLE],
            weights,
        ),
        ("weight", weight_of, ["BIGINT", "BIGINT", "BIGINT", "BIGINT"], "BIGINT"),
        (
            "contributions_of_grams",
            contributions_of_grams,
            [*rows, "BIGINT[]", *level],
            weights,
        ),
        (
            "plain_contributions",
            plain_contributions,
            [*rows, "BIGINT[]", "INTEGER"],
            weights,
        ),
        (
            "shared_contributions",
            shared_contributions,
            [*rows, "BIGINT[]", TABLE, "INTEGER"],
            weights,
        ),
    ]
    for name, function, takes, gives in functions:
        con.create_function(
            f"dphh_{name}",
            _with_single_parameters(function, takes, users.looked_up),
            ["INTEGER" if kind == TABLE else kind for kind in takes],
            gives,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,  # otherwise a filter on the result would call it twice
        )


def _with_single_parameters(
    function: Callable[..., Any], takes: list[Any], looked_up: list[Any]
) -> Callable[..., Any]:
    """Pass a level's parameters as single values; they are the same in every row. A table comes in
    place of its name."""

    def single(column: Any, kind: str) -> Any:
        if kind not in (TABLE, "INTEGER", "UBIGINT"):
            return column
        value = column[0].as_py()
        return looked_up[value] if kind == TABLE and value is not None else value

    def of_columns(*columns: Any) -> Any:
        return function(
            *(single(column, kind) for column, kind in zip(columns, takes, strict=True))
        )

    of_columns.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(f"of_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(takes))]
    )
    return of_columns


def _as_integers(column: Any) -> Integers:
    found: Integers = one_array(column).to_numpy()
    return found
