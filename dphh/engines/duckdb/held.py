"""How much memory an engine takes for texts, which it reads so many rows at a time whatever is in
them: 2,048 texts of 10 MB each, that lie in a file as one, are 20 GB and their words many times so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphh.content import Content
from dphh.engines.duckdb.memory import SharedMemory
from dphh.errors import CorpusError

#: Rows of which a thread of an engine holds all texts at once. Spark's machines have memory that is
#: not ours to know.
ROWS_AT_A_TIME = {"duckdb": 2_048, "polars": 100_000}
#: So many of the largest rows DuckDB's `max` can list.
MOST_ROWS = 999_999
#: Bytes held for a byte of a text, and for a character of it, by how it is read: measured on
#: both engines (docs/engines.md), of words of five letters.
COPIES = 3
#: Of these, so many of the whole text: engines read it before it is cut to `max_text_length`.
UNCUT = 1
OF_A_CHARACTER = {
    "duckdb": {"words": 17, "characters": 60, "whole": 0},
    "polars": {"words": 6, "characters": 60, "whole": 0},
}


@dataclass(frozen=True)
class Room:
    """What an engine has for texts: so many rows at a time on each of so many threads."""

    engine: str
    threads: int
    memory: SharedMemory

    @property
    def rows(self) -> int:
        return ROWS_AT_A_TIME[self.engine]

    @property
    def most(self) -> int:
        """How many rows' texts may be held at once."""
        return min(self.rows * self.threads, MOST_ROWS)

    def fits(self, content: Content | None) -> int:
        """Bytes of texts of which a thread may hold all."""
        limit = self.memory.limit or 0
        return limit // (self.threads * (COPIES + self.of_a_character(content)))

    def of_a_character(self, content: Content | None) -> int:
        return 0 if content is None else OF_A_CHARACTER[self.engine].get(content.reading, 0)


def refuse_more_than_fits(lengths: Any, room: Room, content: Content, is_content: bool) -> None:
    """`lengths`: bytes of the longest texts of a column, in descending order."""
    limit = room.memory.limit
    lengths = np.asarray(lengths, dtype=np.int64)[: room.most]
    held = _held(lengths, room, content if is_content else None)
    if limit is None or int(np.sum(held)) <= limit:
        return
    whose = "given" if room.memory.is_kept else "the engine's own, as none was given"
    # What is advised follows from the limit alone: a bound that just fits would tell how long the
    # texts are. Half of the memory is left to what is read before it is cut.
    a_character = 4 * (COPIES - UNCUT) + room.of_a_character(content)
    if not is_content:
        do = "Give users and groups shorter names, raise"
    elif UNCUT * int(np.sum(lengths)) > limit // 2:
        do = "They do not fit even before they are cut to max_text_length: raise"
    else:
        cut = max(limit // (2 * room.most * max(a_character, 1)), 1)
        do = (
            f"Of one text {content.max_text_length:,} characters count: max_text_length={cut:,} "
            "fits. Or raise"
        )
    raise CorpusError(
        f"{'max_text_length' if is_content else 'user, by'}: texts are too long for the memory: "
        f"{room.rows:,} rows are read at a time on {room.threads} threads, whatever is in them, "
        f"and may take more than memory_limit, {limit / 2**20:,.0f} MiB ({whose}). {do} "
        "memory_limit, take fewer threads (on DuckDB), or write shorter rows"
    )


def _held(lengths: Any, room: Room, content: Content | None) -> Any:
    """Of texts of so many bytes. A character has one byte to four."""
    if content is None:
        return COPIES * lengths
    longest = content.max_text_length
    copies = UNCUT * lengths + (COPIES - UNCUT) * np.minimum(lengths, 4 * longest)
    return copies + room.of_a_character(content) * np.minimum(lengths, longest)
