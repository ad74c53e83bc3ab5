"""What an engine reads of the texts of a corpus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """What is held of a text."""

    #: Whether its end is marked, by -1: where words that stand side by side are sought.
    ends: bool = False
    #: From which length to which its n-grams are held, in place of its words.
    lengths: tuple[int, int] | None = None
