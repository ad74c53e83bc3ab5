"""Texts that come in any order become rows of whole users: lists of integers, words by number, or
which of some given items the user holds.

For engines whose rows hold lists (DuckDB, Polars); Spark's blocks are made in `spark_ladder.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import DTypeLike

from dphh.udfs.kernel.blocks import places_of_texts
from dphh.udfs.kernel.contributions import starts
from dphh.udfs.kernel.given_grams import GivenGrams
from dphh.udfs.kernel.reading import Reading
from dphh.udfs.kernel.whole_grams import whole_grams
from dphh.udfs.kernel.whole_users import lengths_of, lists_of, one_array
from dphh.udfs.text.hashes import Integers, of_spellings
from dphh.udfs.text.vocabulary import Vocabulary

TEXTS = ["key", "name", "tokens", "group_name"]
#: How texts (tokens, group_name) are read: how many places each takes, and what stands at them.
Read = Callable[[pa.Table], tuple[Integers, Any]]
#: What is read at a time: texts of so many bytes and more.
BYTES = 1 << 23
#: There is a row for every so many places, and a user is in the row in which they end. So however
#: long users are, an engine that takes so many rows at a time takes so many places.
ROW = 256
#: Texts, and places of theirs, that are laid out at a time.
STRETCH, PLACES = 1 << 17, 1 << 20
#: Below so many, four bytes say where a text starts.
NARROW = 1 << 32
#: Bytes that it takes to lay out a text and a place.
TEXT_BYTES, PLACE_BYTES = 48, 4


def words_of_texts(vocabulary: Vocabulary, reading: Reading) -> Read:
    """Their words by number. Of a text without a word nothing is held."""

    def read(texts: pa.Table) -> tuple[Integers, Any]:
        tokens = one_array(texts.column("tokens"))
        if reading.lengths is not None:
            tokens = whole_grams(tokens, range(reading.lengths[0], reading.lengths[1] + 1))
        codes = vocabulary.codes(tokens.flatten())
        lengths, places = places_of_texts(lengths_of(tokens), codes, reading.ends)
        if reading.ends and (lengths == 1).any():
            places = places[np.repeat(lengths > 1, lengths)]
            lengths = np.where(lengths > 1, lengths, 0)
        return lengths, places

    return read


def given_items_of_texts(given: GivenGrams, groups: Sequence[str]) -> Read:
    """Which given items they hold, as keys; of a group that is not declared, NULL too, as of the
    last. A key that several texts of a user hold stands several times."""

    def read(texts: pa.Table) -> tuple[Integers, Any]:
        numbers = None
        if given.groups > 1:
            names = one_array(texts.column("group_name")).cast(pa.large_string())
            declared = pc.index_in(names, value_set=pa.array(groups, pa.large_string()))
            numbers = declared.fill_null(len(groups)).to_numpy()
        lengths, keys = given.keys(one_array(texts.column("tokens")), numbers)
        return lengths, keys.astype(np.int32)

    return read


class Growing:
    """An array that grows at its end, where it stands as far as the system can: a large one is not
    copied."""

    def __init__(self, kind: DTypeLike) -> None:
        self._room = np.empty(1 << 10, dtype=kind)
        self._count = 0

    def add(self, values: Any) -> None:
        end = self._count + len(values)
        if end > len(self._room):
            self._room.resize(max(end, len(self._room) * 5 // 4), refcheck=False)
        self._room[self._count : end] = values
        self._count = end

    def all(self) -> Any:
        """A view, for as long as nothing is added."""
        return self._room[: self._count]

    def __len__(self) -> int:
        return self._count


class Gathering:
    """Texts are added in any order, by several threads; then come the rows of their users.

    A user is a number (key), or else a name; or a rank (key), with the name beside.
    """

    def __init__(self, read: Read, most: int | None = None) -> None:
        """`most`: bytes that it may take to lay them out."""
        self._read = read
        self._most = most
        self._lock = Lock()
        self._waiting: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._users, self._lengths = Growing(np.int64), Growing(np.int32)
        self._places = Growing(np.int32)
        self._user_names = Vocabulary()
        self._are_named, self._key_type = False, pa.int64()
        self._names_beside: list[Any] = []
        #: Whether more was added than may be held: then all of it was in vain.
        self.is_full = False
        #: Whether a text with a token in it is nobody's; no run may go on.
        self.holds_rows_of_nobody = False

    def add(self, keys: Any, names: Any, tokens: Any, groups: Any) -> pa.Array:
        """`dphh_gathered(user_key, user_name, tokens, group_name)`: takes texts in; 1 for each."""
        each = pa.array(np.ones(len(keys), dtype=np.int32))
        if self.is_full:
            return each
        with self._lock:
            self._waiting.append((keys, names, tokens, groups))
            self._bytes += sum(column.nbytes for column in (keys, names, tokens, groups))
            taken = self._taken() if self._bytes >= BYTES else []
        self._hold(taken)
        return each

    def _taken(self) -> list[tuple[Any, ...]]:
        taken, self._waiting, self._bytes = self._waiting, [], 0
        return taken

    def _hold(self, parts: list[tuple[Any, ...]]) -> None:
        if not parts:
            return
        texts = pa.table(
            [pa.concat_arrays([*map(one_array, column)]) for column in zip(*parts, strict=True)],
            TEXTS,
        )
        lengths, places = self._read(texts)
        if texts.column("key").null_count and texts.column("name").null_count:
            self._look_for_nobody(texts)
        keys = one_array(texts.column("key"))
        names = one_array(texts.column("name")).cast(pa.large_string())
        # A text of which nothing is held adds nothing to any level.
        some = lengths > 0
        if not some.all():
            lengths, held = lengths[some], pa.array(some)
            keys, names = keys.filter(held), names.filter(held)
        is_name, is_beside = keys.null_count > 0, names.null_count < len(names)
        numbers = self._user_names.codes(names) if is_name else keys.to_numpy()
        with self._lock:
            self._users.add(numbers.astype(np.int64, copy=False))  # large ones turn around
            self._lengths.add(lengths)
            self._places.add(places)
            self._are_named |= is_name
            self._key_type = keys.type
            if is_beside and not is_name:
                self._names_beside.append(names)
            size = TEXT_BYTES * len(self._users) + PLACE_BYTES * len(self._places)
            self.is_full |= self._most is not None and size > self._most

    def _look_for_nobody(self, texts: pa.Table) -> None:
        tokens = one_array(texts.column("tokens"))
        nobodys = pc.and_(*(pc.is_null(texts.column(name)) for name in ("key", "name")))
        there = pc.not_equal(tokens.flatten().cast(pa.large_string()), "").fill_null(False)
        of_nobody = np.repeat(np.asarray(nobodys), lengths_of(tokens))
        if (of_nobody & there.to_numpy(zero_copy_only=False)).any():
            self.holds_rows_of_nobody = True

    def rows(self) -> Iterator[pa.Table]:
        """(lots, lengths, codes): of some users, for each the number that stands for them where the
        keys that count are chosen, and how many places are theirs."""
        self._hold(self._taken())
        lengths, places = self._lengths.all(), self._places.all()
        begins: Any = np.cumsum(lengths, dtype=np.uint32 if len(places) < NARROW else np.int64)
        begins -= lengths.view(np.uint32)  # of none below 0
        for users, texts in by_user(self._users.all()):
            of_texts, first_places = lengths.take(texts), begins.take(texts)
            first = starts(users)
            of_users = np.add.reduceat(of_texts, first, dtype=np.int64)
            lots = self._lots(users.take(first), texts.take(first), of_users)
            stops = np.flatnonzero(np.diff(np.cumsum(of_users) // PLACES, append=-1)) + 1
            text_of = np.append(first, len(users))
            for start, stop in zip([0, *stops[:-1]], stops, strict=True):
                these = slice(text_of[start], text_of[stop])
                held = places.take(_spread(first_places[these], of_texts[these]))
                yield rows_of_users(lots[start:stop], of_users[start:stop], held)

    def _lots(self, users: Integers, texts: Integers, lengths: Integers) -> Integers:
        """Of who holds one word none is chosen."""
        several = lengths > 1
        if self._names_beside:
            names = pa.chunked_array(self._names_beside).take(pa.array(texts[several]))
        elif self._are_named:
            names = self._user_names.spelled(users[several])
        else:
            names = pa.array(users[several]).view(self._key_type).cast(pa.string())
        lots = np.zeros(len(users), dtype=np.int64)
        lots[several] = of_spellings(one_array(names)).view(np.int64)
        return lots


def register_gathered(con: duckdb.DuckDBPyConnection, gathering: Gathering, number: str) -> None:
    """Teach a DuckDB connection to hand texts over; users who are numbers are of this type."""
    con.create_function(
        "dphh_gathered",
        gathering.add,
        [number, "VARCHAR", "VARCHAR[]", "VARCHAR"],
        "INTEGER",
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,  # or equal texts would be handed over once
    )


def rows_of_users(lots: Integers, lengths: Integers, places: Any) -> pa.Table:
    """(lots, lengths, codes), whole users: several short ones a row; or one long one, and rows of
    nobody before it for the places that it has more."""
    ends = np.cumsum(lengths)
    users = np.bincount(ends // ROW)
    of_rows = np.diff(np.append(0, ends)[np.cumsum(users)], prepend=0)
    return pa.table(
        {
            "lots": lists_of(users, lots),
            "lengths": lists_of(users, lengths.astype(np.int32)),
            "codes": lists_of(of_rows, places),
        }
    )


def by_user(users: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Texts' users ascending, STRETCH or more at a time so that none is divided, and which texts
    these are. The array is used up.

    Where both fit, user and text are sorted as one integer, which takes a tenth of the time; and
    where the users stand, since memory that is new costs more than sorting.
    """
    if not len(users):
        return
    least, most = int(users.min()), int(users.max())
    bits = np.uint64((len(users) - 1).bit_length())
    if (most - least).bit_length() + int(bits) > 64:
        order = np.argsort(users, kind="stable")
        for some in _stretches(in_order := users.take(order), 0):
            yield in_order[some], order[some]
        return
    users -= least
    pairs = users.view(np.uint64)
    pairs <<= bits
    for start in range(0, len(pairs), STRETCH):
        piece = pairs[start : start + STRETCH]
        piece |= np.arange(start, start + len(piece), dtype=np.uint64)
    pairs.sort()
    place = np.uint64((1 << int(bits)) - 1)
    for some in _stretches(pairs, place):
        yield (pairs[some] >> bits).view(np.int64) + least, (pairs[some] & place).view(np.int64)


def _stretches(ascending: Any, beside: Any) -> Iterator[slice]:
    """STRETCH of them at a time, or more: those that are equal but for bits `beside` stay
    together."""
    start = 0
    while start < len(ascending):
        stop = min(start + STRETCH, len(ascending))
        stop = int(np.searchsorted(ascending, ascending[stop - 1] | beside, side="right"))
        yield slice(start, stop)
        start = stop


def _spread(begins: Integers, lengths: Integers) -> Integers:
    """The places of texts that start here and are so long, one after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(ends) == ends[-1]:  # one place each
        return begins
    places = np.repeat(begins - ends + lengths, lengths)
    places += np.arange(len(places))
    return places
