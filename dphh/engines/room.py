"""The memory that an engine needs for texts, before a run pays.

An engine reads a fixed number of rows at a time whatever their size: 2,048 texts of 10 MB each,
which may be stored once in a file, are 20 GB, and their words many times that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dphh.errors import CorpusError
from dphh.rows.content import Content

#: The largest n that DuckDB's `max(x, n)` accepts.
MOST_ROWS = 999_999
#: Bytes in memory per byte of a text, as measured on DuckDB and Polars (docs/engines.md).
COPIES = 3
#: How many of the COPIES are of the whole text, which engines read before `max_text_length` cuts.
UNCUT = 1


class Memory(Protocol):
    """A memory limit in bytes, if there is one, and whether the caller gave it."""

    limit: int | None
    is_kept: bool


@dataclass(frozen=True)
class Room:
    """The memory of an engine for texts."""

    #: Rows whose texts each thread has in memory at once.
    rows: int
    threads: int
    #: Bytes in memory per character of a text, by reading, as measured with words of five letters.
    by_reading: Mapping[str, int]
    memory: Memory

    @property
    def most(self) -> int:
        """How many rows' texts may be in memory at once."""
        return min(self.rows * self.threads, MOST_ROWS)

    def fits(self, content: Content | None) -> int:
        """How many bytes of text fit into one thread's share of the memory."""
        limit = self.memory.limit or 0
        return limit // (self.threads * (COPIES + self.of_a_character(content)))

    def of_a_character(self, content: Content | None) -> int:
        return 0 if content is None else self.by_reading.get(content.reading, 0)


def refuse_more_than_fits(lengths: Any, room: Room, content: Content, is_content: bool) -> None:
    """Refuse texts that need more than the memory limit. `lengths`: bytes of the longest texts of a
    column, in descending order."""
    limit = room.memory.limit
    lengths = np.asarray(lengths, dtype=np.int64)[: room.most]
    held = _memory_needed(lengths, room, content if is_content else None)
    if limit is None or int(np.sum(held)) <= limit:
        return
    whose = "given" if room.memory.is_kept else "the engine's own, as none was given"
    # The advice depends on the limit only: a bound that just fits would reveal how long the texts
    # are. Half of the memory is reserved for what is read before texts are cut.
    a_character = 4 * (COPIES - UNCUT) + room.of_a_character(content)
    if not is_content:
        do = "Give users and groups shorter names, raise"
    elif UNCUT * int(np.sum(lengths)) > limit // 2:
        do = "The texts do not fit even if max_text_length is smaller: raise"
    else:
        cut = max(limit // (2 * room.most * max(a_character, 1)), 1)
        do = (
            f"Now {content.max_text_length:,} characters of a text are used; "
            f"max_text_length={cut:,} fits. Or raise"
        )
    raise CorpusError(
        f"{'max_text_length' if is_content else 'user, by'}: texts are too long for the memory: "
        f"{room.rows:,} rows are read at a time on each of {room.threads} threads, and may need "
        f"more than memory_limit, {limit / 2**20:,.0f} MiB ({whose}). {do} "
        "memory_limit, use fewer threads (on DuckDB), or write shorter rows"
    )


def _memory_needed(lengths: Any, room: Room, content: Content | None) -> Any:
    """The memory in bytes that texts of these lengths need. A character has one to four bytes."""
    if content is None:
        return COPIES * lengths
    longest = content.max_text_length
    copies = UNCUT * lengths + (COPIES - UNCUT) * np.minimum(lengths, 4 * longest)
    return copies + room.of_a_character(content) * np.minimum(lengths, longest)
