"""Files for texts that were read and do not fit into memory, in parts of whole users.

What is read is written as it comes, so that a corpus is read once however many parts it takes. A
user's part follows from the user's number alone. A part has whole users, and what a user
contributes depends on no other user's rows. So it changes no sum how often texts are written.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphh.udfs.arrays import Integers, mix_bits, unmixed_hashes

#: Users are divided into 2^PART_BITS parts, which are read one by one.
PART_BITS = 6
#: The NumPy types of the arrays of `TextsInMemory`.
ARRAY_TYPES = {"users": np.int64, "lengths": np.int32, "positions": np.int32}
#: How many positions are copied at a time.
POSITIONS_AT_ONCE = 1 << 20


@dataclass(eq=False)
class TextsInMemory:
    """Texts that were read: the number of each text's user, how many positions each text takes, and
    the integers at all positions, one text after the other."""

    users: Integers
    lengths: Any
    positions: Any


def bytes_to_sort(text_count: Any, position_count: Any) -> Any:
    """How many bytes of memory it takes to sort so many texts of so many positions by user."""
    return 48 * text_count + 4 * position_count


class SpilledTexts:
    """Texts in files, in a folder that only one run uses."""

    def __init__(self, folder: str, most_bytes: int) -> None:
        """`most_bytes`: how much memory it may take to sort the texts in memory before they are
        written."""
        self.most_bytes = most_bytes
        self._files = {name: Path(folder, f"gathered_{name}") for name in ARRAY_TYPES}
        #: For each time that texts were written: by file, where each part ends in what was written.
        self._ends: list[dict[str, Integers]] = []
        self.remove()  # files that a failed gathering has left

    def add(self, texts: TextsInMemory) -> None:
        parts = 1 << PART_BITS
        part = (mix_bits(unmixed_hashes(texts.users)) >> np.uint64(64 - PART_BITS)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        lengths, ends = texts.lengths.take(order), np.cumsum(texts.lengths, dtype=np.int64)
        begins = ends.take(order) - lengths
        self._write("users", texts.users.take(order))
        self._write("lengths", lengths)
        for some in slices_by_positions(lengths):
            held = texts.positions.take(position_indices(begins[some], lengths[some]))
            self._write("positions", held)
        text_ends = np.cumsum(np.bincount(part, minlength=parts))
        position_ends = np.append(0, np.cumsum(lengths, dtype=np.int64)).take(text_ends)
        self._ends.append({"users": text_ends, "lengths": text_ends, "positions": position_ends})

    @property
    def has_spilled(self) -> bool:
        return bool(self._ends)

    def read_part(self, part: int) -> TextsInMemory:
        return TextsInMemory(**{name: self._read_array(name, part) for name in self._files})

    def _read_array(self, name: str, part: int) -> Any:
        bounds = [np.append(0, ends[name]) for ends in self._ends]
        stretches = [(int(ends[part]), int(ends[part + 1])) for ends in bounds]
        values = np.empty(sum(end - start for start, end in stretches), dtype=ARRAY_TYPES[name])
        filled = before = 0
        with self._files[name].open("rb") as file:
            for (start, end), ends in zip(stretches, bounds, strict=True):
                some = values[filled : filled + end - start]
                file.seek((before + start) * values.itemsize)
                # If a file lacked its end, users would get other users' texts.
                if file.readinto(some.data) < some.nbytes:
                    raise OSError(errno.EIO, "a file is shorter than what was written to it")
                filled, before = filled + end - start, before + int(ends[-1])
        return values

    def _write(self, name: str, values: Any) -> None:
        with self._files[name].open("ab") as file:
            file.write(values)  # NumPy's `tofile` loses what a full disk has no room for

    def remove(self) -> None:
        for file in self._files.values():
            file.unlink(missing_ok=True)


def slices_by_positions(lengths: Integers, at_once: int | None = None) -> Iterator[slice]:
    """Slices of texts (or of users) with about `at_once` positions each, POSITIONS_AT_ONCE if it is
    None; `lengths` says how many positions each text has."""
    if not len(lengths):
        return
    numbers = np.cumsum(lengths, dtype=np.int64) // (at_once or POSITIONS_AT_ONCE)
    stops = np.flatnonzero(np.diff(numbers, append=-1)) + 1
    for start, stop in zip([0, *stops[:-1]], stops, strict=True):
        yield slice(start, stop)


def position_indices(begins: Integers, lengths: Integers) -> Integers:
    """The indices of all positions of texts that have these first positions and lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if not len(ends) or len(ends) == ends[-1]:  # each text has one position
        return begins
    positions = np.repeat(begins - ends + lengths, lengths)
    positions += np.arange(len(positions))
    return positions
