"""Texts that lie side by side become rows of whole users: a list of integers each, words by number,
or which of some given items the user holds.

For engines whose rows hold lists (DuckDB, Polars), which bring a user's texts together by sorting;
Spark's blocks are made in `spark_ladder.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dphh.udfs.blocks import places_of_texts
from dphh.udfs.given_grams import GivenGrams
from dphh.udfs.hashes import of_spellings
from dphh.udfs.vocabulary import Vocabulary
from dphh.udfs.whole_grams import whole_grams
from dphh.udfs.whole_users import lengths_of, lists_of, one_array


@dataclass(frozen=True)
class Reading:
    """What is held of a text."""

    #: Whether its end is marked, by -1: where words that stand side by side are sought.
    ends: bool = False
    #: From which length to which its n-grams are held, in place of its words.
    lengths: tuple[int, int] | None = None


def whole_users(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Texts (place, is_first, ...) in tables that end where a user ends.

    A user whose texts lay apart would count as several: so places count up by one, or nothing is
    read.
    """
    waiting: pa.Table | None = None
    place = 0
    for part in parts:
        expected = place + np.arange(1, part.num_rows + 1)
        if not np.array_equal(part.column("place").to_numpy(), expected):
            raise RuntimeError("dphh: texts out of order")
        place += part.num_rows
        texts = part if waiting is None else pa.concat_tables([waiting, part])
        starts = _starts(texts)
        last = int(starts[-1]) if len(starts) else 0
        yield texts.slice(0, last)
        waiting = texts.slice(last)
    if waiting is not None:
        yield waiting


def rows_of_users(texts: pa.Table, vocabulary: Vocabulary, reading: Reading) -> pa.Table:
    """(lot, codes), a row for each user who holds a word, of whole users' texts (is_first, name,
    tokens): first of each user one with their name."""
    tokens = one_array(texts.column("tokens"))
    if reading.lengths is not None:
        tokens = whole_grams(tokens, range(reading.lengths[0], reading.lengths[1] + 1))
    codes = vocabulary.codes(tokens.flatten())
    of_texts, places = places_of_texts(lengths_of(tokens), codes, reading.ends)

    first = _starts(texts)
    of_users = np.add.reduceat(of_texts, first) if len(first) else of_texts
    # The ends of texts are no words: of who has nothing else there is nothing to bound.
    ends = np.diff(first, append=texts.num_rows) if reading.ends else np.zeros_like(first)
    words = of_users - ends
    some = words > 0
    if not some.all():
        places = places[np.repeat(some, of_users)]
        first, of_users, words = first[some], of_users[some], words[some]
    # What stands for a user where the keys that count are chosen: of one word none is.
    several = words > 1
    lots = np.zeros(len(first), dtype=np.int64)
    names = one_array(texts.column("name")).take(pa.array(first[several]))
    lots[several] = of_spellings(names).view(np.int64)
    return pa.table({"lot": lots, "codes": lists_of(of_users, places)})


def keys_of_users(texts: pa.Table, given: GivenGrams, groups: Sequence[str]) -> pa.Table:
    """(keys), a row for each user who holds a given item, of whole users' texts (is_first,
    group_name, tokens).

    A text of a group that is not declared, NULL too, is of the last. A key that several texts of a
    user hold stands several times.
    """
    numbers = None
    if given.groups > 1:
        names = one_array(texts.column("group_name"))
        declared = pc.index_in(names, value_set=pa.array(groups, pa.string()))
        numbers = declared.fill_null(len(groups)).to_numpy()
    of_texts, keys = given.keys(one_array(texts.column("tokens")), numbers)
    first = _starts(texts)
    of_users = np.add.reduceat(of_texts, first) if len(first) else of_texts
    return pa.table({"keys": lists_of(of_users[of_users > 0], keys.astype(np.int32))})


def _starts(texts: pa.Table) -> Any:
    return pc.indices_nonzero(texts.column("is_first")).to_numpy().astype(np.int64)
