"""What an engine reads of the texts of a corpus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """What a session keeps of a text."""

    #: Whether -1 marks its end: needed where neighbouring words matter.
    ends: bool = False
