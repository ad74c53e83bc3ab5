"""Texts that were read and do not fit into memory: in files, by parts of the users.

What is read is written as it comes, so that a corpus is read once however many parts it takes. A
user's part follows from the user's number alone. A part has whole users, and what a user
contributes depends on no other user's rows. So neither how often texts are written nor how many
parts are read together changes any sum.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphh.udfs.text.hashes import Integers, mixed, of_numbers

#: Into how many parts users are divided: 2^PART_BITS. Parts that fit the memory together are read
#: together.
PART_BITS = 6
#: How many positions are laid out at a time.
POSITIONS = 1 << 20


@dataclass(eq=False)
class Texts:
    """Texts as they were read: the user's number, how many positions; and the integers at all
    positions, one text after the other."""

    users: Integers
    lengths: Any
    positions: Any

    @property
    def size(self) -> int:
        """Bytes of memory to lay them out."""
        return int(_bytes_of(len(self.users), len(self.positions)))


def _bytes_of(texts: Any, positions: Any) -> Any:
    """Bytes of memory to lay out so many texts with so many positions."""
    return 48 * texts + 4 * positions


def no_texts() -> Texts:
    """No texts, of the types that texts have."""
    eight, four = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    return Texts(eight, four, four)


class SpilledTexts:
    """Files in a folder that is the run's own."""

    def __init__(self, folder: str, most: int) -> None:
        """`most`: how many bytes of memory texts may take, before and after they are in files."""
        self.most = most
        self._kinds = {name: array.dtype for name, array in vars(no_texts()).items()}
        self._files = {name: Path(folder, f"gathered_{name}") for name in self._kinds}
        #: For each time that texts were written: where each part ends, by file.
        self._ends: list[dict[str, Integers]] = []
        self.remove()  # what a gathering that failed has left

    def add(self, texts: Texts) -> None:
        parts = 1 << PART_BITS
        part = (mixed(of_numbers(texts.users)) >> np.uint64(64 - PART_BITS)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        lengths, ends = texts.lengths.take(order), np.cumsum(texts.lengths, dtype=np.int64)
        begins = ends.take(order) - lengths
        self._write("users", texts.users.take(order))
        self._write("lengths", lengths)
        for some in slices_of_positions(lengths):
            held = texts.positions.take(positions_of_texts_at(begins[some], lengths[some]))
            self._write("positions", held)
        text_ends = np.cumsum(np.bincount(part, minlength=parts))
        position_ends = np.append(0, np.cumsum(lengths, dtype=np.int64)).take(text_ends)
        self._ends.append({"users": text_ends, "lengths": text_ends, "positions": position_ends})

    @property
    def has_any(self) -> bool:
        return bool(self._ends)

    def divided(self) -> Iterator[tuple[int, int]]:
        """The first of each stretch of parts that take at most `most` bytes together, or of one
        part that takes more, and the first after it."""
        sizes = np.zeros(1 << PART_BITS, dtype=np.int64)
        for ends in self._ends:
            texts, positions = (np.diff(ends[of], prepend=0) for of in ("users", "positions"))
            sizes += _bytes_of(texts, positions)
        first, size = 0, 0
        for part, of_part in enumerate(sizes.tolist()):
            if part > first and size + of_part > self.most:
                yield first, part
                first, size = part, 0
            size += of_part
        yield first, len(sizes)

    def read(self, first: int, last: int) -> Texts:
        """The texts of these parts, whenever they were written."""
        return Texts(**{name: self._read(name, first, last) for name in self._files})

    def _read(self, name: str, first: int, last: int) -> Any:
        bounds = [np.append(0, ends[name]) for ends in self._ends]
        stretches = [(int(ends[first]), int(ends[last])) for ends in bounds]
        found = np.empty(sum(end - start for start, end in stretches), dtype=self._kinds[name])
        filled = before = 0
        with self._files[name].open("rb") as file:
            for (start, end), ends in zip(stretches, bounds, strict=True):
                some = found[filled : filled + end - start]
                file.seek((before + start) * found.itemsize)
                # Of a file that lacks its end, users would get other users' texts.
                if file.readinto(some.data) < some.nbytes:
                    raise OSError(errno.EIO, "a file is shorter than what was written to it")
                filled, before = filled + end - start, before + int(ends[-1])
        return found

    def _write(self, name: str, values: Any) -> None:
        with self._files[name].open("ab") as file:
            file.write(values)  # NumPy's own `tofile` loses what a full disk has no room for

    def remove(self) -> None:
        for file in self._files.values():
            file.unlink(missing_ok=True)


def slices_of_positions(lengths: Integers) -> Iterator[slice]:
    """Slices of these lengths that sum up to some POSITIONS each."""
    if not len(lengths):
        return
    stops = np.flatnonzero(np.diff(np.cumsum(lengths, dtype=np.int64) // POSITIONS, append=-1)) + 1
    for start, stop in zip([0, *stops[:-1]], stops, strict=True):
        yield slice(start, stop)


def positions_of_texts_at(begins: Integers, lengths: Integers) -> Integers:
    """The positions of texts with these first positions and lengths, one text after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if not len(ends) or len(ends) == ends[-1]:  # one position each
        return begins
    positions = np.repeat(begins - ends + lengths, lengths)
    positions += np.arange(len(positions))
    return positions
