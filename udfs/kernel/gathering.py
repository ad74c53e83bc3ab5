"""Gathers texts, which arrive in any order, into rows of whole users: lists of the word ids in a
user's texts.

DuckDB and Polars gather a corpus in one process. On Spark each task gathers the users of its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from dphh.udfs.arrays import Integers, hash_texts, lengths_of, lists_of, one_array
from dphh.udfs.kernel.contributions import distinct_of_users, first_occurrences
from dphh.udfs.kernel.positions import positions_of_texts
from dphh.udfs.kernel.spilled_texts import (
    ARRAY_TYPES,
    PART_BITS,
    SpilledTexts,
    TextsInMemory,
    bytes_to_sort,
    position_indices,
    slices_by_positions,
)

if TYPE_CHECKING:  # it imports Polars
    from dphh.udfs.kernel.vocabulary import Vocabulary

#: Texts are read, and rows are cut, in batches of about this many bytes.
BATCH_BYTES = 1 << 23
#: How many positions a row has on average. With all users' positions in one line, divided into
#: stretches of so many, each row has the users whose last positions lie in one stretch.
POSITIONS_PER_ROW = 256
#: How many texts, sorted by user, are handled at a time.
TEXTS_AT_ONCE = 1 << 17
#: With fewer positions than this in memory, four bytes say where a text starts.
FOUR_BYTE_POSITIONS = 1 << 32

#: Reads texts (tokens, group_name): how many positions each takes, and the integer at each one.
TextReader = Callable[[pa.Table], tuple[Integers, Any]]


@dataclass(frozen=True)
class ReadWords:
    """How the tokens of texts become word ids. A text without a word takes no position."""

    #: Whether a negative number marks a text's end: needed where neighbouring words matter, or the
    #: text's group. It is -1 - (the number of the group). Without it, users have distinct words.
    marks_ends: bool = False
    #: The declared groups, in which users of items will be counted.
    groups: Sequence[str] = ()
    #: The words that matter, if others only keep these apart: other words get one id together, and
    #: those between two other words take no position.
    only: Sequence[str] | None = None

    def reader(self, vocabulary: Vocabulary) -> TextReader:
        vocabulary.open()
        ids_of = vocabulary.ids if self.only is None else _ids_of_some(vocabulary, self.only)

        def read(texts: pa.Table) -> tuple[Integers, Any]:
            tokens = one_array(texts.column("tokens"))
            ids = ids_of(tokens.flatten())
            lengths, positions = positions_of_texts(lengths_of(tokens), ids, self.marks_ends)
            if self.groups:
                assert self.marks_ends
                positions[np.cumsum(lengths) - 1] -= _numbers_of_groups(texts, self.groups)
            if self.marks_ends and (lengths == 1).any():
                positions = positions[np.repeat(lengths > 1, lengths)]
                lengths = np.where(lengths > 1, lengths, 0)
            return lengths, positions

        return read


def _ids_of_some(vocabulary: Vocabulary, some: Sequence[str]) -> Callable[[Any], Any]:
    """A function that finds word ids as `vocabulary.ids` does, but gives one id to all words that
    are not among `some`, and -1 where such a word stands between two others."""
    no_words = "", None
    known = pa.array([*some, *no_words], pa.large_string())
    # The one id is that of a word which is longer than all of these.
    other = "x" * (1 + max(map(len, some), default=0))
    ids_of_known = vocabulary.ids(pa.array([*some, *no_words, other], pa.large_string()))

    def ids_of(spelled: Any) -> Any:
        at = pc.index_in(spelled.cast(pa.large_string()), value_set=known).fill_null(-1).to_numpy()
        ids = ids_of_known.take(at, mode="wrap")
        are_other = at < 0
        between = are_other[:-2] & are_other[1:-1] & are_other[2:]
        ids[1:-1][between] = -1
        return ids

    return ids_of


def _numbers_of_groups(texts: pa.Table, groups: Sequence[str]) -> NDArray[np.int32]:
    """The number of each text's group among those declared; undeclared ones, and NULL, are one
    more."""
    names = one_array(texts.column("group_name")).cast(pa.large_string())
    declared = pc.index_in(names, value_set=pa.array(groups, pa.large_string()))
    numbers: NDArray[np.int32] = declared.fill_null(len(groups)).to_numpy()
    return numbers


class GrowingArray:
    """An array that grows at its end: in place if the system can, so large ones are not copied."""

    def __init__(self, kind: DTypeLike) -> None:
        self._room = np.empty(1 << 10, dtype=kind)
        self._count = 0

    def append(self, values: Any) -> None:
        end = self._count + len(values)
        if end > len(self._room):
            self._room.resize(max(end, len(self._room) * 5 // 4), refcheck=False)
        self._room[self._count : end] = values
        self._count = end

    def view(self) -> Any:
        """All values, as a view that is valid until something is added."""
        return self._room[: self._count]

    def clear(self) -> None:
        self._count = 0

    def __len__(self) -> int:
        return self._count


class Users(NamedTuple):
    """Whole users, one after the other: for each the user hash, by which bounding chooses keys, and
    the number of positions; and the integers at those positions."""

    user_hashes: Integers
    lengths: Integers
    positions: Any


class Gathering:
    """Takes texts in any order, from several threads; then yields the rows of their users.

    A user is the text of the user id. Within the run it has a number, by which texts are sorted;
    nothing that is summed depends on the number.
    """

    def __init__(
        self,
        read: TextReader,
        spilled: SpilledTexts | None = None,
        tokens: Callable[[pa.Array], pa.Array] | None = None,
        *,
        distinct: bool = False,
    ) -> None:
        """`spilled`: where texts go that do not fit into memory; if None, all stay in memory.
        `tokens`: makes tokens from the text of long texts; needed only if some are added.
        `distinct`: whether users have each integer once, as is enough where its place and its
        neighbours do not matter."""
        self._read = read
        self._distinct = distinct
        self._tokens = tokens
        self._spilled = spilled
        self._lock = Lock()
        #: Columns (users, tokens, groups) that were added and are not read yet.
        self._waiting: list[tuple[Any, ...]] = []
        self._waiting_bytes = 0
        self._texts = {name: GrowingArray(of_name) for name, of_name in ARRAY_TYPES.items()}
        from dphh.udfs.kernel.vocabulary import Vocabulary

        self._names = Vocabulary()
        #: Why texts could not be written to the folder or read from it; then the run must end.
        self.disk_error: OSError | None = None
        #: Whether a text with a token has a NULL user id; then the run must be refused.
        self.holds_null_users = False

    def add(self, users: Any, tokens: Any, groups: Any, long_texts: Any = None) -> pa.Array:
        """`dphh_gathered(user_id, tokens, group_name, long_text)`: takes texts. Returns an array
        with 1 for each. A long text comes without its tokens."""
        each = pa.array(np.ones(len(users), dtype=np.int32))
        if long_texts is not None and long_texts.null_count < len(long_texts):
            assert self._tokens is not None
            is_long = one_array(long_texts).is_valid()
            rows = pa.table([users, long_texts, groups], ["user", "text", "group_name"])
            for some in slices_by_bytes(rows.filter(is_long)):
                user, text, group = map(one_array, some.columns)
                self._read_and_store([(user, self._tokens(text), group)])
            # `filter` copies: columns that wait as they came would keep the long texts in memory.
            is_short = pc.invert(is_long)
            users, tokens, groups = (each.filter(is_short) for each in (users, tokens, groups))
        with self._lock:
            self._waiting.append((users, tokens, groups))
            self._waiting_bytes += sum(column.nbytes for column in (users, tokens, groups))
            taken = self._take_waiting() if self._waiting_bytes >= BATCH_BYTES else []
        self._read_and_store(taken)
        return each

    def _take_waiting(self) -> list[tuple[Any, ...]]:
        taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return taken

    def _read_and_store(self, waiting: list[tuple[Any, ...]]) -> None:
        if not waiting:
            return
        columns = [pa.concat_arrays([*map(one_array, each)]) for each in zip(*waiting, strict=True)]
        texts = pa.table(columns, ["user", "tokens", "group_name"])
        lengths, positions = self._read(texts)
        users = one_array(texts.column("user")).cast(pa.large_string())
        if users.null_count:
            self._note_null_users(texts)
        # A text without positions adds nothing to any level.
        some = lengths > 0
        if not some.all():
            lengths, users = lengths[some], users.filter(pa.array(some))
        numbers = self._names.ids(users)
        with self._lock:
            self._texts["users"].append(numbers)
            self._texts["lengths"].append(lengths)
            self._texts["positions"].append(positions)
            taken = bytes_to_sort(len(self._texts["users"]), len(self._texts["positions"]))
            if self._spilled is not None and taken > self._spilled.most_bytes:
                self._spill(self._spilled)

    def _texts_in_memory(self) -> TextsInMemory:
        return TextsInMemory(**{name: values.view() for name, values in self._texts.items()})

    def _spill(self, spilled: SpilledTexts) -> None:
        with self._noting_disk_errors():
            spilled.add(self._texts_in_memory())
        for values in self._texts.values():
            values.clear()

    def _note_null_users(self, texts: pa.Table) -> None:
        tokens = one_array(texts.column("tokens"))
        null_users = pc.is_null(texts.column("user"))
        there = pc.not_equal(tokens.flatten().cast(pa.large_string()), "").fill_null(False)
        of_null_user = np.repeat(np.asarray(null_users), lengths_of(tokens))
        if (of_null_user & there.to_numpy(zero_copy_only=False)).any():
            self.holds_null_users = True

    def finish_adding(self) -> None:
        """To be called once, after the last `add`: reads the texts that still wait. If some texts
        are in files, the others go there too, so that none takes memory."""
        self._read_and_store(self._take_waiting())
        if self._spilled is not None and self._spilled.has_spilled:
            self._spill(self._spilled)
            self._texts.clear()

    def rows(self) -> Iterator[pa.Table]:
        """The users as rows of lists (block, user_hashes, lengths, ids): the block is the row's own
        number. For use after `finish_adding`."""
        block = 0
        for users in self.users():
            rows = rows_of_users(*users)
            numbers = np.arange(block, block + rows.num_rows)
            yield rows.add_column(0, "block", pa.array(numbers))
            block += rows.num_rows

    def users(self) -> Iterator[Users]:
        """All users, in some order, a million positions or so at a time. After `finish_adding`."""
        if self._spilled is None or not self._spilled.has_spilled:
            yield from self._users_of_texts(self._texts_in_memory())
            return
        for part in range(1 << PART_BITS):
            with self._noting_disk_errors():
                texts = self._spilled.read_part(part)
            yield from self._users_of_texts(texts)
            del texts
        self._spilled.remove()

    @contextmanager
    def _noting_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.disk_error = problem
            raise

    def _users_of_texts(self, gathered: TextsInMemory) -> Iterator[Users]:
        lengths, positions = gathered.lengths, gathered.positions
        kind: Any = np.uint32 if len(positions) < FOUR_BYTE_POSITIONS else np.int64
        begins: Any = np.cumsum(lengths, dtype=kind)
        begins -= lengths.view(np.uint32)  # as unsigned numbers: no length is below 0
        last = None
        for users, texts in texts_by_user(gathered.users):
            # What a user adds is bounded only if all of the user's texts are here.
            assert last is None or users[0] > last
            last = users[-1]
            of_texts, first_positions = lengths.take(texts), begins.take(texts)
            first = first_occurrences(users)
            of_users = np.add.reduceat(of_texts, first, dtype=np.int64)
            several = of_users > 1  # users with one position have nothing to choose from: hash 0
            hashes = np.zeros(len(first), dtype=np.int64)
            names = one_array(self._names.spellings(users.take(first)[several]))
            hashes[several] = hash_texts(names).view(np.int64)
            text_of = np.append(first, len(users))
            for some in slices_by_positions(of_users):
                these = slice(text_of[some.start], text_of[some.stop])
                held = positions.take(position_indices(first_positions[these], of_texts[these]))
                counts = of_users[some]
                if self._distinct:
                    counts, held = distinct_of_users(counts, held)
                yield Users(hashes[some], counts, held)


def slices_by_bytes(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in slices of at most twice BATCH_BYTES, or of one row that has more."""
    if rows.nbytes <= 2 * BATCH_BYTES or rows.num_rows < 2:
        yield rows
        return
    half = rows.num_rows // 2
    yield from slices_by_bytes(rows.slice(0, half))
    yield from slices_by_bytes(rows.slice(half))


def rows_of_users(user_hashes: Integers, lengths: Integers, positions: Any) -> pa.Table:
    """Rows (user_hashes, lengths, ids) of whole users; POSITIONS_PER_ROW decides which row a user
    is in. So a row has several short users or one long one. Rows before a long user are empty."""
    ends = np.cumsum(lengths)
    users = np.bincount(ends // POSITIONS_PER_ROW)
    of_rows = np.diff(np.append(0, ends)[np.cumsum(users)], prepend=0)
    return pa.table(
        {
            "user_hashes": lists_of(users, user_hashes),
            "lengths": lists_of(users, lengths.astype(np.int32)),
            "ids": lists_of(of_rows, positions),
        }
    )


def texts_by_user(users_of_texts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Sorts texts by user, given the number of each text's user, which is overwritten. Yields
    users in ascending order and the indices of their texts, TEXTS_AT_ONCE texts or so at a time; no
    user is divided.

    User and text are sorted together as one integer, which takes a tenth of the time: both fit, as
    users have numbers from -1 to 2^31 (`Vocabulary.ids`), and there are fewer texts than 2^32. In
    place, since allocating memory costs more than the sort.
    """
    assert len(users_of_texts) <= 1 << 32  # more would make two users one
    bits = np.uint64(max(len(users_of_texts) - 1, 0).bit_length())
    users_of_texts += 1
    pairs = users_of_texts.view(np.uint64)
    pairs <<= bits
    for start in range(0, len(pairs), TEXTS_AT_ONCE):
        piece = pairs[start : start + TEXTS_AT_ONCE]
        piece |= np.arange(start, start + len(piece), dtype=np.uint64)
    pairs.sort()
    text_bits = np.uint64((1 << int(bits)) - 1)
    start = 0
    while start < len(pairs):
        stop = min(start + TEXTS_AT_ONCE, len(pairs))
        # Pairs that differ only in the text's bits are of one user, and stay together.
        stop = int(np.searchsorted(pairs, pairs[stop - 1] | text_bits, side="right"))
        some = pairs[start:stop]
        yield (some >> bits).view(np.int64) - 1, (some & text_bits).view(np.int64)
        start = stop
