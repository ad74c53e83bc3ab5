"""What a plan fixes for the levels of TrieHH, at which users vote for one more token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dphh.level import Level

#: How `trie` chooses, once a run, one sequence of a user who has several.
SequenceChoice = Literal["drawn", "most-frequent"]


@dataclass(frozen=True)
class VoteLevel(Level):
    """What a plan fixes for one level of TrieHH, at which each user votes with probability p."""

    kind: ClassVar[str] = "vote"
    shown = ("p",)

    level: int
    #: p = numerator / 2^64, both in the price and in the draws.
    numerator: int
    theta: int

    @property
    def p(self) -> float:
        return self.numerator / 2.0**64

    def in_words(self) -> tuple[str, ...]:
        return (f"each user votes with probability {self.p:.4g}; {self.theta} votes are enough",)
