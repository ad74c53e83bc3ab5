"""What an engine reads of the texts of a corpus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """What a session keeps of a text."""

    #: Whether -1 marks its end: needed where neighbouring words matter.
    ends: bool = False
    #: The shortest and longest n-grams to keep instead of words, if any.
    lengths: tuple[int, int] | None = None
